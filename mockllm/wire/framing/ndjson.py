"""JSON lines: a JSON value a line, each ended by LF (https://github.com/ndjson/ndjson-spec)."""

from __future__ import annotations

import re

from mockllm.core.events import Frame, LineEnd
from mockllm.core.jsontext import json_bytes
from mockllm.wire.framing.carrier import Carrier, Span


def encode(frame: Frame, _line_end: LineEnd = "lf") -> bytes:
    """The line of a frame."""
    return json_bytes(frame.raw if frame.raw is not None else f"{frame.data or ''}\n")


def line(block: bytes) -> list[Frame]:
    """The frame of a line; none of a blank one."""
    data = block.decode("utf-8", "replace").strip("\r\n")
    return [Frame(data)] if data.strip() else []


_END = re.compile(rb"\n")


class LineScanner:
    """Finds the lines of a stream. LF ends a line, and the end of the stream the last one."""

    def __init__(self) -> None:
        self._begin = self._size = 0

    def read(self, data: bytes) -> list[Span]:
        """The lines that these bytes complete, with their ends."""
        spans: list[Span] = []
        for found in _END.finditer(data):
            spans.append((self._begin, self._size + found.end()))
            self._begin = self._size + found.end()
        self._size += len(data)
        return spans

    def close(self) -> list[Span]:
        """The last line, if nothing ends it."""
        return [(self._begin, self._size)] if self._begin < self._size else []


NDJSON = Carrier("ndjson", "application/x-ndjson", encode, LineScanner, line)
"""Ollama, and Cohere's first version."""
