"""Searches a long text in windows, as it arrives.

A text has zones of equal length. The secrets that begin in a zone are searched for in a window
around it. So the result depends on the text alone, not on the parts in which it arrives, and a text
is searched at a cost that is proportional to its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mockllm.redaction.encodings import text_in_base64_at_end

if TYPE_CHECKING:
    from mockllm.redaction.finder import Found

__all__ = ["LONGEST_WHOLE", "WindowSizes", "WindowedSearch"]


@dataclass(frozen=True, slots=True)
class WindowSizes:
    """The parts of a window, in characters.

    Args:
        zone: what is searched.
        before: what decides about a secret may be so far before it.
        after: a secret may be so long; where one goes on at the end, the window becomes longer.
        at_end: a secret that ends so near to the end of a window may go on.
    """

    zone: int = 1 << 15
    before: int = 1 << 12
    after: int = 1 << 14
    at_end: int = 256

    @property
    def whole(self) -> int:
        """Up to this length a text is searched at once."""
        return self.before + self.zone + self.after


_SIZES = WindowSizes()
LONGEST_WHOLE = _SIZES.whole
"""Characters up to which a text is searched at once."""

Search = Callable[[str], "Iterable[Found]"]


@dataclass(frozen=True, slots=True)
class _Zone:
    """A zone that was searched.

    Args:
        start, end: its own positions; those of the window are `window_start` and `window_end`.
        found: the secrets that begin in it.
    """

    start: int
    end: int
    window_start: int
    window_end: int
    found: tuple[Found, ...]


class WindowedSearch:
    """The secrets of a text that arrives in parts.

    Args:
        search: finds secrets in a text; those that it finds at the end of a window are searched
            for in a longer one.
        sizes: of the windows.
    """

    def __init__(self, search: Search, sizes: WindowSizes = _SIZES) -> None:
        self._search = search
        self._sizes = sizes
        self._parts: list[str] = []
        self._base = 0
        """The position where `_parts` begin."""
        self._size = 0
        self._next = sizes.whole + 1
        """The size at which the next zone can be searched."""
        self._zones: list[_Zone] = []

    def add(self, text: str) -> None:
        """Adds text; searches the zones whose windows are whole now."""
        self._parts.append(text)
        self._size += len(text)
        if self._size < self._next:
            return
        whole = "".join(self._parts)
        while self._size >= self._next:
            start = self._zones[-1].end if self._zones else 0
            zone = self._zone(whole, self._base, start, self._search, self._size, last=False)
            if zone is None:
                break
            self._zones.append(zone)
            self._next = zone.end + self._sizes.whole + 1
        keep = max(0, (self._zones[-1].end if self._zones else 0) - self._sizes.before)
        self._parts = [whole[keep - self._base :]]
        self._base = keep

    def finish(self) -> list[Found]:
        """The secrets in all of the text, the earliest first."""
        whole = "".join(self._parts)
        while not self._zones or self._zones[-1].end < self._size:
            start = self._zones[-1].end if self._zones else 0
            zone = self._zone(whole, self._base, start, self._search, self._size, last=True)
            assert zone is not None
            self._zones.append(zone)
        self._parts = []
        return [one for zone in self._zones for one in zone.found]

    def again(self, text: str, search: Search, changed: Callable[[str], bool]) -> list[Found]:
        """The secrets that another search finds in the text, after `finish`.

        Args:
            text: all of it.
            changed: whether the other search could find something else in a window.
        """
        found: list[Found] = []
        for zone in self._zones:
            other: _Zone | None = zone
            if changed(text[zone.window_start : zone.window_end]):
                other = self._zone(text, 0, zone.start, search, len(text), last=True)
            assert other is not None
            found += other.found
        return found

    def _zone(
        self, text: str, base: int, start: int, search: Search, size: int, *, last: bool
    ) -> _Zone | None:
        """Searches the zone that begins at `start`; None where more of the text is needed.

        Args:
            text: from the position `base` on.
            size: of all of the text so far, or of all of it where this is the `last` of it.
        """
        sizes = self._sizes
        window_start, after = max(0, start - sizes.before), sizes.after
        while True:
            end = start + sizes.zone
            window_end = end + after
            if last and size - start <= sizes.whole:
                end = window_end = size
            elif size <= window_end:
                if not last:
                    self._next = window_end + 1
                    return None
                window_end = size
            window = text[window_start - base : window_end - base]
            own = tuple(
                _moved(one, window_start)
                for one in search(window)
                if start <= one.parts[0][0] + window_start < end
            )
            if window_end == size and last:
                return _Zone(start, end, window_start, window_end, own)
            if not _goes_on(own, window, window_start, end, sizes.at_end):
                return _Zone(start, end, window_start, window_end, own)
            after *= 2


def _goes_on(own: Iterable[Found], window: str, start: int, zone_end: int, at_end: int) -> bool:
    """Whether a secret of a zone may go on after the zone's window, which begins at `start`."""
    last = start + len(window) - at_end
    if any(one.parts[-1][1] > last for one in own):
        return True
    at = text_in_base64_at_end(window)
    return at is not None and start + at < zone_end


def _moved(found: Found, by: int) -> Found:
    if not by:
        return found
    parts = tuple((start + by, end + by) for start, end in found.parts)
    return replace(found, parts=parts)
