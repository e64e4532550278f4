"""Reads event streams as they arrive: the string values of the JSON in them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from mockllm.redaction.broken_json import completed
from mockllm.redaction.channels import CONSTANT
from mockllm.redaction.json_strings import Field, Reader, StringValue

__all__ = ["EventReader", "has_data_line", "read_json"]

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


class EventReader:
    """Reads an event stream with JSON in it as it arrives; between its JSON documents there is
    plain text.

    Args:
        every: gives names and numbers too, not only the strings that are values.
        seen: strings that are left out where they are in no channel.
    """

    def __init__(self, *, every: bool = False, seen: Container[str] = ()) -> None:
        self._reader = Reader(every=every, constant=CONSTANT, seen=seen)
        self._parts: list[str] = []
        self._base = 0
        """The position where `_parts` begin: the end of the last payload that was read."""
        self._line = 0
        """The position of the first line that has not been read."""
        self._segments: list[tuple[int, int]] = []
        self.some = False
        """Whether a payload was JSON."""

    @property
    def names(self) -> set[str]:
        """The names of the fields so far."""
        return self._reader.names

    def add(self, text: str) -> list[StringValue]:
        """Adds text; the values that are whole now, in their order."""
        self._parts.append(text)
        if "\n" not in text and "\r" not in text:
            # A line feed may follow a carriage return at the end of what was there before.
            return []
        whole = "".join(self._parts)
        # A carriage return at the end may be half of a line end.
        end = max(whole.rfind("\n"), whole.rfind("\r", 0, len(whole) - 1)) + 1
        return self._read(whole, end, last=False)

    def finish(self) -> list[StringValue]:
        """The values that the end of the stream completes."""
        whole = "".join(self._parts)
        found = self._read(whole, len(whole), last=True)
        rest = "".join(self._parts)
        return [*found, *_plain(rest, self._base, 0, len(rest))]

    def _read(self, text: str, end: int, *, last: bool) -> list[StringValue]:
        found: list[StringValue] = []
        base, done = self._base, 0
        for segments in self._payloads(text, end, last=last):
            done = self._payload(text, base, done, segments, found)
        self._parts = [text[done:]]
        self._base = base + done
        return found

    def _payloads(self, text: str, end: int, *, last: bool) -> Iterator[list[tuple[int, int]]]:
        """For each event the spans of its `data` lines, counted from the beginning of `text`."""
        base = self._base
        start = self._line - base
        if self._line == 0 and text[:1] == "\ufeff":
            start = 1
        lines = _lines_in if last or "\r" in text else _simple_lines_in
        for first, data, stop in lines(text, start, end):
            if stop == first:
                if self._segments:
                    segments = [(begin - base, close - base) for begin, close in self._segments]
                    self._segments = []
                    yield segments
            elif data is not None:
                self._segments.append((base + data, base + stop))
        self._line = base + end
        if last and self._segments:
            yield [(first - base, stop - base) for first, stop in self._segments]

    def _payload(
        self,
        text: str,
        base: int,
        done: int,
        segments: list[tuple[int, int]],
        found: list[StringValue],
    ) -> int:
        """Adds the values of a payload, and of the text before it; where that ends in `text`."""
        payload = "\n".join([text[start:stop] for start, stop in segments])
        first, (_, end) = segments[0], segments[-1]
        if payload.lstrip(_SPACE)[:1] not in ("{", "["):
            if len(segments) > 1:
                return done
            found += _plain(text, base, done, first[0])
            found.append(StringValue(base + first[0], base + end, payload, _PAYLOAD))
            return end
        values = read_json(self._reader, payload, 0)
        if values is None:
            return done
        self.some = True
        _move(values, [(base + start, base + stop) for start, stop in segments])
        found += _plain(text, base, done, first[0])
        found += values
        return end


def _lines_in(text: str, start: int, end: int) -> Iterator[tuple[int, int | None, int]]:
    """The lines of a part of a text: begin, begin of its data (None without), end. After the last
    line end there is an empty line."""
    for line in _SSE_LINE.finditer(text, start, end):
        data = text.startswith("data:", line.start())
        yield line.start(), line.start(1) if data else None, line.end(1)


def _simple_lines_in(text: str, start: int, end: int) -> Iterator[tuple[int, int | None, int]]:
    """The same for a part that ends in a line end and has no carriage return, in less time."""
    while start < end:
        stop = text.find("\n", start)
        data = None
        if text.startswith("data:", start):
            data = start + 6 if text.startswith(" ", start + 5) else start + 5
        yield start, data, stop
        start = stop + 1


def _plain(text: str, base: int, start: int, end: int) -> list[StringValue]:
    """The part of a text between two payloads; `base` is the position of the text."""
    if end - start < _SHORTEST:
        return []
    return [StringValue(base + start, base + end, text[start:end], _BETWEEN)]


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
