"""Tapes of WebSockets: they read back, and their turns are readable."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import ScenarioError
from mockllm.play.replay.loading import loads
from mockllm.play.tapes.captured import load_head, load_tape
from mockllm.play.tapes.socket_session import Side, SocketMessage, SocketSession
from mockllm.play.tapes.socket_tape import dump_session, is_socket_tape, load_session
from mockllm.play.tapes.socket_turns import socket_turns
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Scenario
from mockllm.scenario.route_model import RouteSpec
from tests.cases import for_all
from tests.play.tapes.test_tape import header_names, header_values
from tests.strategies import json_values, texts

_headers = st.lists(st.tuples(header_names, header_values), max_size=2).map(tuple)
_sides = st.sampled_from(["client", "service"])
_datas = (
    texts.map(str.encode)
    | json_values.map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=80)
)
_messages = st.builds(
    SocketMessage,
    st.integers(0, 10**9),
    st.integers(0, 2),
    _sides,
    st.sampled_from(["text", "binary", "ping", "pong"]),
    _datas,
    fragments=st.just(()) | st.lists(st.integers(1, 99), min_size=2, max_size=3).map(tuple),
) | st.builds(
    SocketMessage,
    st.integers(0, 10**9),
    st.integers(0, 2),
    _sides,
    st.just("close"),
    code=st.sampled_from([0, 1000, 1011]),
    reason=texts,
    how=st.sampled_from(["", "eof", "reset"]),
)
sessions = st.builds(
    SocketSession,
    url=st.just("https://api.example.com/v1/realtime?model=m"),
    request_headers=_headers,
    status=st.just(101),
    headers=_headers,
    messages=st.lists(_messages, max_size=8).map(tuple),
    body=st.binary(max_size=9),
    at=st.just(0.0) | st.integers(1, 2**31).map(float),
    source=st.just("GET /v1/realtime"),
    hidden=st.just(()) | st.just((("/0/session/key", "1f"),)),
)


@given(sessions)
def test_load_is_the_inverse_of_dump(session: SocketSession) -> None:
    """A loaded session equals the one that was dumped."""
    assert load_session(dump_session(session), "x.jsonl") == session


@given(sessions, st.data())
def test_a_truncated_tape_is_an_error(session: SocketSession, drawn: st.DataObject) -> None:
    """A file that was cut anywhere is an error that names it."""
    whole = dump_session(session)
    at = drawn.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ScenarioError, match=r"^x\.jsonl:\d+:1: "):
        load_session(whole[:at], "x.jsonl")


def said(side: Side, data: str | bytes, at: int = 0, connection: int = 0) -> SocketMessage:
    """A text message, or of bytes a binary one."""
    if isinstance(data, str):
        return SocketMessage(at, connection, side, "text", data.encode())
    return SocketMessage(at, connection, side, "binary", data)


def closed(side: Side, code: int, reason: str = "", connection: int = 0) -> SocketMessage:
    """The end of a connection."""
    return SocketMessage(0, connection, side, "close", code=code, reason=reason)


def session_of(*messages: SocketMessage) -> SocketSession:
    """A session with these messages."""
    headers = (("authorization", "Bearer x"),)
    return SocketSession("https://api.example.com/live", headers, 101, (), messages)


def test_a_tape_is_readable() -> None:
    """A message is a line; text is text, and only bytes that are no text are in base64."""
    session = session_of(
        said("service", '{"type":"hello"}', 5), said("client", b"\xff\x00"), closed("client", 1000)
    )
    assert dump_session(session).decode().splitlines() == [
        '{"mockllm-tape":2,"status":101,"messages":3,"headers":[],"request":{"url":'
        '"https://api.example.com/live","headers":[["authorization","Bearer x"]]}}',
        r'[5,0,"<","text","{\"type\":\"hello\"}"]',
        '[0,0,">","binary",{"base64":"/wA="}]',
        '[0,0,">","close",[1000,"",""]]',
    ]
    assert is_socket_tape(dump_session(session))


@for_all(
    ("lines", "problem"),
    [
        (b"", "1:1: is no line of JSON: expecting value at character 1"),
        (b"{}\n", '1:1: is no tape of a WebSocket; one begins with {"mockllm-tape": 2, ...}'),
        (
            b'{"mockllm-tape": 2, "headers": []}\n',
            "1:1: 'status' must be an HTTP status, got nothing",
        ),
        (
            b'{"mockllm-tape": 2, "status": 101, "messages": 1, "headers": [], "request": '
            b'{"url": "x", "headers": []}}\n[1,0,"?","text",""]\n',
            '2:1: must be a message, [microseconds, connection, ">" or "<", kind, data]',
        ),
        (
            b'{"mockllm-tape": 2, "status": 101, "messages": 2, "headers": [], "request": '
            b'{"url": "x", "headers": []}}\n[1,0,"<","text",""]\n',
            "3:1: the tape ends here, with 1 of its 2 messages complete",
        ),
    ],
)
def test_a_broken_tape_is_an_error_with_its_line(lines: bytes, problem: str) -> None:
    """The message says what is wrong, and where."""
    with pytest.raises(ScenarioError) as error:
        load_session(lines, "x.jsonl")
    assert str(error.value) == f"x.jsonl:{problem}"


def test_a_tape_of_a_socket_is_no_answer() -> None:
    """What reads tapes of HTTP says of the tape of a WebSocket what it is."""
    tape = dump_session(session_of())
    with pytest.raises(ScenarioError, match="is the tape of a WebSocket"):
        load_tape(tape, "x.jsonl")
    with pytest.raises(ScenarioError, match="is the tape of a WebSocket"):
        load_head(tape, "x.jsonl")


AUDIO = "QUJD" * 20


def test_a_session_is_a_conversation() -> None:
    """What the client sends until the service answers is a turn; audio is a number of bytes, and
    that of one turn is one message; a close ends a connection, and its echo is none."""
    session = session_of(
        said("service", '{"type": "created"}'),
        SocketMessage(0, 0, "service", "ping"),
        said("client", '{"type": "update"}'),
        *[said("client", json.dumps({"type": "audio", "data": AUDIO})) for _ in range(3)],
        said("client", '{"type": "audio", "data": "QUJD", "event_id": "e4"}'),
        said("client", '{"type": "commit"}'),
        said("service", json.dumps({"type": "delta", "data": AUDIO})),
        said("service", "plain"),
        closed("service", 1011, "again"),
        closed("client", 1011),
        said("client", b"\x00\x01", connection=1),
        said("client", b"\x00" * 100, connection=1),
        closed("client", 1000, connection=1),
    )
    scenario = Scenario("a", socket_turns(session), route=RouteSpec("GET", "/x"), socket="text")
    assert dump(scenario) == (
        "scenario: a\n"
        "route: GET /x\n"
        "socket: text\n"
        "turns:\n"
        "  - service:\n"
        "      - json: {type: created}\n"
        "  - client:\n"
        "      - json: {type: update}\n"
        "      - json: {type: audio, data: <183 bytes in 4 messages>}\n"
        "      - json: {type: commit}\n"
        "    service:\n"
        "      - json: {type: delta, data: <60 bytes>}\n"
        "      - text: plain\n"
        "      - close: {code: 1011, reason: again}\n"
        "  - client:\n"
        "      - base64: AAE=\n"
        "      - base64: <100 bytes>\n"
    )


@given(sessions)
def test_the_turns_of_any_session_can_be_loaded(session: SocketSession) -> None:
    """A session is a scenario, which reads back as it was written."""
    scenario = Scenario("a", socket_turns(session), route=RouteSpec("GET", "/x"), socket="text")
    assert loads(dump(scenario)) == (scenario,)
