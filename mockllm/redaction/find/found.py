"""A secret in a text, and where it is in the document around the text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from mockllm.redaction.walk.documents import Channel
from mockllm.redaction.walk.encodings import Base64Run, View
from mockllm.redaction.walk.json_strings import StringValue


@dataclass(frozen=True, slots=True)
class Found:
    """A secret in a text.

    Args:
        kind: for reports.
        secret: without escapes.
        parts: where it is; several spans where it is cut.
        fixed: what replaces it whatever it is; "" for its placeholder.
        inner: where it is in base64, the secrets in there.
    """

    kind: str
    secret: str
    parts: tuple[tuple[int, int], ...]
    fixed: str = ""
    inner: tuple[Base64Run, tuple[Found, ...]] | None = None

    def secrets(self) -> Iterator[str]:
        """The secret, or those inside."""
        if self.inner is not None:
            for found in self.inner[1]:
                yield from found.secrets()
        elif self.secret:
            yield self.secret


def union(values: Sequence[StringValue], found: Iterable[Found]) -> list[Found]:
    """What was found in joined strings, at its positions in the document."""
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


def in_original(found: Iterable[Found], view: View) -> list[Found]:
    """What was found in a decoded text, at its positions in the original."""
    return [
        replace(secret, parts=tuple((view.starts[s], view.starts[e]) for s, e in secret.parts))
        for secret in found
    ]


def whole_escapes(found: Iterable[Found], view: View) -> list[Found]:
    """The same, but made longer where they begin or end inside an escape."""
    whole = []
    for secret in found:
        ((start, end),) = secret.parts
        start = view.starts[bisect_right(view.starts, start) - 1]
        end = view.starts[bisect_left(view.starts, end)]
        whole.append(replace(secret, parts=((start, end),)))
    return whole


class Spans:
    """Where some secrets are in a text, however many, to ask whether another one overlaps them."""

    def __init__(self, found: Iterable[Found]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(part for secret in found for part in secret.parts):
            if self._ends and start < self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def overlap(self, found: Found) -> bool:
        """Whether a secret overlaps one of them."""
        return any(self._overlap(start, end) for start, end in found.parts)

    def _overlap(self, start: int, end: int) -> bool:
        index = bisect_right(self._ends, start)
        return index < len(self._ends) and self._starts[index] < end


def adjacent(found: Iterable[Found], others: Sequence[Found]) -> Iterable[Found]:
    """Those that are not where others are."""
    if not others:
        return found
    spans = Spans(others)
    return [secret for secret in found if not spans.overlap(secret)]


def joins(found: Found, certain: Iterable[Found], channel: Channel) -> bool:
    """Whether a secret goes on where the channel of its first fragment, which alone names the
    item, ends: then it is more than what that channel shows of it."""
    nameless = [value for value in channel.values if len(value.ids) == 1]
    return any(
        found.parts[: len(secret.parts)] == secret.parts
        and len(found.parts) > len(secret.parts)
        and found.secret.startswith(secret.secret)
        and all(
            any(value.start <= start and end <= value.end for value in nameless)
            for start, end in found.parts[len(secret.parts) :]
        )
        for secret in certain
        if secret.kind and nameless
    )


def split(found: Iterable[Found], kept: Iterable[bool]) -> tuple[list[Found], list[Found]]:
    """Those that are not kept, and those that are."""
    parts: tuple[list[Found], list[Found]] = ([], [])
    for secret, is_kept in zip(found, kept, strict=True):
        parts[is_kept].append(secret)
    return parts


def moved(found: Found, by: int) -> Found:
    """What was found in a part of a text that begins at a position of it."""
    return replace(found, parts=tuple((start + by, end + by) for start, end in found.parts))
