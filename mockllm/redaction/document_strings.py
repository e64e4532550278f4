"""The string values of a document, each with its position: JSON, event streams, JSON lines.

In an event stream the strings with the same path in its events are a channel: the client joins
them. A secret may lie across several of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mockllm.redaction.json_strings import Field, Reader, StringValue, completed

__all__ = ["Channel", "Document", "document"]


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


@dataclass(frozen=True, slots=True)
class Document:
    """The values of a document in their order, its channels, the exact ones first, and the names
    of all its fields."""

    values: tuple[StringValue, ...]
    channels: tuple[Channel, ...] = ()
    names: frozenset[str] = frozenset()


_SPACE = " \t\r\n"
_SHORTEST = len("data: ") + 1
_FRAGMENTS = frozenset(
    [
        "content",
        "text",
        "delta",
        "arguments",
        "partial_json",
        "thinking",
        "reasoning",
        "reasoning_content",
        "refusal",
        "summary_text",
        "input",
        "partial",
    ]
)
_CONSTANT = frozenset(
    [
        "id",
        "object",
        "model",
        "type",
        "role",
        "name",
        "event",
        "status",
        "finish_reason",
        "stop_reason",
        "item_id",
        "response_id",
        "call_id",
        "messageId",
        "toolCallId",
        "parentMessageId",
        "threadId",
        "runId",
        "message_id",
        "tool_call_id",
        "system_fingerprint",
        "service_tier",
        "obfuscation",
        "signature",
        "encrypted_content",
        "thoughtSignature",
        "responseId",
        "modelVersion",
        "finishReason",
        "toolCallName",
    ]
)


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
    return _events(text, reader) if _DATA.search(text) else None


def _parsed(reader: Reader, text: str, base: int) -> list[StringValue] | None:
    """The values of JSON, whole or broken off."""
    found = reader.read(text, base)
    if found is None:
        whole = completed(text)
        found = None if whole is None else reader.read(whole, base)
    return found


def _broken(text: str, base: int, reader: Reader) -> Document | None:
    found = _parsed(reader, text[base:], base)
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
            values = _parsed(reader, line[0], line.start())
        if values is None:
            return None
        found += values
    return Document(tuple(found), _channels(found, whole=True), frozenset(reader.names))


_DATA = re.compile(r"(?:\A\ufeff?|[\r\n])data:")
_BETWEEN = Field(kind="plain")
_PAYLOAD = Field(kind="payload")
_SSE_LINE = re.compile(r"(?:data: ?)?([^\r\n]*)(\r\n|\r|\n|\Z)")


def _events(text: str, reader: Reader) -> Document | None:
    """An event stream with JSON in it; between its JSON documents there is plain text."""
    found: list[StringValue] = []
    end, some = 0, False
    for segments in _payloads(text):
        payload = "\n".join(text[start:stop] for start, stop in segments)
        if payload.lstrip(_SPACE)[:1] not in ("{", "["):
            if len(segments) == 1:
                start, stop = segments[0]
                found += _plain(text, end, start)
                found.append(StringValue(start, stop, payload, _PAYLOAD))
                end = stop
            continue
        values = _parsed(reader, payload, 0)
        if values is None:
            continue
        some = True
        _move(values, segments)
        found += _plain(text, end, segments[0][0])
        found += values
        end = segments[-1][1]
    if not some:
        return None
    found += _plain(text, end, len(text))
    return Document(tuple(found), _channels(found, whole=True), frozenset(reader.names))


def _plain(text: str, start: int, end: int) -> list[StringValue]:
    if end - start < _SHORTEST:
        return []
    return [StringValue(start, end, text[start:end], _BETWEEN)]


def _payloads(text: str) -> Iterator[list[tuple[int, int]]]:
    """For each event the spans of its `data` lines."""
    segments: list[tuple[int, int]] = []
    for line in _SSE_LINE.finditer(text, 1 if text[:1] == "\ufeff" else 0):
        if line.end(1) == line.start():
            if segments:
                yield segments
            segments = []
        elif text.startswith("data:", line.start()):
            segments.append(line.span(1))
    if segments:
        yield segments


def _move(values: list[StringValue], segments: list[tuple[int, int]]) -> None:
    """From positions in the payload to positions in the stream."""
    if len(segments) == 1:
        base = segments[0][0]
        for value in values:
            value.start += base
            value.end += base
        return
    starts: list[int] = []
    for start, end in segments:
        starts += range(start, end + 1)
    for value in values:
        # No string of JSON holds a line break, so each lies in one line.
        length = value.end - value.start
        value.start = starts[value.start]
        value.end = value.start + length


def _channels(found: list[StringValue], *, whole: bool, top: int = 0) -> tuple[Channel, ...]:
    """The channels; `top` is how many first steps of the paths only count the documents."""
    exact: dict[Any, list[StringValue]] = {}
    loose: dict[Any, dict[Any, list[StringValue]]] = {}
    for value in found:
        field = value.field
        if field.name in _CONSTANT or field.kind not in ("string", "payload"):
            continue
        path = field.path[top:]
        key = field.kind, path, value.ids
        if key not in exact:
            exact[key] = []
            if field.name in _FRAGMENTS:
                rough = tuple(step for step in path if isinstance(step, str)), value.ids[0]
                loose.setdefault(rough, {})[key] = exact[key]
        exact[key].append(value)
    channels = [
        Channel(tuple(values), True, whole and values[0].field.name in _FRAGMENTS)
        for values in exact.values()
    ]
    for groups in loose.values():
        if len(groups) > 1:
            joined = [value for group in groups.values() for value in group]
            joined.sort(key=lambda value: value.start)
            channels.append(Channel(tuple(joined), False, False))
    return tuple(channels)
