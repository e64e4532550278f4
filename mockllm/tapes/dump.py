"""Writes tapes: the inverse of `mockllm.tapes.load`."""

from __future__ import annotations

import base64
import json
from typing import Any

from mockllm.scenario.jsontext import compact
from mockllm.tapes.model import FORMAT_VERSION, MARK, Tape

__all__ = ["dump_tape"]


def dump_tape(tape: Tape) -> bytes:
    """The bytes of a tape's file."""
    first: dict[str, Any] = {
        MARK: FORMAT_VERSION,
        "api": tape.api,
        "streamed": tape.streamed,
        "status": tape.status,
        "cut": tape.cut,
        "chunks": len(tape.chunks),
        "digest": tape.digest,
        "headers": [list(pair) for pair in tape.headers],
    }
    if tape.request is not None:
        request = tape.request
        first["request"] = {
            "method": request.method,
            "url": request.url,
            "headers": [list(pair) for pair in request.headers],
            "body": _dump_body(request.body),
        }
    lines: list[Any] = [first, *([chunk.at, _dump_bytes(chunk.data)] for chunk in tape.chunks)]
    return b"".join(compact(line).encode() + b"\n" for line in lines)


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
