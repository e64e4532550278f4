"""Puts placeholders in the place of the secrets that were found."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mockllm.core.timed_bytes import TimedBytes
from mockllm.redaction.placeholders import Names, shared, spread_out
from mockllm.redaction.text import Found

__all__ = ["Edit", "edited", "edits", "recut"]


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """What is to stand between two places of a text."""

    start: int
    end: int
    text: str


def edits(found: Iterable[Found], names: Names) -> list[Edit]:
    """The changes that hide what was found, in the order of the text.

    Where two overlap, the later one keeps what the earlier leaves it. A placeholder for a secret
    that is cut is cut in proportion.
    """
    taken: list[tuple[int, int]] = []
    made: list[Edit] = []
    for one in found:
        parts = [rest for part in one.parts for rest in _free(part, taken)]
        if not parts:
            continue
        for part in parts:
            taken.insert(bisect_left(taken, part), part)
        written = shared(_written(one, names), [end - start for start, end in parts])
        made += [Edit(*part, text) for part, text in zip(parts, written, strict=True)]
    return sorted(made)


def _free(part: tuple[int, int], taken: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What of a place is not taken."""
    start, end = part
    free = []
    index = bisect_left(taken, (start, start))
    if index and taken[index - 1][1] > start:
        index -= 1
    while index < len(taken) and taken[index][0] < end:
        if start < taken[index][0]:
            free.append((start, taken[index][0]))
        start = max(start, taken[index][1])
        index += 1
    return [*free, (start, end)] if start < end else free


def _written(found: Found, names: Names) -> str:
    if found.inner is None:
        return found.fixed or names.name(found.secret)
    run, inner = found.inner
    return run.spelled(edited(run.text, edits(inner, names)))


def edited(text: str, changes: Sequence[Edit]) -> str:
    """A text with its changes made."""
    parts, last = [], 0
    for change in changes:
        parts += [text[last : change.start], change.text]
        last = change.end
    return "".join([*parts, text[last:]])


def recut(
    pieces: Sequence[TimedBytes], text: str, changes: Sequence[Edit], data: bytes
) -> tuple[TimedBytes, ...]:
    """Changed bytes cut where the pieces were cut; none that had bytes becomes empty if there
    are enough.

    Args:
        text: the bytes of the pieces, as a text that the changes are in.
        data: the same with the changes made.
    """
    places = _in_bytes(text, changes)
    ends, end = [], 0
    for piece in pieces:
        end += len(piece.data)
        ends.append(_moved(end, places))
    spread_out(ends, [bool(piece.data) for piece in pieces])
    cuts = zip([0, *ends], ends, pieces, strict=False)
    return tuple(TimedBytes(piece.at, data[start:end]) for start, end, piece in cuts)


def _in_bytes(text: str, changes: Sequence[Edit]) -> list[tuple[int, int, int]]:
    """For each change its place in bytes, and how many bytes come there."""
    places, last, at = [], 0, 0
    for change in changes:
        start = at + _size(text[last : change.start])
        at = start + _size(text[change.start : change.end])
        last = change.end
        places.append((start, at, _size(change.text)))
    return places


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def _moved(end: int, places: Sequence[tuple[int, int, int]]) -> int:
    shift = 0
    for start, stop, size in places:
        if end <= start:
            break
        if end < stop:
            return start + shift + size * (end - start) // (stop - start)
        shift += size - (stop - start)
    return end + shift
