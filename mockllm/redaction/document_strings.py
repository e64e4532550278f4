"""The string values of a document, each with its position: JSON, event streams, JSON lines.

In an event stream the strings with the same path in its events are a channel: the client joins
them. A secret may lie across several of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mockllm.redaction.channels import Channel, channel_key, is_fragment, loose_key
from mockllm.redaction.event_reader import EventReader, has_data_line, read_json
from mockllm.redaction.json_strings import Reader, StringValue

__all__ = ["Document", "document"]


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a document in their order, its channels, the exact ones first, and the names
    of all its fields."""

    values: tuple[StringValue, ...]
    channels: tuple[Channel, ...] = ()
    names: frozenset[str] = frozenset()


_SPACE = " \t\r\n"


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
            channels = _channels(found, whole=False, top=1) if first == "[" else ()
            return Document(tuple(found), channels, frozenset(reader.names))
        return _lines(text, reader) or _broken(text, base, reader)
    return _events(text, every=every) if has_data_line(text) else None


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
    return Document(tuple(found), _channels(found, whole=True), frozenset(reader.names))


def _events(text: str, *, every: bool) -> Document | None:
    reader = EventReader(every=every)
    found = [*reader.add(text), *reader.finish()]
    if not reader.some:
        return None
    return Document(tuple(found), _channels(found, whole=True), frozenset(reader.names))


def _channels(found: list[StringValue], *, whole: bool, top: int = 0) -> tuple[Channel, ...]:
    """The channels; `top` is how many first steps of the paths only count the documents."""
    exact: dict[Any, list[StringValue]] = {}
    loose: dict[Any, dict[Any, list[StringValue]]] = {}
    for value in found:
        key = channel_key(value, top)
        if key is None:
            continue
        if key not in exact:
            exact[key] = []
            rough = loose_key(key, value.field.name)
            if rough is not None:
                loose.setdefault(rough, {})[key] = exact[key]
        exact[key].append(value)
    channels = [
        Channel(tuple(values), True, whole and is_fragment(values[0])) for values in exact.values()
    ]
    for groups in loose.values():
        if len(groups) > 1:
            joined = [value for group in groups.values() for value in group]
            joined.sort(key=lambda value: value.start)
            channels.append(Channel(tuple(joined), False, False))
    return tuple(channels)
