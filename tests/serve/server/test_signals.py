"""The end of a server: what the journal says of open streams, and signals that always end it."""

import contextlib
import json
import queue
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
import pytest

from mockllm import ServerOptions, ServerThread, loads
from tests.timeouts import GIVE_UP

WAITS = """
scenario: waits
match: {user: waits}
turns:
  - reply: [{text: first}, {pause: 10m}, {text: never}]
"""
STALLS = WAITS.replace(", {pause: 10m}, {text: never}]", "]\n    fault: {stall: {after: 1 event}}")
BODY = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "waits"}]}


@pytest.mark.parametrize("text", [WAITS, STALLS], ids=["pause", "stall"])
def test_a_stream_that_the_server_ends(text):
    """It is not reported as one that the client left, also where the server has sent all that it
    would send."""
    logged = queue.Queue()
    options = ServerOptions(grace=0, log=logged.put)
    with (
        ServerThread(loads(text), options) as thread,
        httpx.stream(
            "POST", f"{thread.url}/v1/chat/completions", json=BODY, timeout=GIVE_UP
        ) as stream,
    ):
        parts = stream.iter_raw()
        next(parts)
        thread.wait(thread.server.stop)
        one = logged.get(timeout=GIVE_UP)
    assert (one.sent.stopped, one.sent.client_gone) == (True, False)
    assert one.sent.bytes > 0
    assert one.as_json()["stopped"]


def test_a_client_that_leaves_while_the_server_stops():
    """While open streams may go on, a client that leaves is reported as such."""
    logged = queue.Queue()
    options = ServerOptions(grace=GIVE_UP, log=logged.put)
    with ServerThread(loads(WAITS), options) as thread:
        with httpx.stream(
            "POST", f"{thread.url}/v1/chat/completions", json=BODY, timeout=GIVE_UP
        ) as stream:
            parts = stream.iter_raw()
            next(parts)
            stopping = threading.Thread(target=thread.wait, args=(thread.server.stop,))
            stopping.start()
            while not thread.ask(lambda: thread.server._parts.readiness.stopping):
                pass
        one = logged.get(timeout=GIVE_UP)
        stopping.join()
    assert (one.sent.stopped, one.sent.client_gone) == (False, True)


# Processes

BUSY = """
import sys, threading, time
from mockllm import ServerOptions, loads
from mockllm.cli.serving.listening import run_server
from mockllm.cli.serving.server_log import LogOptions, ServerLog
from mockllm.cli.serving.stop_signals import StopSignals
from mockllm.serve.server.app import MockServer

def loop(exchange):
    print("busy", flush=True)
    while True:
        pass

def expression(exchange):
    import re
    print("busy", flush=True)
    re.match(r"(a+)+$", "a" * 64 + "b")

def thread(exchange):
    import asyncio
    asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)
    print("busy", flush=True)

scenarios = loads("scenario: one\\nturns: [{reply: {text: x}}]")
options = ServerOptions(log=globals()[sys.argv[1]], grace=0)
run_server(MockServer(scenarios, options), ServerLog(LogOptions(quiet=True)), sys.argv[2])
"""


@contextmanager
def process(*command):
    """A program that is killed where it does not end."""
    started = subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(2 * GIVE_UP, started.kill)
    watchdog.start()
    try:
        yield started
    finally:
        watchdog.cancel()
        started.kill()
        started.communicate()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "loop", "first"),
    [
        ("loop", "asyncio", signal.SIGINT),
        ("loop", "uvloop", signal.SIGTERM),
        ("expression", "asyncio", signal.SIGTERM),
        ("thread", "uvloop", signal.SIGINT),
    ],
)
def test_a_second_signal_ends_a_server_that_hangs(kind, loop, first):
    """Neither an event loop that is busy, nor a regular expression or a thread without an end keeps
    the process alive after the second signal."""
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    with process("-c", BUSY, kind, loop) as started:
        url = started.stdout.readline().split()[-1]
        body = json.dumps({**BODY, "model": "mock/one", "stream": False}).encode()
        where = urlsplit(url)
        with socket.create_connection((where.hostname, where.port), GIVE_UP) as sock:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}"
            sock.sendall(head.encode() + b"\r\n\r\n" + body)
            assert started.stdout.readline() == "busy\n"
            started.send_signal(first)
            # Two signals may be one to the system, which delivers them when the process runs: the
            # last one is sent until the process ends.
            while started.poll() is None:
                started.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    started.wait(1)
            assert started.wait() == 130


LOADING = """
import sys
from mockllm.cli import main

def seen(event, arguments):
    if event == "open" and str(arguments[0]) == sys.argv[1]:
        print("loading", flush=True)

sys.addaudithook(seen)
main(["serve", sys.argv[1], "--port", "0"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_server_that_loads(tmp_path, number):
    """A server that is still loading scenarios is ended by one signal, without a traceback."""
    file = tmp_path / "many.yaml"
    turns = "turns: [{reply: {text: x}}]"
    file.write_text("---\n".join(f"scenario: s{n}\n{turns}\n" for n in range(2000)))
    with process("-c", LOADING, file) as started:
        assert started.stdout.readline() == "loading\n"
        started.send_signal(number)
        printed, errors = started.communicate()
    assert started.returncode == (-number if number == signal.SIGTERM else 130)
    assert "listening" not in printed
    assert "Traceback" not in errors


AT_ONCE = """
import asyncio, ctypes, signal, sys
from collections import deque
from mockllm.cli.serving.stop_signals import StopSignals

def raise_all(numbers):
    # Between two signals, Python executes no instruction, and so calls no handler.
    deque(map(ctypes.PyDLL(None)["raise"], numbers), maxlen=0)

async def main():
    signals = StopSignals(asyncio.get_running_loop())
    raise_all(map(int, sys.argv[2:]))
    if sys.argv[2:] == [str(int(signal.SIGTERM))]:
        await signals.stop.wait()
        print(signals.cut.is_set(), flush=True)
    if sys.argv[1] == "busy":
        while True:
            pass
    await signals.cut.wait()
    print("cut", flush=True)
    await asyncio.Event().wait()

if sys.argv[1] == "uvloop":
    import uvloop
    uvloop.install()
asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "busy"])
def test_signals_that_come_at_once(loop):
    """They are counted, also before Python calls a handler. Two of one number are one to it."""
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    term, interrupt = int(signal.SIGTERM), int(signal.SIGINT)
    with process("-W", "error", "-c", AT_ONCE, loop, interrupt, term) as started:
        assert started.wait(GIVE_UP) == 130
        assert started.stdout.read() == ("" if loop == "busy" else "cut\n")


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_one_signal_is_one(loop):
    """It is counted once, and the next one cuts."""
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    with process("-W", "error", "-c", AT_ONCE, loop, int(signal.SIGTERM)) as started:
        assert started.stdout.readline() == "False\n"
        started.send_signal(signal.SIGTERM)
        assert started.wait(GIVE_UP) == 130


IGNORED = """
import os, signal, weakref
from mockllm.cli.serving.stop_signals import ended_at_once

class Loaded:
    pass

def interrupted(_):
    os.kill(os.getpid(), signal.SIGINT)

with ended_at_once():
    one = Loaded()
    held = weakref.ref(one, interrupted)
    del one
print("it goes on")
"""


def test_a_signal_ends_a_program_where_python_ignores_exceptions():
    """`KeyboardInterrupt` in the callback of a weak reference is printed, and then forgotten."""
    with process("-c", IGNORED) as started:
        printed, errors = started.communicate()
    assert (started.returncode, printed, errors) == (130, "", "Aborted!\n")
