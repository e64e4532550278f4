"""Locks: one holder at a time, in one process or in several, and none that outlives its process."""

import ast
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import mockllm
from mockllm.record.recording.store.locks import alone, lock, unlock

HOLD = """\
import sys
from pathlib import Path
from mockllm.record.recording.store.locks import lock

assert lock(Path(sys.argv[1])) is not None
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds the lock of a file, and the file."""
    file = tmp_path / "lock"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout.readline() == b"held\n"
        yield process, file
        process.kill()


def test_one_holder_in_a_process(tmp_path):
    """A lock that is held is not given again, to the same thread either, before it is freed."""
    held = lock(tmp_path / "x")
    assert held is not None
    assert lock(tmp_path / "x", wait=False) is None
    other = lock(tmp_path / "y", wait=False)
    unlock(held)
    again = lock(tmp_path / "x", wait=False)
    assert None not in (other, again)
    unlock(other)
    unlock(again)


def test_one_holder_among_processes(holder):
    """A lock that another process holds is not given."""
    _, file = holder
    assert lock(file, wait=False) is None


def test_a_killed_process_holds_nothing(holder):
    """The lock of a process that was killed is free, without waiting."""
    process, file = holder
    process.kill()
    process.wait()
    handle = lock(file, wait=False)
    assert handle is not None
    unlock(handle)


def test_waiting_for_a_lock(holder):
    """A waiting thread gets the lock when its holder is gone, and not before."""
    process, file = holder
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lock, file)
        assert lock(file, wait=False) is None
        assert not waiting.done()
        process.kill()
        handle = waiting.result()
    assert lock(file, wait=False) is None
    unlock(handle)


def test_a_started_process_does_not_keep_a_lock(tmp_path):
    """A process that the holder starts, and that outlives it, has no part in the lock."""
    handle = lock(tmp_path / "x")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False):
        os.close(handle)  # as the system does when the holder is killed
        again = lock(tmp_path / "x", wait=False)
        assert again is not None
        unlock(again)


def test_no_lock_in_a_folder_that_is_gone(tmp_path):
    """A lock in a folder that was removed is not given, and the folder is not created."""
    assert lock(tmp_path / "gone" / "x", wait=False) is None
    assert not (tmp_path / "gone").exists()


def test_alone(tmp_path):
    """Threads are let in one at a time: no thread reads a value that another is about to change."""
    counter = tmp_path / "counter"
    counter.write_text("0")

    def count(_):
        for _ in range(50):
            with alone(tmp_path):
                counter.write_text(str(int(counter.read_text()) + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(4)))
    assert counter.read_text() == "200"


@pytest.mark.slow
def test_no_platform_is_left_out():
    """No module uses a lock of one operating system directly."""
    locking = {
        (path.name, node.attr)
        for path in Path(mockllm.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("flock", "lockf", "locking")
    }
    assert locking == set()
