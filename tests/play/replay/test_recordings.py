"""When a recording is played, why it is not, and what a client sees of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mockllm.core.errors import RequestError, ScenarioError
from mockllm.core.http import Target, TimedBytes
from mockllm.core.later import NotDoneError, deferring
from mockllm.play.replay.compilation.tape_player import (
    AcceptedRequest,
    RecordedAnswer,
    Recordings,
    accepted_request,
    answer,
    check,
    same_refusal,
)
from mockllm.play.replay.loading import loads
from mockllm.play.tapes.captured import Tape, dump_tape
from mockllm.play.tapes.recorded_turn import recorded_turn
from mockllm.scenario.model import Recorded, Scenario
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.play.tapes.making import Sent, changed, taped
from tests.play.tapes.turns import turn_of

(SCENARIO,) = loads("scenario: s\nturns: [{reply: {text: Hi}}]")
EVENTS = (("content-type", "text/event-stream"),)
STREAM = taped("chat", True, 200, EVENTS, (TimedBytes(3, b"data: [DONE]\n\n"),))
CREATED = (
    b'event: response.created\ndata: {"type":"response.created","response":{"id":"resp_1"}}\n\n'
)
RESPONSE = taped("responses", True, 200, EVENTS, (TimedBytes(1, CREATED),))
BODY = taped(
    "responses", False, 200, (), (TimedBytes(1, b'{"id":'), TimedBytes(2, b'"resp_2","output":[]}'))
)
GZIP = (("x-a", "b"), ("content-encoding", "gzip"))


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., Scenario]:
    """Writes a tape, and gives a scenario with a turn that has it."""

    def write(tape: Tape, *, edited: bool = False, name: str = "s.1.jsonl") -> Scenario:
        path = tmp_path / name
        path.write_bytes(dump_tape(tape))
        turn = SCENARIO.turns[0] if edited else turn_of(tape)
        return replace(SCENARIO, turns=(replace(turn, recorded=Recorded(name, str(path))),))

    return write


def played(
    scenario: Scenario, api: str = "chat", *, stream: bool = True, quirks: bool = False
) -> RecordedAnswer:
    return Recordings().play(scenario, 0, PROTOCOLS[api], stream=stream, quirks=quirks)


def test_a_recording_is_played(record: Callable[..., Scenario]) -> None:
    """Its bytes at its times; quirks do not matter where nothing is streamed."""
    found = played(record(STREAM))
    assert found.answer is not None
    assert (found.why, found.problems) == ("exact", ())
    assert found.answer.chunks == STREAM.exchange.chunks
    body = record(BODY)
    assert played(body, "responses", stream=False, quirks=True).why == "exact"


def test_why_a_recording_is_not_played(record: Callable[..., Scenario]) -> None:
    """One reason each, the first that holds, and no answer."""
    assert played(SCENARIO) == RecordedAnswer(None, "", ())

    def why(*args: Any, **named: Any) -> tuple[str, int, bytes]:
        found = played(*args, **named)
        assert found.answer is None
        assert found.of is not None
        return found.why, found.duration, found.of.body

    stream, body = record(STREAM), record(BODY, name="s.2.jsonl")
    edited = record(STREAM, edited=True, name="s.3.jsonl")
    assert why(stream, "gemini") == ("other api", 3, b"")
    assert why(stream, stream=False) == ("not streamed", 3, b"")
    assert why(body, "responses") == ("streamed", 2, b"")
    assert why(edited) == ("edited", 3, b"")
    assert why(stream, quirks=True) == ("quirks", 3, b"")
    assert played(edited, "gemini", stream=False, quirks=True).why == "other api"
    assert played(edited, stream=False, quirks=True).why == "not streamed"
    assert played(edited, quirks=True).why == "edited"


def test_a_recording_that_cannot_be_read(record: Callable[..., Scenario], tmp_path: Path) -> None:
    """The reason is a problem of the exchange."""
    turn = record(STREAM)
    (tmp_path / "s.1.jsonl").unlink()
    found = played(turn)
    assert (found.answer, found.why) == (None, "unreadable")
    assert [str(tmp_path / "s.1.jsonl") in problem for problem in found.problems] == [True]
    unfiled = replace(SCENARIO.turns[0], recorded=Recorded("s.1.jsonl"))
    nowhere = replace(SCENARIO, turns=(unfiled,))
    assert played(nowhere).problems == (
        "s.1.jsonl:1:1: the tape is not looked for, since its scenario was not loaded from a file",
    )


def test_a_tape_is_read_once(record: Callable[..., Scenario]) -> None:
    """It is kept by scenario, turn and file; what is not kept is read later, if deferred."""
    recorded, recordings, keys = record(STREAM), Recordings(), []
    for name in ("s", "s", "other"):
        keys += read_for(recordings, replace(recorded, name=name))
    assert keys == [("s", 0, "s.1.jsonl"), ("other", 0, "s.1.jsonl")]


def test_a_tape_that_was_just_written_is_not_read(
    record: Callable[..., Scenario], tmp_path: Path
) -> None:
    """A recorder says what it is and what it decodes to; answers and reasons are the same."""
    for tape, edited in ((STREAM, False), (STREAM, True), (RESPONSE, False), (BODY, False)):
        protocol = PROTOCOLS[tape.api]
        scenario, recordings = record(tape, edited=edited), Recordings()
        read = played(scenario, tape.api, stream=tape.streamed)
        (tmp_path / "s.1.jsonl").unlink()
        decoded = recorded_turn(tape.exchange, protocol, streamed=tape.streamed)
        recordings.know(scenario, 0, tape, decoded=decoded)
        assert recordings.play(scenario, 0, protocol, stream=tape.streamed) == read
        assert read.why == ("edited" if edited else "exact")


def read_for(recordings: Recordings, scenario: Scenario) -> list[object]:
    """What has to be read before a turn is played."""
    outcomes: dict[Hashable, Callable[[], object]] = {}
    while True:
        try:
            with deferring(outcomes):
                assert recordings.play(scenario, 0, PROTOCOLS["chat"], stream=True).answer
        except NotDoneError as missing:
            content = missing.read()
            outcomes[missing.key] = partial(lambda value: value, content)
        else:
            return list(outcomes)


def test_tapes_that_do_not_fit_are_read_again(record: Callable[..., Scenario]) -> None:
    """A kept answer counts twice: its bytes are there whole and event by event."""
    scenarios = [record(STREAM, name=f"s.{n}.jsonl") for n in range(2)]
    size = len(answer(STREAM.exchange).encoded)
    for max_bytes, reads in ((4 * size, 2), (4 * size - 1, 4)):
        recordings = Recordings(max_bytes=max_bytes)
        assert sum(len(read_for(recordings, one)) for one in scenarios * 2) == reads
    assert Recordings()._recordings.maxsize == 128 * 1024 * 1024


@pytest.mark.parametrize(
    ("tape", "id"),
    [
        (RESPONSE, "resp_1"),
        (BODY, "resp_2"),
        (changed(BODY, chunks=(TimedBytes(1, b'{"id":5}'),)), None),
        (changed(BODY, chunks=(TimedBytes(1, b'["id"]'),)), None),
        (changed(BODY, chunks=(TimedBytes(1, b"{}"),)), None),
        (changed(BODY, chunks=(TimedBytes(1, b"no json"),)), None),
        (changed(STREAM, chunks=(TimedBytes(1, b"data: [DONE]\n\n"),)), None),
        (
            changed(
                BODY,
                headers=GZIP,
                chunks=(TimedBytes(1, gzip.compress(b'{"id":"z","output":[]}')),),
            ),
            "z",
        ),
    ],
)
def test_the_id_of_a_recorded_answer(
    record: Callable[..., Scenario], tape: Tape, id: str | None
) -> None:
    """By which a client continues it; None where the service sent none, or it cannot be read."""
    found = played(record(tape), tape.api, stream=tape.streamed)
    assert found.answer is not None
    assert found.answer.id == id


def test_the_answer_of_a_tape() -> None:
    """Its headers but for those of the connection, access from any page, and its bytes."""
    headers = (
        ("content-type", "text/event-stream"),
        *((name, "x") for name in ("transfer-encoding", "connection", "keep-alive", "trailer")),
        ("upgrade", "x"),
        ("x-own", "y"),
    )
    found = answer(changed(STREAM, status=201, headers=headers).exchange, "id")
    assert found.headers == (
        ("content-type", "text/event-stream"),
        ("x-own", "y"),
        ("access-control-allow-origin", "*"),
        ("access-control-expose-headers", "*"),
    )
    assert (found.status, found.id, found.streamed, found.ending) == (201, "id", True, "complete")
    own = answer(changed(STREAM, headers=(("access-control-allow-origin", "here"),)).exchange)
    assert own.headers == (("access-control-allow-origin", "here"),)


@for_all(
    ("change", "expected"),
    [
        ({}, (True, False, "complete")),
        ({"headers": (("content-length", "3"),)}, (False, False, "complete")),
        ({"headers": (("content-length", "3"),), "cut": "upstream"}, (True, False, "closed")),
        ({"headers": (("content-length", "99"),), "cut": "upstream"}, (False, False, "closed")),
        ({"headers": (("content-length", "99"),), "cut": "reset"}, (False, False, "reset")),
        ({"cut": "reset"}, (True, False, "reset")),
        ({"cut": "upstream"}, (True, False, "closed")),
        ({"cut": "client"}, (True, False, "complete")),
        ({"cut": "stalled"}, (True, False, "open")),
        ({"headers": (("content-length", "99"),), "cut": "stalled"}, (False, False, "open")),
        ({"cut": "chunk"}, (True, False, "chunk")),
        ({"chunks": (TimedBytes(1, b"a"), TimedBytes(2, b""))}, (True, False, "complete")),
        ({"chunks": (TimedBytes(1, b"a"), TimedBytes(2, b"b"))}, (True, True, "complete")),
    ],
)
def test_how_the_answer_of_a_tape_is_sent(
    change: dict[str, object], expected: tuple[bool, bool, str]
) -> None:
    """In HTTP chunks unless it had a length; in writes of its own where there are several; broken
    off where the service did so."""
    found = answer(changed(STREAM, **change).exchange)  # type: ignore[arg-type]
    assert (found.streamed, found.segmented, found.ending) == expected
    assert all(part.data for part in found.chunks)


@pytest.mark.parametrize(
    ("method", "status", "headers", "length"),
    [
        ("HEAD", 200, (("content-length", "17"),), b"content-length: 17"),
        ("HEAD", 200, (), None),
        ("POST", 204, (), None),
        ("POST", 304, (("content-length", "3"),), b"content-length: 3"),
    ],
)
def test_answers_without_a_body(
    method: str, status: int, headers: tuple[tuple[str, str], ...], length: bytes | None
) -> None:
    """Such an answer has the recorded length, if it had one, and no byte after its head: a body in
    chunks, though empty, would be the beginning of the next answer."""
    tape = taped("", False, status, headers, (), request=Sent(method, "https://h/v1/x"))
    head, _, rest = answer(tape.exchange).encoded.partition(b"\r\n\r\n")
    assert rest == b""
    assert b"transfer-encoding" not in head
    lengths = [line for line in head.split(b"\r\n") if line.startswith(b"content-length")]
    assert lengths == ([] if length is None else [length])


def test_the_first_line_of_a_tape_is_checked(
    record: Callable[..., Scenario], tmp_path: Path
) -> None:
    """Without reading the rest; what was not loaded from a file is not looked for."""
    recorded = record(STREAM).turns[0].recorded
    assert recorded is not None
    path = tmp_path / "s.1.jsonl"
    head, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(head + b"\nno json")
    check(recorded, of_socket=False)
    check(Recorded("nowhere.jsonl"), of_socket=False)
    path.write_bytes(b"{}\n" + rest)
    with pytest.raises(ScenarioError):
        check(recorded, of_socket=False)
    path.unlink()
    with pytest.raises(OSError, match="No such file"):
        check(recorded, of_socket=False)


REQUEST = Sent(
    "POST", "http://odd.test/v1/chat/completions?a=b", (), json.dumps({"messages": []}).encode()
)


def test_the_request_of_a_recording(record: Callable[..., Scenario], tmp_path: Path) -> None:
    """Its body and its target; None where it is of another API or cannot be read."""
    recorded = record(changed(STREAM, request=REQUEST)).turns[0].recorded
    assert recorded is not None
    found = accepted_request(recorded, PROTOCOLS["chat"])
    assert isinstance(found, AcceptedRequest)
    assert found.body == REQUEST.body
    assert isinstance(found.target, Target)
    assert accepted_request(recorded, PROTOCOLS["anthropic"]) is None
    assert accepted_request(Recorded("nowhere.jsonl"), PROTOCOLS["chat"]) is None
    (tmp_path / "s.1.jsonl").unlink()
    assert accepted_request(recorded, PROTOCOLS["chat"]) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (RequestError("a"), RequestError("a"), True),
        (RequestError("a"), RequestError("b"), False),
        (RequestError("a", param="p"), RequestError("b", param="p"), True),
        (RequestError("a", param="p"), RequestError("a", param="q"), False),
        (RequestError("a", param="p"), RequestError("a"), False),
        (RequestError("a"), RequestError("a", param="p"), True),
        (RequestError("a", param="p", code="c"), RequestError("a", param="p", code="d"), False),
        (RequestError("a", param="p", code="c"), RequestError("b", param="p", code="c"), True),
    ],
)
def test_two_refusals_for_the_same_reason(
    one: RequestError, other: RequestError, same: bool
) -> None:
    """The same field and code; without a field the same message."""
    assert same_refusal(one, other) == same
