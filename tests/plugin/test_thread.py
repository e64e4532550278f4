"""`ServerThread.ask` and `call`: what other threads have the server's thread do."""

from __future__ import annotations

import threading

import pytest

from mockllm import ServerThread


def test_what_is_asked_is_done_in_the_servers_thread():
    """`ask` gives what the function gives, from the thread that serves."""
    with ServerThread(()) as thread:
        assert thread.ask(threading.current_thread).name == "mockllm-server"
        assert thread.ask(int, "11", base=2) == 3


def test_what_is_raised_comes_back():
    """An error is the asking thread's, and the server goes on."""
    with ServerThread(()) as thread:
        with pytest.raises(ZeroDivisionError):
            thread.ask(divmod, 1, 0)
        assert thread.ask(len, "abc") == 3


def test_calls_are_made_in_their_order():
    """`call` does not wait; what is asked later sees that it was done."""
    done: list[int] = []
    with ServerThread(()) as thread:
        for number in range(100):
            thread.call(done.append, number)
        assert thread.ask(list, done) == list(range(100))
