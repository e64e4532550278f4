"""Writes tapes: the inverse of `mockllm.tapes.load`."""

from __future__ import annotations

import base64
import json
from json.encoder import encode_basestring
from typing import Any

from mockllm.core.http import TimedBytes
from mockllm.core.jsontext import compact
from mockllm.tapes.model import FORMAT_VERSION, MARK, Tape


def dump_tape(tape: Tape) -> bytes:
    """The bytes of a tape's file."""
    first: dict[str, Any] = {
        MARK: FORMAT_VERSION,
        "api": tape.api,
        "streamed": tape.streamed,
        "status": tape.status,
        "cut": tape.cut,
        "chunks": len(tape.chunks),
        "headers": [list(pair) for pair in tape.headers],
    }
    if tape.reason is not None:
        first["reason"] = tape.reason
    if tape.trailers:
        first["trailers"] = [list(pair) for pair in tape.trailers]
    if tape.request is not None:
        request = tape.request
        first["request"] = {
            "method": request.method,
            "url": request.url,
            "headers": [list(pair) for pair in request.headers],
            "body": _dump_body(request.body),
        }
    lines = [compact(first), *[_dump_chunk(chunk) for chunk in tape.chunks], ""]
    return "\n".join(lines).encode()


def _dump_chunk(chunk: TimedBytes) -> str:
    """The line of a chunk, as `compact` writes it, in a third of the time: there may be many."""
    try:
        return f"[{chunk.at},{encode_basestring(chunk.data.decode())}]"
    except UnicodeDecodeError:
        return compact([chunk.at, _dump_bytes(chunk.data)])


def _dump_bytes(data: bytes) -> Any:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _dump_body(body: bytes) -> Any:
    """A body as JSON, for people to read, if compact JSON has the same bytes."""
    try:
        value = json.loads(body)
        if compact(value).encode() == body:
            return {"json": value}
    except (ValueError, RecursionError):
        pass
    return _dump_bytes(body)
