"""A recorder that redacts and writes in a process of its own."""

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from mockllm.scenario.part_model import visible_text
from tests.serve.server.recording.odd_upstream import CHUNKED, EVENTS, OddUpstream, text_events
from tests.serve.server.recording.recorded_server import PATH, Recording, chat
from tests.timeouts import GIVE_UP

KEY = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2"
READ = threading.Event()
"""Set when the client has read a part of an answer."""


async def secretive(request, wire):
    """Answers with a key that is cut over many events; waits in the middle if that is asked for."""
    text = request.json["messages"][-1]["content"]
    await wire.head(EVENTS, CHUNKED)
    words = f"{text}: the key is {KEY}, keep it"
    events = text_events(*(words[at : at + 3] for at in range(0, len(words), 3)))
    for event in events[:-1]:
        await wire.chunk(event)
    if "wait" in text:
        await asyncio.to_thread(READ.wait, GIVE_UP)
    await wire.chunk(events[-1])
    await wire.end()


@pytest.fixture
def recording(tmp_path):
    with OddUpstream(secretive) as upstream:
        yield Recording(tmp_path / "recorded", upstream)


def workers():
    """The processes that this one has started and that run."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for children in lists for pid in children.read_text().split()}


def test_an_exchange_is_redacted_and_written(recording):
    """The scenario is there after the server has stopped, without the key."""
    with recording.recording(apart=True):
        assert "[DONE]" in recording.post(chat("one")).text
        assert "[DONE]" in recording.post(chat("two")).text
    assert len(recording.scenarios()) == 2
    for turn in recording.scenarios().values():
        (reply,) = turn.turns
        text = visible_text(reply.reply)
        assert "sk-proj-REDACTED-1" in text
        assert KEY[8:] not in text
    assert len(recording.lines) == 2


def test_without_a_process_a_thread_does_the_work(recording, monkeypatch, capfd):
    """Where no process can be started a line reports that, and the exchange is recorded."""
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with recording.recording(apart=True):
        recording.post(chat("one"))
    assert len(recording.scenarios()) == 1
    assert "no process can be started" in capfd.readouterr().err


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")
def test_a_process_that_is_killed_is_replaced(recording, capfd):
    """Another one is started, and every exchange is recorded, also the one at which it ended."""
    before = workers()
    with recording.recording(apart=True):
        recording.post(chat("one"))
        (pid,) = workers() - before
        with recording.http.stream("POST", PATH, json=chat("wait")) as answer:
            parts = answer.iter_text()
            text = next(parts)
            os.kill(pid, signal.SIGKILL)
            READ.set()
            text += "".join(parts)
        recording.post(chat("two"))
    assert "[DONE]" in text
    assert sorted(recording.scenarios()) == ["one", "two", "wait"]
    assert [line.outcome for line in recording.lines] == ["neutral"] * 3
    assert "ended with status -9; another one is started" in capfd.readouterr().err
