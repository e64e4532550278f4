"""Sessions over WebSockets in files of other recorders: the messages of pydantic-ai's tests, the
frames of cassetter, and what browsers save into HTTP archives. Only archives have the answer to the
opening, and none has the fragments of messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mockllm.core.errors import WireError
from mockllm.core.http import host_in
from mockllm.core.jsontext import json_bytes
from mockllm.core.text import display
from mockllm.play.tapes.socket_session import HowClosed, Kind, Side, SocketMessage, SocketSession
from mockllm.record.importers.reading import (
    Unread,
    body_bytes,
    from_base64,
    from_hex,
    header_pairs,
    timestamp,
)
from mockllm.record.redaction.credentials import masked_url
from mockllm.wire.protocols.base import dumps

_OPENED = 101
_GEMINI = "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"
_REALTIME = "/v1/realtime"


def service_url(url: str) -> str:
    """The URL of a WebSocket as a session has it.

    Raises:
        WireError: it is none of a service.
    """
    scheme, mark, rest = url.partition("://")
    plain = {"ws": "http", "wss": "https"}.get(scheme.lower(), scheme) + mark + rest
    if not host_in(plain):
        raise WireError(f"{display(url)} is no URL of a service")
    return plain


def close_message(at: int, side: Side, payload: bytes) -> SocketMessage:
    """A close frame, from its code and its reason (RFC 6455, section 5.5.1)."""
    code, reason = int.from_bytes(payload[:2]), payload[2:].decode("utf-8", "replace")
    return SocketMessage(at, 0, side, "close", code=code, reason=reason)


# pydantic-ai, tests/realtime/ws_cassettes.py: the JSON of each message, and how a connection ended.


def is_message(entry: Any) -> bool:
    """Whether an entry of a cassette is a message, or the end of a connection."""
    return isinstance(entry, dict) and entry.get("kind") in ("message", "close")


def read_messages(entries: Iterable[Mapping[str, Any]], source: str) -> SocketSession | Unread:
    """The session of a cassette of messages. It has no opening: the path is that of the API whose
    messages these are, and the host is not known. After a close the client has dialled again."""
    messages: list[SocketMessage] = []
    path, connection, is_closed = "", 0, False
    for number, entry in enumerate(entries, 1):
        connection += is_closed
        match entry:
            case {"kind": "message", "direction": "sent" | "received" as direction, "data": data}:
                side: Side = "client" if direction == "sent" else "service"
                path = path or _path_of(side, data)
                # Google's service alone sends JSON in binary frames.
                kind: Kind = "binary" if side == "service" and path == _GEMINI else "text"
                payload = json_bytes(dumps(data))
                messages.append(SocketMessage(0, connection, side, kind, payload))
            case {"kind": "close", "code": int(code), "ok": ok}:
                # 1000 stands for an end without a frame, too.
                how: HowClosed = "" if ok or code != 1000 else "eof"
                end = SocketMessage(0, connection, "service", "close", how=how)
                reason = str(entry.get("reason") or "")
                messages.append(end if how else replace(end, code=code, reason=reason))
            case _:
                return Unread(source, f"its message {number} has no direction with data")
        is_closed = messages[-1].kind == "close"
    if not path:
        return Unread(source, "its messages are those of no API whose path is known")
    return SocketSession(path, (), _OPENED, (), tuple(messages), source=source)


def _path_of(side: Side, data: Any) -> str:
    """The path of the API that has a message; "" where it does not show."""
    fields = data if isinstance(data, dict) else {}
    if side == "client" and "setup" in fields:
        return _GEMINI
    kind = fields.get("type")
    return _REALTIME if kind in ("session.created", "session.update") else ""


# cassetter (conformance/format/all-protocols.json in its repository)

_FRAMES: dict[Any, Kind] = {name: name for name in ("text", "binary", "close", "ping", "pong")}


def read_frames(interaction: Any, source: str) -> SocketSession | Unread:
    """The session of an entry of `ws_interactions`."""
    match interaction:
        case {"uri": str(uri), "frames": list(frames)}:
            pass
        case _:
            return Unread(source, "it is no WebSocket: it has no 'uri' with 'frames'")
    try:
        return SocketSession(
            service_url(uri),
            header_pairs(interaction.get("headers")),
            _OPENED,
            (),
            tuple(_of_frame(frame) for frame in frames),
            at=timestamp(interaction.get("recorded_at")),
            source=source,
        )
    except WireError as error:
        return Unread(source, str(error), f"GET {masked_url(uri)}")


def _of_frame(frame: Any) -> SocketMessage:
    match frame:
        case {
            "direction": "send" | "recv" as direction,
            "frame_type": kind,
            "body": dict(body),
        } if kind in _FRAMES:
            pass
        case _:
            raise WireError("a frame has no direction, frame_type and body")
    at = round(float(frame.get("offset_ms") or 0) * 1000)
    side: Side = "client" if direction == "send" else "service"
    content = body.get("content")
    match body.get("type"):
        case "binary":
            data = from_hex(str(content))
        case "json":
            data = json_bytes(dumps(content))
        case _:
            data = body_bytes(content)
    if kind == "close":
        return close_message(at, side, data)
    return SocketMessage(at, 0, side, _FRAMES[kind], data)


# HTTP archives, as Chrome saves them

_OPCODES: dict[Any, Kind] = {1: "text", 2: "binary", 8: "close", 9: "ping", 10: "pong"}


def read_archived(
    request: Mapping[str, Any],
    response: Mapping[str, Any],
    messages: Sequence[Any],
    began: str,
    source: str,
) -> SocketSession:
    """The session of an entry with `_webSocketMessages`.

    Args:
        began: when it was opened, in ISO 8601.

    Raises:
        WireError: it is malformed.
    """
    at = timestamp(began)
    times = [message["time"] for message in messages if _has_time(message)]
    # From the clock of the browser; a tool may count from the first message.
    first = at if times and abs(times[0] - at) < _DAY else min(times, default=0.0)
    return SocketSession(
        service_url(str(request.get("url", ""))),
        header_pairs(request.get("headers")),
        int(response.get("status") or _OPENED),
        header_pairs(response.get("headers")),
        tuple(_archived_message(message, first) for message in messages),
        at=at,
        source=source,
    )


_DAY = 86400


def _has_time(message: Any) -> bool:
    return isinstance(message, dict) and isinstance(message.get("time"), int | float)


def _archived_message(message: Any, first: float) -> SocketMessage:
    match message:
        case {"type": "send" | "receive" as kind, "opcode": opcode, "data": str(data)} if (
            opcode in _OPCODES
        ):
            pass
        case _:
            raise WireError("a message of the WebSocket has no type, opcode and data")
    at = max(0, round((message["time"] - first) * 1_000_000)) if _has_time(message) else 0
    side: Side = "client" if kind == "send" else "service"
    match _OPCODES[opcode]:
        case "close":
            code = message.get("code")
            return SocketMessage(
                at, 0, side, "close", code=code if isinstance(code, int) else 0, reason=data
            )
        case "binary":
            return SocketMessage(at, 0, side, "binary", from_base64(data))
        case other:
            return SocketMessage(at, 0, side, other, body_bytes(data))
