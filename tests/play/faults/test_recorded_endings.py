"""How a connection ended is recorded, and is played so."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mockllm.play.replay.fault_plan import read_plan
from mockllm.play.replay.loading import load
from mockllm.play.tapes.captured import Captured, load_tape
from mockllm.serve.server.options import RecordOptions, ServerOptions
from mockllm.serve.server.recording import copying
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.protocols import PROTOCOLS
from tests.play.faults.playing import (
    TURNS,
    Received,
    ask,
    connect,
    journal,
    request_bytes,
    served,
)
from tests.play.faults.test_live import recording
from tests.serve.server.recording.odd_upstream import CHUNKED, EVENTS, OddUpstream, text_events
from tests.timeouts import GIVE_UP

DYING = TURNS.replace("- ATTEMPTS\n    ", "- fault: {cut: {after: 4 events, end: END}}\n    ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "cut"),
    [("close", "upstream"), ("reset", "reset"), ("chunk", "chunk"), ("orderly", "")],
)
@pytest.mark.parametrize("api", ["chat", "anthropic"])
def test_a_recorded_ending_is_played(tmp_path: Path, api: str, end: str, cut: str) -> None:
    """The client of the service, that of the recorder and that of the replay see the same."""
    with served(DYING.replace("END", end)) as upstream:
        first = ask(upstream, api)
        with recording(tmp_path, upstream) as recorder:
            passed = ask(recorder, api)
    (tape,) = tmp_path.glob("*.jsonl")
    assert load_tape(tape.read_bytes(), str(tape)).exchange.cut == cut
    with ServerThread(load(tmp_path)) as replay:
        played = ask(replay, api)
    for one in (passed, played):
        assert (one.body, one.ended, one.whole) == (first.body, first.ended, first.whole)
        assert in_chunk(one.wire) == in_chunk(first.wire) == (end == "chunk")


def in_chunk(wire: bytes) -> bool:
    """Whether the last HTTP chunk is longer than what came of it."""
    while wire:
        size, _, rest = wire.partition(b"\r\n")
        if len(rest) < int(size, 16) + 2:
            return True
        wire = rest[int(size, 16) + 2 :]
    return False


ONE, TWO, *REST = text_events("one", "two")  # type: ignore[no-untyped-call]


@contextmanager
def in_front_of(folder: Path, script: Any, *faults: str) -> Iterator[ServerThread]:
    """A recording server in front of a service that writes what a script writes."""
    with OddUpstream() as upstream:
        upstream.script = script
        record = RecordOptions(folder, dict.fromkeys(PROTOCOLS, upstream.url), "add")
        plan = read_plan(faults)
        with ServerThread((), ServerOptions(record=record, faults=plan)) as thread:
            yield thread


def the_tape(folder: Path) -> Captured:
    """What is on the only tape of a folder."""
    (tape,) = folder.glob("*.jsonl")
    return load_tape(tape.read_bytes(), str(tape)).exchange


def played(folder: Path) -> Received:
    """What a client of the replay gets."""
    with ServerThread(load(folder)) as replay:
        return ask(replay, "chat")


@pytest.mark.parametrize(
    ("wire_bytes", "cut", "in_last"),
    [
        (b"80\r\ndata: {}\r\n\r\n", "chunk", b"data: {}\r\n\r\n"),
        (b"80\r\ndata: {", "chunk", b"data: {"),
        (b"c\r\ndata: {}\r\n\r\n\r\n", "upstream", None),
        (b"80\r\n", "upstream", None),
    ],
    ids=["after a line break", "in an event", "after a chunk", "after a size"],
)
def test_where_in_an_http_chunk_a_connection_ended(
    tmp_path: Path, wire_bytes: bytes, cut: str, in_last: bytes | None
) -> None:
    """A line break of the body is no end of a chunk. In the replay, the bytes of the chunk that
    broke off are in a chunk that breaks off."""

    async def script(_: object, wire: Any) -> None:
        await wire.head(EVENTS, CHUNKED)
        await wire.chunk(ONE)
        await wire.raw(wire_bytes)
        wire.writer.close()

    with in_front_of(tmp_path, script) as recorder:
        passed = ask(recorder, "chat")
    assert the_tape(tmp_path).cut == cut
    again = played(tmp_path)
    assert (again.body, again.ended) == (passed.body, passed.ended)
    assert not again.whole
    assert in_chunk(again.wire) == (in_last is not None)
    if in_last is not None:
        assert again.wire.endswith(b"\r\n%x\r\n%b" % (len(in_last) + 64, in_last))


def test_a_stall_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client left because nothing came: in the replay nothing comes, either."""
    monkeypatch.setattr(copying, "_STALLED", 0.0)
    gone = threading.Event()

    async def script(_: object, wire: Any) -> None:
        await wire.head(EVENTS, CHUNKED)
        await wire.chunk(ONE)
        await wire.closed_by_peer()
        gone.set()

    def until_it_stalls(thread: ServerThread) -> bytes:
        with connect(thread) as sock:
            sock.sendall(request_bytes("chat"))
            data = b""
            while ONE not in data:
                data += sock.recv(65536)
            return data.partition(b"\r\n\r\n")[2]

    with in_front_of(tmp_path, script) as recorder:
        passed = until_it_stalls(recorder)
        assert gone.wait(GIVE_UP)
    assert the_tape(tmp_path).cut == "stalled"
    with ServerThread(load(tmp_path)) as replay:
        assert until_it_stalls(replay) == passed


