"""One JSON array that arrives in pieces (RFC 8259, section 5): each element is a frame."""

from __future__ import annotations

import re

from mockllm.core.events import Frame, LineEnd
from mockllm.core.jsontext import json_bytes
from mockllm.wire.framing.carrier import Carrier, Span

_TOKEN = re.compile(rb'["\\{}\[\],]')


class ElementScanner:
    """Finds where the elements of one array begin and end in its bytes.

    It trusts that the bytes are JSON; in others it finds elements that are none.
    """

    def __init__(self) -> None:
        self._size = 0
        self._depth = 0
        self._in_string = self._escaped = False
        self._begin: int | None = None

    def read(self, data: bytes) -> list[Span]:
        """The objects and arrays that these bytes complete: the bytes at which each begins and
        ends. Elements of other kinds are left out."""
        elements: list[Span] = []
        skipped = -1
        if self._escaped:
            self._escaped, skipped = not data, 0
        for token in _TOKEN.finditer(data):
            if token.start() == skipped:
                continue
            if self._in_string:
                if token[0] == b"\\":
                    skipped = token.start() + 1
                    self._escaped = skipped == len(data)
                self._in_string = token[0] != b'"'
                continue
            self._structure(token[0], self._size + token.start(), elements)
        self._size += len(data)
        return elements

    def close(self) -> list[Span]:
        """Nothing: incomplete elements are dropped."""
        return []

    def _structure(self, token: bytes, at: int, elements: list[Span]) -> None:
        if token == b'"':
            self._in_string = True
        elif token in b"{[":
            if self._depth == 1:
                self._begin = at
            self._depth += 1
        elif token in b"}]":
            self._depth -= 1
            if self._depth == 1 and self._begin is not None:
                elements.append((self._begin, at + 1))
                self._begin = None


def encode(frame: Frame, _line_end: LineEnd = "lf") -> bytes:
    """The bytes of an element. The protocol writes what stands between two."""
    return json_bytes(frame.raw if frame.raw is not None else frame.data or "")


def element(block: bytes) -> list[Frame]:
    """The frame of an element."""
    return [Frame(block.decode("utf-8", "replace"))]


JSON_ARRAY = Carrier("json_array", "application/json", encode, ElementScanner, element)
"""Gemini, where the client does not ask for events."""
