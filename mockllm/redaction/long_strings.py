"""The long strings of a JSON text, searched while they arrive."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Protocol

from mockllm.redaction.finder import Finder, Found, Scanned

__all__ = ["LongStrings"]


class StringScan(Scanned, Protocol):
    """Searches a string that arrives in parts (`scanning.TextScan`)."""

    @property
    def text(self) -> str:
        """All of it so far."""

    @property
    def is_long(self) -> bool:
        """Whether it is longer than what is searched at once."""

    def add(self, text: str) -> None:
        """Adds a part."""

    def finish(self) -> tuple[Found, ...]:
        """The secrets in it."""


_REST = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_ESCAPED = re.compile(r"[^\\]*(?:\\(?:u[0-9a-fA-F]{4}|[^u])[^\\]*)*", re.DOTALL)
_HIGH_SURROGATE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")


class LongStrings:
    """Searches the long strings of a JSON text while they arrive.

    Args:
        finder: gets those that are long.
        scan: begins a search.
    """

    def __init__(self, finder: Finder, scan: Callable[[], StringScan]) -> None:
        self._finder = finder
        self._begin = scan
        self._inside = False
        self._scan: StringScan | None = None
        self._rest = ""
        """The beginning of an escape whose end is still to come."""

    def add(self, text: str) -> None:
        """Adds a part of the JSON text."""
        text, self._rest, at = self._rest + text, "", 0
        while at < len(text):
            if not self._inside:
                at = text.find('"', at) + 1
                if not at:
                    return
                self._inside = True
                continue
            end = _end(text, at)
            whole = end < len(text) and text[end] == '"'
            if not whole:
                # An escape is left for the next part, and so is half of a pair of them.
                end = _ESCAPED.match(text, at).end()  # type: ignore[union-attr]
                pair = _HIGH_SURROGATE.search(text, max(at, end - 6), end)
                end = end if pair is None else pair.start()
                self._rest = text[end:]
            if self._scan is None and not whole:
                self._scan = self._begin()
            if self._scan is not None:
                self._scan.add(_unescaped(text[at:end]))
            if not whole:
                return
            self._close()
            at = end + 1

    def _close(self) -> None:
        scan, self._scan, self._inside = self._scan, None, False
        if scan is not None and scan.is_long:
            scan.finish()
            self._finder.add_scanned(scan.text, scan)


def _end(text: str, at: int) -> int:
    """Where a string ends that goes on at a position, or the text does."""
    found = _REST.match(text, at)
    assert found is not None
    return found.end()


def _unescaped(written: str) -> str:
    """A part of a JSON string without escapes; nothing where it has one that JSON does not have,
    for then the text is no JSON."""
    if "\\" not in written:
        return written
    try:
        text: str = json.loads(f'"{written}"', strict=False)
    except ValueError:
        return ""
    return text