@pytest.mark.parametrize("fault", ["duplicate:event=1", "cut:after=90 events", "drip:rate=9999999"])
@pytest.mark.parametrize("end", ["closed", "chunk", "reset"])
def test_a_service_that_breaks_off_under_a_fault(tmp_path: Path, fault: str, end: str) -> None:
    """The client never gets a whole answer of a service that broke it off."""

    async def script(_: object, wire: Any) -> None:
        await wire.head(EVENTS, CHUNKED)
        await wire.chunk(ONE)
        await (wire.raw(b"%x\r\n%b" % (len(TWO) + 9, TWO)) if end == "chunk" else wire.chunk(TWO))
        wire.reset() if end == "reset" else wire.writer.close()

    with in_front_of(tmp_path, script, fault) as recorder:
        got = ask(recorder, "chat")
        assert not got.whole
        assert got.ended == ("reset" if end == "reset" else "closed")
        assert in_chunk(got.wire) == (end == "chunk")
        (entry,) = journal(recorder)
        assert any("before the end of its answer" in problem for problem in entry.problems)
    assert the_tape(tmp_path).cut == ("upstream" if end == "closed" else end)


def test_what_is_recorded_is_whole_after_the_client_was_cut(tmp_path: Path) -> None:
    """The service sends the rest only when the client's connection is closed."""
    cut = threading.Event()

    async def script(_: object, wire: Any) -> None:
        await wire.head(EVENTS, CHUNKED)
        await wire.chunk(ONE)
        await wire.chunk(TWO)
        await asyncio.to_thread(cut.wait, GIVE_UP)
        for event in REST:
            await wire.chunk(event)
        await wire.end()

    with in_front_of(tmp_path, script, "cut:after=1 events") as recorder:
        got = ask(recorder, "chat")
        assert (got.body, got.ended) == (ONE, "closed")
        cut.set()
        while not list(tmp_path.glob("*.jsonl")):  # the answer is read on by itself
            recorder.ask(lambda: None)
    tape = the_tape(tmp_path)
    assert (tape.cut, b"".join(part.data for part in tape.chunks)) == (
        "",
        ONE + TWO + b"".join(REST),
    )


def test_the_official_client_in_front_of_a_recorder(tmp_path: Path) -> None:
    """It reports the cut, and a run without the fault plays what it never saw."""
    openai = pytest.importorskip("openai")

    def texts(url: str) -> Iterator[str]:
        with openai.OpenAI(api_key="k", base_url=url + "/v1", max_retries=0) as client:
            messages = [{"role": "user", "content": "hello"}]
            stream = client.chat.completions.create(model="m", messages=messages, stream=True)
            for part in stream:
                yield part.choices[0].delta.content or ""

    async def script(_: object, wire: Any) -> None:
        await wire.events(ONE, TWO, *REST)

    seen: list[str] = []
    with in_front_of(tmp_path, script, "cut:after=1 events") as recorder:
        with pytest.raises(openai.APIConnectionError) as raised:
            seen.extend(texts(recorder.url))
        assert "incomplete chunked read" in str(raised.value.__cause__)
        assert seen == ["one"]
    with ServerThread(load(tmp_path)) as replay:
        assert "".join(texts(replay.url)) == "onetwo"
