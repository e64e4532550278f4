"""The string values of a document, each with its position: JSON, event streams, JSON lines.

In an event stream the strings with the same path in its events are a channel: the client joins
them. A secret may lie across several of them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from mockllm.record.redaction.find.spans import Found
from mockllm.record.redaction.walk.json_strings import (
    Field,
    Reader,
    StringValue,
    api_fields,
    decode_json,
)

_SPACE = " \t\r\n"
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*("?)|[\[\]{}]', re.DOTALL)
_HALF_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?\Z")


def complete_json(text: str) -> str | None:
    """A JSON text that breaks off, with what closes it; None where that does not make it JSON."""
    open_: list[str] = []
    inside = False
    for token in _BRACKETS.finditer(text):
        if token[0][0] == '"':
            inside = token[1] == ""
        elif token[0] in "{[":
            open_.append("}" if token[0] == "{" else "]")
        elif open_:
            open_.pop()
    if inside:
        text = _HALF_ESCAPE.sub(r"\1", text) + '"'
    elif open_:
        text = text.rstrip(_SPACE).removesuffix(",")
    else:
        return None
    for missing in ("", "null", ":null"):
        candidate = text + missing + "".join(reversed(open_))
        try:
            decode_json(candidate)
        except (ValueError, RecursionError):
            continue
        return candidate
    return None


_SHORTEST = len("data: ") + 1


def read_json(reader: Reader, text: str, base: int) -> list[StringValue] | None:
    """The values of JSON, whole or broken off."""
    found = reader.read(text, base)
    if found is None:
        whole = complete_json(text)
        found = None if whole is None else reader.read(whole, base)
    return found


_DATA = re.compile(r"(?:\A\ufeff?|[\r\n])data:")
_BETWEEN = Field(kind="plain")
_PAYLOAD = Field(kind="payload")
_SSE_LINE = re.compile(r"(?:data: ?)?([^\r\n]*)(\r\n|\r|\n|\Z)")


def has_data_line(text: str) -> bool:
    """Whether a text has a line of data, as event streams have."""
    return "data:" in text and _DATA.search(text) is not None


def event_values(text: str, reader: Reader) -> list[StringValue] | None:
    """The values of an event stream in their order; None where no event has JSON.

    Args:
        reader: of the JSON; it decides whether names and numbers are among the values.
    """
    values: list[StringValue] = []
    some, done = False, 0
    for segments in _payloads(text):
        payload = "\n".join([text[start:stop] for start, stop in segments])
        start, end = segments[0][0], segments[-1][1]
        if payload.lstrip(_SPACE)[:1] in ("{", "["):
            inner = read_json(reader, payload, start if len(segments) == 1 else 0)
            if inner is None:
                continue
            some = True
            if len(segments) > 1:
                _move(inner, segments)
        elif len(segments) > 1:
            continue
        else:
            inner = [StringValue(start, end, payload, _PAYLOAD)]
        values += [*_plain(text, done, start), *inner]
        done = end
    return [*values, *_plain(text, done, len(text))] if some else None


def _payloads(text: str) -> Iterator[list[tuple[int, int]]]:
    segments: list[tuple[int, int]] = []
    for start, data, stop in _lines_in(text):
        if data is not None:
            segments.append((data, stop))
        elif stop == start and segments:
            yield segments
            segments = []
    if segments:
        yield segments


def _lines_in(text: str) -> Iterator[tuple[int, int | None, int]]:
    """The lines of a text: begin, begin of its data (None without), end."""
    for line in _SSE_LINE.finditer(text, text.startswith("\ufeff")):
        data = text.startswith("data:", line.start())
        yield line.start(), line.start(1) if data else None, line.end(1)


def _plain(text: str, start: int, end: int) -> list[StringValue]:
    if end - start < _SHORTEST:
        return []
    return [StringValue(start, end, text[start:end], _BETWEEN)]


def _move(values: list[StringValue], segments: list[tuple[int, int]]) -> None:
    starts: list[int] = []
    for start, end in segments:
        starts += range(start, end + 1)
    for value in values:
        # No string of JSON holds a line break, so each lies in one line.
        length = value.end - value.start
        value.start = starts[value.start]
        value.end = value.start + length


_Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Channel:
    """Strings that a client joins.

    Args:
        exact: whether the client joins these and no others; otherwise they are a guess, which is
            right where a service names its items in the first event only.
        whole: whether its strings are fragments, which mean nothing alone.
    """

    values: tuple[StringValue, ...]
    exact: bool
    whole: bool


def channels_of(values: Iterable[StringValue], *, whole: bool, top: int = 0) -> tuple[Channel, ...]:
    """The channels of the values of a document, the exact ones first.

    Args:
        whole: whether fragments mean nothing alone, as in events.
        top: how many first steps of the paths only count the documents.
    """
    fragments, constants = api_fields().fragments, api_fields().labels | api_fields().opaque
    exact: dict[_Key, list[StringValue]] = {}
    loose: dict[_Key, dict[_Key, list[StringValue]]] = {}
    for value in values:
        field = value.field
        if field.name in constants or field.kind not in ("string", "payload"):
            continue
        if top and len(field.path) == top:
            continue  # a document that is a string, as in a list of ids
        key = (field.kind, field.path[top:], value.ids)
        if key not in exact:
            exact[key] = []
            if field.name in fragments:
                # Of a call of Chat Completions, the first fragment alone has the id.
                names = tuple(step for step in field.path[top:] if isinstance(step, str))
                loose.setdefault((names, value.ids[0]), {})[key] = exact[key]
        exact[key].append(value)
    channels = [
        Channel(tuple(group), True, whole and group[0].field.name in fragments)
        for group in exact.values()
    ]
    for groups in loose.values():
        if len(groups) > 1:
            joined = [value for group in groups.values() for value in group]
            joined.sort(key=lambda value: value.start)
            channels.append(Channel(tuple(joined), False, False))
    return tuple(channels)


def union(values: Sequence[StringValue], found: Iterable[Found]) -> list[Found]:
    """The spans in joined strings, at its positions in the document."""
    found = list(found)
    if not found:
        return []
    ends = list(accumulate(len(value.text) for value in values))
    return [replace(secret, parts=tuple(_over(values, ends, secret.parts))) for secret in found]


def _over(
    values: Sequence[StringValue], ends: Sequence[int], parts: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    for start, end in parts:
        index = bisect_right(ends, start)
        while start < end:
            base = ends[index] - len(values[index].text)
            stop = min(end, ends[index])
            if stop > start:
                yield values[index].span(start - base, stop - base)
            start, index = stop, index + 1


def longer_than(certain: Iterable[Found], found: Iterable[Found], channel: Channel) -> list[Found]:
    """Those found that go on where the channel of their first fragment, which alone names the item,
    ends: they are more than what that channel shows of them."""
    nameless = [value for value in channel.values if len(value.ids) == 1]
    if not nameless:
        return []
    starts = [value.start for value in nameless]
    begun: dict[tuple[int, int], list[Found]] = {}
    for secret in certain:
        if secret.kind:
            begun.setdefault(secret.parts[0], []).append(secret)

    def is_nameless(part: tuple[int, int]) -> bool:
        value = nameless[bisect_right(starts, part[0]) - 1]
        return value.start <= part[0] and part[1] <= value.end

    return [
        secret
        for secret in found
        if any(
            secret.parts[: len(begin.parts)] == begin.parts
            and len(secret.parts) > len(begin.parts)
            and secret.secret.startswith(begin.secret)
            and all(map(is_nameless, secret.parts[len(begin.parts) :]))
            for begin in begun.get(secret.parts[0], ())
        )
    ]


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a document in their order, its channels, the exact ones first, and the names
    of all its fields."""

    values: tuple[StringValue, ...]
    channels: tuple[Channel, ...] = ()
    names: frozenset[str] = frozenset()


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
    """JSON lines, of which the first must be whole. The last may break off, and other lines may be
    no JSON, such as the end mark of a stream."""
    lines = list(_LINE.finditer(text))
    if len(lines) < 2 or reader.read(lines[0][0]) is None:
        return None
    found: list[StringValue] = []
    done = 0
    for line in lines:
        values = reader.read(line[0], line.start())
        if values is None and line is lines[-1]:
            values = read_json(reader, line[0], line.start())
        if values is not None:
            found += [*_plain(text, done, line.start()), *values]
            done = line.end()
    found += _plain(text, done, len(text))
    return Document(tuple(found), channels_of(found, whole=True), frozenset(reader.names))


def _events(text: str, reader: Reader) -> Document | None:
    found = event_values(text, reader)
    if found is None:
        return None
    return Document(tuple(found), channels_of(found, whole=True), frozenset(reader.names))
