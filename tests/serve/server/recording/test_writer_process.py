"""A writer in a process of its own."""

import os
import select
import signal
import subprocess
import sys

import pytest

from mockllm.record.recording.drafting.matches import MatchRule
from mockllm.record.recording.store.ended import EndedExchanges
from mockllm.record.redaction.rules import Rules
from mockllm.serve.server.recording.writer import WriterSetup
from mockllm.serve.server.recording.writer_process import WriterEndedError, WriterProcess
from tests.record.recording.exchanging import answer, user
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def process_for(folder):
    """A process that writes into a folder, and the log of its exchanges."""
    folder.mkdir(exist_ok=True)
    ended = EndedExchanges(folder)
    setup = WriterSetup(folder, ended.path, Rules(), MatchRule(), False, frozenset())
    return WriterProcess(setup), ended


def test_groups_are_written_there(tmp_path):
    """The result comes back, and the files are there."""
    process, ended = process_for(tmp_path / "recorded")
    for number, text in enumerate(("one", "two")):
        result = process.write(((number, answer([user(text)], "hi")),))
        assert [line.scenario for line in result.lines] == [text]
    process.close()
    ended.close()
    assert {file.name for file in (tmp_path / "recorded").glob("*.yaml")} == {
        "one.yaml",
        "two.yaml",
    }


def test_its_end_is_an_error(tmp_path):
    """If it is killed, the group that it was given is not answered; the error has the status."""
    process, ended = process_for(tmp_path / "recorded")
    process.write(((1, answer([user("one")], "hi")),))
    process.kill()
    with pytest.raises(WriterEndedError, match="ended with status -9"):
        process.write(((2, answer([user("two")], "hi")),))
    process.close()
    ended.close()


SERVER = """
import sys, time
from pathlib import Path
from tests.record.recording.exchanging import answer, user
from tests.serve.server.recording.test_writer_process import process_for

process, ended = process_for(Path(sys.argv[1]))
for number in (1, 2, 3):
    ended.add(number, f"POST /v1/chat/completions/{number}")
process.write(((1, answer([user("one")], "hi")),))
print(process.pid, flush=True)
time.sleep(1000)
"""


def test_it_ends_with_the_one_that_started_it(tmp_path):
    """Where the server is killed, the writer ends too: the pipe that it inherited closes. The next
    recorders tell which exchanges were not written, up to the first that ends by itself."""
    folder = tmp_path / "recorded"
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(folder)], stdout=subprocess.PIPE)
    assert server.stdout is not None
    pid = int(server.stdout.readline())
    assert missing(folder) == []
    server.send_signal(signal.SIGKILL)
    server.wait(GIVE_UP)
    server.stdout.close()
    assert missing(folder) == ["POST /v1/chat/completions/2", "POST /v1/chat/completions/3"]
    assert missing(folder) == []
    assert not list(folder.glob(".recording-*"))
    assert ended(pid)


def missing(folder):
    """What a recorder that ends by itself tells."""
    log = EndedExchanges(folder)
    log.close()
    return [line.partition(",")[0] for line in log.missing]


def ended(pid):
    """Waits for the end of a process that is no child of this one."""
    handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") and alive(pid) else None
    if handle is None:
        return not alive(pid)
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
