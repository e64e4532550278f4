"""Jobs beside the event loop: in threads, and in processes of their own."""

import asyncio
import os
import signal
import subprocess
import sys
from dataclasses import dataclass

import pytest

from mockllm.server.recording.worker import Ended, Fault, ProcessWorker, ThreadWorker
from tests.timeouts import GIVE_UP

KINDS = pytest.mark.parametrize("kind", [ThreadWorker, ProcessWorker])


@dataclass(frozen=True)
class Number:
    value: int


class Doubling:
    """Sends back the double of each number, and the process that it was computed in at the end."""

    def __init__(self, name, emit):
        self._name = name
        self._emit = emit

    def handle(self, message):
        if message == "print":
            print("this is no message")
        elif message == "die":
            os._exit(7)
        else:
            self._emit(Number(10 // message.value))

    def close(self):
        self._emit((self._name, os.getpid()))


def doubling(name, emit):
    return Doubling(name, emit)


def run(kind, *messages):
    """What a job sent, in its order."""

    async def receive():
        received = []
        worker = kind(doubling, "d", received.append)
        for message in messages:
            worker.send(message)
        await asyncio.wait_for(worker.close(), GIVE_UP)
        return received

    return asyncio.run(receive())


@KINDS
def test_messages_come_in_their_order(kind):
    """Each message is handled, in order, and all that the job sent is there when it is closed."""
    *numbers, end = run(kind, *[Number(value) for value in range(1, 11)])
    assert numbers == [Number(10 // value) for value in range(1, 11)]
    assert end[0] == "d"
    assert (end[1] == os.getpid()) == (kind is ThreadWorker)


@KINDS
def test_a_fault_is_reported_and_the_job_goes_on(kind):
    """An exception becomes a `Fault` with its message; the next message is handled."""
    received = run(kind, Number(0), Number(5))
    (fault,) = [one for one in received if isinstance(one, Fault)]
    assert fault.message == Number(0)
    assert fault.error.startswith("ZeroDivisionError")
    assert Number(2) in received


@KINDS
def test_what_a_job_prints_is_no_message(kind):
    """Output of a library does not get between the messages."""
    assert run(kind, "print", Number(1))[:-1] == [Number(10)]


def test_a_process_that_ends_early_is_reported():
    """`Ended` has the status, and messages and `close` afterwards do not wait for ever."""
    assert run(ProcessWorker, Number(1), "die", Number(2)) == [Number(10), Ended(7)]


PARENT = """
import asyncio, sys
from mockllm.server.recording.worker import ProcessWorker
from tests.server.recording.test_worker import Number, doubling

async def main():
    received = asyncio.Event()
    worker = ProcessWorker(doubling, "d", lambda message: received.set())
    worker.send(Number(1))
    await received.wait()
    print(worker.pid, flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_process_ends_with_the_one_that_started_it():
    """Where the server is killed, its worker ends, too: the pipe that it inherited closes."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait(GIVE_UP)
    parent.stdout.close()
    assert ended(pid)


def ended(pid):
    """Waits for the end of a process that is no child of this one."""
    handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") and alive(pid) else None
    if handle is None:
        return not alive(pid)
    import select

    try:
        ready, _, _ = select.select([handle], [], [], GIVE_UP)
        return bool(ready)
    finally:
        os.close(handle)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
