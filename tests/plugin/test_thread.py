"""`ServerThread.ask` and `call`: functions that run in the server's thread."""

from __future__ import annotations

import threading

import pytest

from mockllm import ServerThread


def test_ask_runs_in_the_servers_thread():
    """`ask` returns the result of a function that runs in the server's thread."""
    with ServerThread(()) as thread:
        assert thread.ask(threading.current_thread).name == "mockllm-server"
        assert thread.ask(int, "11", base=2) == 3


def test_ask_raises_the_exception_of_the_function():
    """`ask` raises the exception of the function, and the server goes on."""
    with ServerThread(()) as thread:
        with pytest.raises(ZeroDivisionError):
            thread.ask(divmod, 1, 0)
        assert thread.ask(len, "abc") == 3


def test_calls_run_in_order():
    """`call` does not wait; functions run in the order of the calls."""
    done: list[int] = []
    with ServerThread(()) as thread:
        for number in range(100):
            thread.call(done.append, number)
        assert thread.ask(list, done) == list(range(100))
