"""The string values of a document, each with its position: JSON, event streams, JSON lines.

In an event stream the strings with the same path in its events are a channel: the client joins
them. A secret may lie across several of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mockllm.redaction.walk.channels import Channel, channels_of
from mockllm.redaction.walk.event_values import event_values, has_data_line, read_json
from mockllm.redaction.walk.json_strings import Reader, StringValue


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a document in their order, its channels, the exact ones first, and the names
    of all its fields."""

    values: tuple[StringValue, ...]
    channels: tuple[Channel, ...] = ()
    names: frozenset[str] = frozenset()


_SPACE = " \t\r\n"
_BEGINNINGS = frozenset(f"{_SPACE}{{[\ufeff")


def may_be_document(text: str) -> bool:
    """Whether a text is worth a try of `document`."""
    return text[:1] in _BEGINNINGS or "data:" in text


def document(text: str, *, every: bool = False) -> Document | None:
    """The string values of JSON, of an event stream or of JSON lines; None for any other text.

    JSON that breaks off is read as far as it goes.

    Args:
        every: gives names and numbers too, not only the strings that are values.
    """
    base = 1 if text[:1] == "\ufeff" else 0
    first = text[base : base + 1]
    if first and first in _SPACE:
        first = text[base:].lstrip(_SPACE)[:1]
    reader = Reader(every=every)
    if first and first in "{[":
        found = reader.read(text[base:] if base else text, base)
        if found is not None:
            channels = channels_of(found, whole=False, top=1) if first == "[" else ()
            return Document(tuple(found), channels, frozenset(reader.names))
        return _lines(text, reader) or _broken(text, base, reader)
    return _events(text, reader) if has_data_line(text) else None


def _broken(text: str, base: int, reader: Reader) -> Document | None:
    found = read_json(reader, text[base:], base)
    return None if found is None else Document(tuple(found), (), frozenset(reader.names))


_LINE = re.compile(r"[^\r\n]+")


def _lines(text: str, reader: Reader) -> Document | None:
    """JSON lines, of which all but the last must be whole."""
    lines = list(_LINE.finditer(text))
    if len(lines) < 2:
        return None
    found: list[StringValue] = []
    for line in lines:
        values = reader.read(line[0], line.start())
        if values is None and line is lines[-1]:
            values = read_json(reader, line[0], line.start())
        if values is None:
            return None
        found += values
    return Document(tuple(found), channels_of(found, whole=True), frozenset(reader.names))


def _events(text: str, reader: Reader) -> Document | None:
    found = event_values(text, reader)
    if found is None:
        return None
    return Document(tuple(found), channels_of(found, whole=True), frozenset(reader.names))
