"""Typed netstrings, the format of mitmproxy's flow files: https://tnetstrings.info.

A value is `LENGTH:DATA` and a letter for its type. mitmproxy adds `;` for text in UTF-8, where `,`
is bytes. Its flow files hold one value after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from mockllm.errors import WireError

MAX_DEPTH = 32
"""How deeply lists and mappings may be nested."""

MAX_VALUES = 1_000_000
"""How many values one value may hold."""

_LENGTH = re.compile(rb"(0|[1-9][0-9]{0,11}):")
# What may still become a length, where the data end.
_LENGTH_BEGUN = re.compile(rb"(?:0|[1-9][0-9]{0,11})?\Z")
_INTEGER = re.compile(rb"-?[0-9]{1,20}\Z")
_FLOAT = re.compile(rb"(?:-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:e[+-]?[0-9]{1,4})?|-?inf|nan)\Z")


class IncompleteError(WireError):
    """The data end inside a value."""


def values(data: bytes) -> Iterator[tuple[Any, int, int]]:
    """The values in data, each with the offsets of its first byte and of the byte after it.

    Raises:
        IncompleteError: the data end inside a value; those before it were returned.
        WireError: something is no typed netstring, with its offset.
    """
    view = memoryview(data)
    at = 0
    while at < len(data):
        value, end = _Reading(view).value(at, len(data), 0)
        yield value, at, end
        at = end


def loads(data: bytes) -> Any:
    """The only value in data.

    Raises:
        IncompleteError: the data end inside the value.
        WireError: they are no typed netstring, or have more than one.
    """
    value, end = _Reading(memoryview(data)).value(0, len(data), 0)
    if end != len(data):
        raise WireError(f"byte {end}: more data after the value")
    return value


class _Reading:
    """Reads one value, and counts what is in it."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._left = MAX_VALUES

    def value(self, at: int, end: int, depth: int) -> tuple[Any, int]:
        """The value at an offset, and the offset after it.

        Args:
            end: where what the value is part of ends.
        """
        self._left -= 1
        if self._left < 0:
            raise WireError(f"byte {at}: a value holds more than {MAX_VALUES:,} others")
        if depth > MAX_DEPTH:
            raise WireError(f"byte {at}: nested more than {MAX_DEPTH} deep")
        start, stop = self._extent(at, end, depth)
        letter = chr(self._data[stop])
        if letter == "]":
            return self._items(start, stop, depth), stop + 1
        if letter == "}":
            return self._mapping(start, stop, depth), stop + 1
        read = _SCALARS.get(letter)
        if read is None:
            raise WireError(f"byte {stop}: there is no type {letter!r}")
        try:
            return read(bytes(self._data[start:stop])), stop + 1
        except ValueError as error:
            raise WireError(f"byte {start}: {error}") from None

    def _extent(self, at: int, end: int, depth: int) -> tuple[int, int]:
        """The offsets of a value's data: of the first byte, and of its type after the last one."""
        head = bytes(self._data[at : min(at + 13, end)])
        found = _LENGTH.match(head)
        if found is None:
            if _LENGTH_BEGUN.match(head) and at + len(head) == end:
                raise self._incomplete(at, depth)
            raise WireError(f"byte {at}: not a length and a colon")
        start = at + found.end()
        stop = start + int(found[1])
        if stop >= end:
            raise self._incomplete(at, depth)
        return start, stop

    def _incomplete(self, at: int, depth: int) -> WireError:
        """The error for a value that is too long: inside another one the length is wrong."""
        if depth:
            return WireError(f"byte {at}: a value is longer than what holds it")
        return IncompleteError(f"the data end inside the value that begins at byte {at}")

    def _items(self, at: int, end: int, depth: int) -> list[Any]:
        found = []
        while at < end:
            item, at = self.value(at, end, depth + 1)
            found.append(item)
        return found

    def _mapping(self, at: int, end: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while at < end:
            begin = at
            key, at = self.value(at, end, depth + 1)
            if isinstance(key, bytes):
                # Files of Python 2 have bytes.
                key = key.decode("ascii", "surrogateescape")
            if not isinstance(key, str):
                raise WireError(f"byte {begin}: a key is no text")
            if at >= end:
                raise WireError(f"byte {begin}: the key {key!r} has no value")
            found[key], at = self.value(at, end, depth + 1)
        return found


def _integer(data: bytes) -> int:
    if not _INTEGER.match(data):
        raise ValueError("not an integer")
    return int(data)


def _float(data: bytes) -> float:
    if not _FLOAT.match(data):
        raise ValueError("not a number")
    return float(data)


def _boolean(data: bytes) -> bool:
    if data not in (b"true", b"false"):
        raise ValueError("neither true nor false")
    return data == b"true"


def _null(data: bytes) -> None:
    if data:
        raise ValueError("a null has data")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


_SCALARS: dict[str, Callable[[bytes], Any]] = {
    ",": bytes,
    ";": _text,
    "#": _integer,
    "^": _float,
    "!": _boolean,
    "~": _null,
}
