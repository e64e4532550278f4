"""Answers that are not what their status and their headers promise."""

from __future__ import annotations

import zlib
from dataclasses import replace

from mockllm.core.http import TimedBytes
from mockllm.core.jsontext import json_bytes
from mockllm.faults.events import seen_events
from mockllm.faults.strikes import service_error
from mockllm.faults.transmission import Transmission, split_at
from mockllm.protocols.base import WireProtocol, dumps

_HTML = "text/html; charset=utf-8"
_PAGE = b"""<!DOCTYPE html>
<html>
<head><title>Sign in to this network</title></head>
<body><h1>Sign in</h1><p>You need to sign in before you can use this network.</p></body>
</html>
"""


def garbled(
    answer: Transmission, what: str, number: int, protocol: WireProtocol
) -> tuple[Transmission | None, str]:
    """The answer with something that cannot be read, or None and why there is nothing to change.

    Args:
        what: `json`, `content-type`, `html`, `error`, `gzip` or `empty`.
        number: of the event that is no JSON, from 1; 0: the last one with JSON.
    """
    match what:
        case "json":
            return _broken_json(answer, number, protocol)
        case "content-type":
            return _with_type(answer, _HTML), ""
        case "html":
            return _replaced(_with_type(answer, _HTML), _PAGE), ""
        case "error":
            body = protocol.error_body(service_error(protocol, "server_error"))
            return _replaced(_with_type(answer, "application/json"), json_bytes(dumps(body))), ""
        case "gzip":
            return _broken_gzip(answer), ""
    return _replaced(answer, b""), ""


def _replaced(answer: Transmission, body: bytes) -> Transmission:
    """The answer with another body, which comes when the first byte was due."""
    parts = (TimedBytes(answer.parts[0].at if answer.parts else 0, body),) if body else ()
    return replace(answer, parts=parts, streamed=False, struck=0, length=None)


def _with_type(answer: Transmission, value: str) -> Transmission:
    others = tuple(pair for pair in answer.headers if pair[0] != "content-type")
    return replace(answer, headers=(("content-type", value), *others), struck=0)


def _broken_json(
    answer: Transmission, number: int, protocol: WireProtocol
) -> tuple[Transmission | None, str]:
    """Without the last brace of an event, or of a body that is not streamed."""
    body = answer.body
    begin, end = 0, len(body)
    if answer.streamed:
        events = seen_events(protocol, body)
        objects = [event for event in events if event.data.startswith("{")]
        if number > len(events) or not objects:
            return None, f"the answer has {len(events)} events"
        event = events[number - 1] if number else objects[-1]
        begin, end = event.begin, event.end
    at = body.rfind(b"}", begin, end)
    if at < 0:
        return None, f"event {number} has no JSON object"
    before, rest = split_at(answer.parts, at)
    parts = before + split_at(rest, 1)[1]
    return replace(answer, parts=parts, struck=begin), ""


def _broken_gzip(answer: Transmission) -> Transmission:
    """The first half compressed, and then a block of a kind that there is not (RFC 1951, 3.2.3)."""
    body = answer.body
    packer = zlib.compressobj(wbits=31)
    data = packer.compress(body[: len(body) // 2]) + packer.flush(zlib.Z_SYNC_FLUSH) + b"\x07"
    due = answer.parts[-1].at if answer.parts else 0
    headers = (*answer.headers, ("content-encoding", "gzip"))
    parts = (TimedBytes(due, data),)
    return replace(answer, headers=headers, parts=parts, struck=0, length=None)
