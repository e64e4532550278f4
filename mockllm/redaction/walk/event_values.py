"""The string values of an event stream: those of the JSON in it, and the plain text between."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mockllm.redaction.walk.broken_json import completed
from mockllm.redaction.walk.json_strings import Field, Reader, StringValue

_SPACE = " \t\r\n"
_SHORTEST = len("data: ") + 1


def read_json(reader: Reader, text: str, base: int) -> list[StringValue] | None:
    """The values of JSON, whole or broken off."""
    found = reader.read(text, base)
    if found is None:
        whole = completed(text)
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
            inner = read_json(reader, payload, 0)
            if inner is None:
                continue
            some = True
            _move(inner, segments)
        elif len(segments) > 1:
            continue
        else:
            inner = [StringValue(start, end, payload, _PAYLOAD)]
        values += [*_plain(text, done, start), *inner]
        done = end
    return [*values, *_plain(text, done, len(text))] if some else None


def _payloads(text: str) -> Iterator[list[tuple[int, int]]]:
    """For each event the spans of its `data` lines."""
    segments: list[tuple[int, int]] = []
    lines = _lines_in(text) if "\r" in text else _simple_lines_in(text)
    for start, data, stop in lines:
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


def _simple_lines_in(text: str) -> Iterator[tuple[int, int | None, int]]:
    """The same for a text that has no carriage return, in less time."""
    start = int(text.startswith("\ufeff"))
    while start < len(text):
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        data = None
        if text.startswith("data:", start):
            data = start + 6 if text.startswith(" ", start + 5) else start + 5
        yield start, data, stop
        start = stop + 1


def _plain(text: str, start: int, end: int) -> list[StringValue]:
    """The part of a text between two payloads."""
    if end - start < _SHORTEST:
        return []
    return [StringValue(start, end, text[start:end], _BETWEEN)]


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
