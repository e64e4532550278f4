"""The file of a recorded session over WebSockets. Pure.

It has JSON lines as other tapes: a head, then a line for each message, with its time, its
connection, who sent it (`>` the client, `<` the service), its kind and its data:

    {"mockllm-tape": 2, "status": 101, "messages": 3, "request": {"url": ..., "headers": ...}, ...}
    [81022,0,"<","text","{\\"type\\":\\"session.created\\"}"]
    [93510,0,">","binary",{"base64":"AAEC"}]
    [97811,0,"<","close",[1000,"bye",""]]

A message of several frames has their lengths at the end of its line. The head of an opening that
was refused has the `body` of the answer.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, get_args
from urllib.parse import urlsplit

from mockllm.core.errors import ScenarioError
from mockllm.core.jsontext import compact, json_bytes
from mockllm.play.tapes.captured import (
    MARK,
    SOCKET_VERSION,
    Check,
    broken_line,
    bytes_of,
    check_count,
    check_head,
    common_fields,
    is_count,
    json_line,
    pairs_of,
    seconds_of,
    tape_lines,
    written_bytes,
    written_time,
)
from mockllm.play.tapes.socket_session import HowClosed, Kind, Side, SocketMessage, SocketSession

_SIDES: dict[str, Side] = {">": "client", "<": "service"}
_MARKS = {side: mark for mark, side in _SIDES.items()}


def is_socket_tape(data: bytes) -> bool:
    """Whether a tape, or its first line, is one of a WebSocket, or else of one exchange over
    HTTP."""
    with suppress(ScenarioError):
        head = json_line(data.partition(b"\n")[0], "", 1)
        return isinstance(head, dict) and head.get(MARK) == SOCKET_VERSION
    return False


def load_session(data: bytes, name: str) -> SocketSession:
    """The session in a file.

    Raises:
        ScenarioError: it is malformed or incomplete; the message names file and line.
    """
    first, lines = tape_lines(data)
    session, count = load_session_head(first, name)
    check_count(lines, count, "messages", name)
    messages = tuple(_message(line, name, number) for number, line in enumerate(lines[:-1], 2))
    return replace(session, messages=messages)


def load_session_head(first: bytes, name: str) -> tuple[SocketSession, int]:
    """The session of a first line, without messages, and the number of its messages.

    Raises:
        ScenarioError: it is not the first line of such a tape.
    """
    head = json_line(first, name, 1)
    if not first.endswith(b"\n") or not isinstance(head, dict) or head.get(MARK) != SOCKET_VERSION:
        message = f'is no tape of a WebSocket; one begins with {{"{MARK}": {SOCKET_VERSION}, ...}}'
        raise broken_line(name, 1, message)
    check_head(head, _FIELDS, ("hidden", "at", "body"), name)
    request = head["request"]
    session = SocketSession(
        request["url"],
        pairs_of(request["headers"]),
        head["status"],
        pairs_of(head["headers"]),
        (),
        body=bytes_of(head.get("body", "")),
        at=seconds_of(head.get("at", "")) or 0.0,
        source=f"GET {urlsplit(request['url']).path}",
        hidden=tuple(head.get("hidden", {}).items()),
    )
    return session, head["messages"]


def _is_request(value: Any) -> bool:
    fits, _ = common_fields()["headers"]
    return (
        isinstance(value, dict) and isinstance(value.get("url"), str) and fits(value.get("headers"))
    )


def _is_body(value: Any) -> bool:
    with suppress(TypeError, ValueError):
        return isinstance(bytes_of(value), bytes)
    return False


_FIELDS: dict[str, Check] = {
    **common_fields(),
    "status": (lambda value: type(value) is int and 101 <= value <= 599, "an HTTP status"),
    "messages": (is_count, "a whole number"),
    "request": (_is_request, "{url, headers}"),
    "body": (_is_body, 'a text, or {"base64": "..."}'),
}


def _message(line: bytes, name: str, number: int) -> SocketMessage:
    match json_line(line, name, number):
        case [int(at), int(connection), str(mark), str(kind), data, *lengths] if (
            is_count(at) and is_count(connection) and mark in _SIDES and kind in get_args(Kind)
        ):
            with suppress(TypeError, ValueError):
                return _read_message(at, connection, _SIDES[mark], kind, data, lengths)
    expected = '[microseconds, connection, ">" or "<", kind, data]'
    raise broken_line(name, number, f"must be a message, {expected}")


def _read_message(
    at: int, connection: int, side: Side, kind: Any, data: Any, lengths: list[Any]
) -> SocketMessage:
    """A message; TypeError, ValueError: its data or its lengths are wrong."""
    if kind == "close":
        code, reason, how = data
        if not is_count(code) or not isinstance(reason, str) or how not in get_args(HowClosed):
            raise TypeError
        return SocketMessage(at, connection, side, kind, code=code, reason=reason, how=how)
    (fragments,) = lengths or [()]
    if not all(map(is_count, fragments)):
        raise TypeError
    return SocketMessage(at, connection, side, kind, bytes_of(data), fragments=tuple(fragments))


def dump_session(session: SocketSession) -> bytes:
    """The bytes of a session's file: all but `source`, and `at` in whole seconds."""
    first: dict[str, Any] = {
        MARK: SOCKET_VERSION,
        "status": session.status,
        "messages": len(session.messages),
        "headers": session.headers,
    }
    if session.body:
        first["body"] = written_bytes(session.body)
    if session.at >= 1:
        first["at"] = written_time(session.at)
    if session.hidden:
        first["hidden"] = dict(session.hidden)
    first["request"] = {"url": session.url, "headers": session.request_headers}
    lines = [compact(first), *map(_dump_message, session.messages), ""]
    return json_bytes("\n".join(lines))


def _dump_message(message: SocketMessage) -> str:
    data: Any = [message.code, message.reason, message.how]
    if message.kind != "close":
        data = written_bytes(message.data)
    lengths = [message.fragments] if message.fragments else []
    mark = _MARKS[message.side]
    return compact([message.at, message.connection, mark, message.kind, data, *lengths])
