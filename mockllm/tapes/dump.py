"""Writes tapes: the inverse of `mockllm.tapes.load`."""

from __future__ import annotations

import base64
import json
from typing import Any

from mockllm.scenario.jsontext import compact
from mockllm.tapes.model import FORMAT_VERSION, MARK, Tape

__all__ = ["dump_tape"]


def dump_tape(tape: Tape) -> bytes:
    """The bytes of the file."""
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
        asked = tape.request
        first["request"] = {
            "method": asked.method,
            "url": asked.url,
            "headers": [list(pair) for pair in asked.headers],
            "body": _written_body(asked.body),
        }
    lines: list[Any] = [first, *([piece.at, _written(piece.data)] for piece in tape.chunks)]
    return b"".join(compact(line).encode() + b"\n" for line in lines)


def _written(data: bytes) -> Any:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _written_body(body: bytes) -> Any:
    """A body as JSON where it is written the usual way, for people to read."""
    try:
        value = json.loads(body)
        if compact(value).encode() == body:
            return {"json": value}
    except (ValueError, RecursionError):
        pass
    return _written(body)
