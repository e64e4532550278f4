"""Where a service sends events that the encoder of its API does not send, or in another order.

`arranged` compares encoded events with recorded ones. Events with content (text, calls, reasoning)
must be the same in the same order. Others may be left out (`drop`), sent later or earlier (`move`)
or be added (`add`). `protocols.extra` keeps these three. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mockllm.core.frame import Frame
from mockllm.errors import WireError
from mockllm.protocols.base import WireProtocol, dumps
from mockllm.protocols.joins import content_of, join, kind, numbered
from mockllm.protocols.normalisation import is_ignored, normalized, value_of

__all__ = [
    "Arrangement",
    "Entry",
    "arranged",
    "entries_of",
    "in_order",
    "moved",
    "renumbered",
]

_MOST_COMPARED = 32
"""Events of one kind that are compared for the most similar one."""

_WITHOUT_CONTENT = frozenset({"Usage", "ServerToolStart"})
_ENDING = frozenset({"Usage", "Finish"})


@dataclass(frozen=True, slots=True)
class Entry:
    """An event that is due `at`; `kind` and `name` are "" for a comment."""

    at: int
    frame: Frame
    kind: str
    name: str


def entries_of(protocol: WireProtocol, frames: Iterable[tuple[int, Frame]]) -> list[Entry]:
    """The events with their kinds and names."""
    found = [(at, frame, is_ignored(protocol, frame)) for at, frame in frames]
    names = numbered(kind(protocol, frame) for _, frame, ignored in found if not ignored)
    return [Entry(at, frame, *(("", "") if no else next(names))) for at, frame, no in found]


# Making


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How encoded events become the recorded ones.

    Args:
        joined: kinds and names of events that are joined to the ones before them first.
        pairs: for each recorded event the number of the encoded one after joining; None where it
            is added.
    """

    joined: tuple[str, ...]
    pairs: tuple[int | None, ...]


def arranged(protocol: WireProtocol, ours: Sequence[Frame], theirs: Sequence[Frame]) -> Arrangement:
    """How our events become the recorded ones.

    Raises:
        WireError: events with content differ.
    """
    runs = _Pairing(protocol, ours, theirs).runs()
    first = {start for start, _ in filter(None, runs)}
    inner = {start + n for start, count in filter(None, runs) for n in range(1, count)}
    names = [name for _, name in numbered(kind(protocol, frame) for frame in ours)]
    position, after = {}, 0
    for number in range(len(ours)):
        if number in first or number not in inner:
            position[number] = after
            after += 1
    joined = tuple(names[number] for number in sorted(inner))
    return Arrangement(joined, tuple(None if run is None else position[run[0]] for run in runs))


_Run = tuple[int, int]
"""The number of the first of our events in a run, and how many events the run has."""


class _Pairing:
    """Which runs of our events are the recorded ones."""

    def __init__(
        self, protocol: WireProtocol, ours: Sequence[Frame], theirs: Sequence[Frame]
    ) -> None:
        self._protocol = protocol
        self._ours, self._theirs = ours, theirs
        self._mine = [content_of(protocol, frame) for frame in ours]
        self._wanted = [content_of(protocol, frame) for frame in theirs]
        self._runs: list[_Run | None] = [None] * len(theirs)
        self._used: set[int] = set()
        self._has_shapes = protocol.normalize.shape is not None

    def runs(self) -> list[_Run | None]:
        """A run for each recorded event; None where there is none."""
        if self._protocol.join is None:
            self._pair_same_content()
        else:
            self._pair_content()
            self._extend(only_first=True)
        self._pair_usage()
        self._pair_kinds()
        if self._has_shapes:
            self._pair_neighbours()
            self._extend()
        return self._runs

    def _take(self, recorded: int, start: int, count: int = 1) -> None:
        self._runs[recorded] = start, count
        self._used.update(range(start, start + count))

    def _pair_same_content(self) -> None:
        """Pairs events of one kind with the same content: where events have types, the last ones of
        an item repeat its text, and some services send them later or not at all."""
        left: dict[tuple[str, str], list[int]] = {}
        for number, content in enumerate(self._mine):
            left.setdefault(self._key(self._ours[number], content), []).append(number)
        for number, wanted in enumerate(self._wanted):
            same = left.get(self._key(self._theirs[number], wanted))
            if same and _has_content(wanted):
                self._take(number, same.pop(0))
            elif _has_content(wanted):
                raise WireError("the text is cut into events in another way")

    def _key(self, frame: Frame, content: Iterable[tuple[object, ...]]) -> tuple[str, str]:
        return kind(self._protocol, frame), repr(_bare(content))

    def _pair_content(self) -> None:
        """Pairs events with content, which have to be the same, in the same order."""
        at = 0
        for number, wanted in enumerate(self._wanted):
            if not _has_content(wanted):
                continue
            while at < len(self._ours) and not _has_content(self._mine[at]):
                at += 1
            count = self._count(at, wanted)
            if count:
                self._take(number, at, count)
                at += count
            elif not _ENDING.issuperset(_kinds(wanted)):
                raise WireError("the text is cut into events in another way")
        if any(_has_content(self._mine[left]) for left in range(at, len(self._ours))):
            raise WireError("the turn has content that was not recorded")

    def _count(self, at: int, wanted: list[Any]) -> int:
        """How many of our events from one on have together a content; 0 if none have."""
        if at >= len(self._ours):
            return 0
        whole: Frame | None = self._ours[at]
        for count in range(1, len(wanted) + 4):
            if whole is None:
                break
            found = content_of(self._protocol, whole)
            if found == wanted or (count == 1 and _bare(found) == _bare(wanted)):
                return count
            following = at + count
            whole = (
                join(self._protocol, whole, self._ours[following])
                if (following < len(self._ours))
                else None
            )
        return 0

    def _left(self) -> list[int]:
        return [number for number in range(len(self._ours)) if number not in self._used]

    def _pair_usage(self) -> None:
        left = [number for number in self._left() if "Usage" in _kinds(self._mine[number])]
        for number, wanted in enumerate(self._wanted):
            if left and self._runs[number] is None and "Usage" in _kinds(wanted):
                self._take(number, left.pop(0))

    def _pair_kinds(self) -> None:
        """Pairs events of one kind, the most similar ones first."""
        left: dict[str, list[int]] = {}
        for number in self._left():
            left.setdefault(kind(self._protocol, self._ours[number]), []).append(number)
        for number, frame in enumerate(self._theirs):
            same = left.get(kind(self._protocol, frame), [])
            if self._runs[number] is None and (near := self._near(number, same)):
                found = self._most_similar(frame, near)
                same.remove(found)
                self._take(number, found)

    def _near(self, recorded: int, numbers: Sequence[int]) -> Sequence[int]:
        """Those of our events that can be a recorded one. Chunks keep their order: those of one
        shape have little in common."""
        if not self._has_shapes:
            return numbers[:_MOST_COMPARED]
        before = (run for run in reversed(self._runs[:recorded]) if run is not None)
        after = (run for run in self._runs[recorded + 1 :] if run is not None)
        low, high = next(before, (-1, 0)), next(after, (len(self._ours), 0))
        near = [number for number in numbers if low[0] < number < high[0]]
        return near[:_MOST_COMPARED]

    def _most_similar(self, frame: Frame, numbers: Sequence[int]) -> int:
        if len(numbers) == 1:
            return numbers[0]
        wanted = self._fields(frame)
        return max(numbers, key=lambda n: (len(wanted & self._fields(self._ours[n])), -n))

    def _fields(self, frame: Frame) -> set[str]:
        (value,) = normalized(self._protocol, [frame])
        pairs = value.items() if isinstance(value, dict) else ()
        return {dumps(pair) for pair in pairs}

    def _pair_neighbours(self) -> None:
        """Pairs what is left between the same events with content."""
        last = -1
        for number, run in enumerate(self._runs):
            if run is not None:
                last = run[0] + run[1] - 1
            elif last + 1 < len(self._ours) and last + 1 not in self._used:
                self._take(number, last + 1)
                last += 1

    def _extend(self, *, only_first: bool = False) -> None:
        """Joins events without content to the one after them, where they can be joined.

        Args:
            only_first: those before which no other event was recorded.
        """
        for number, run in enumerate(self._runs):
            if run is None or run[0] - 1 in self._used or not run[0]:
                continue
            if only_first and number and self._runs[number - 1] is None:
                continue
            start, count = run
            whole = join(self._protocol, self._ours[start - 1], self._ours[start])
            joined = whole is not None and content_of(self._protocol, whole) == self._mine[start]
            if joined and _has_content(self._wanted[number]):
                self._take(number, start - 1, count + 1)


def _has_content(content: Iterable[tuple[object, ...]]) -> bool:
    """Whether a client reads more than usage in an event (`joins.content_of`)."""
    return any(one[0] not in _WITHOUT_CONTENT for one in content)


def _kinds(content: Iterable[tuple[object, ...]]) -> set[object]:
    return {one[0] for one in content}


def _bare(content: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [one for one in content if one[0] not in _WITHOUT_CONTENT]


# Changes of the order


def in_order(names: Sequence[str], pairs: Sequence[int | None]) -> dict[str, Any]:
    """The `drop` and `move` of an extra.

    Args:
        names: of our events.
        pairs: as of `Arrangement`.

    Raises:
        WireError: another event comes first.
    """
    paired = [number for number in pairs if number is not None]
    sent = frozenset(paired)
    dropped = [name for number, name in enumerate(names) if number not in sent]
    kept = _increasing(paired)
    moved = {}
    for before, number in zip([None, *paired], paired, strict=False):
        if number not in kept:
            if before is None:
                raise WireError("the stream begins with another event")
            moved[names[number]] = names[before]
    return ({"drop": dropped} if dropped else {}) | ({"move": moved} if moved else {})


def _increasing(numbers: Sequence[int]) -> set[int]:
    """The longest increasing part of a sequence of different numbers."""
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for number in numbers:
        at = bisect_left(ends, number)
        before[number] = ends[at - 1] if at else None
        ends[at : at + 1] = [number]
    found: set[int] = set()
    last = ends[-1] if ends else None
    while last is not None:
        found.add(last)
        last = before[last]
    return found


def moved(entries: Sequence[Entry], extra: Mapping[str, Any]) -> list[Entry]:
    """The events without those of `drop`, and those of `move` in their places."""
    dropped = set(extra.get("drop") or ())
    left = [one for one in entries if not {one.kind, one.name} & dropped or not one.name]
    for name, anchor in (extra.get("move") or {}).items():
        names = [one.name for one in left]
        if name in names and anchor in names and name != anchor:
            one = left.pop(names.index(name))
            names.remove(name)
            at = names.index(anchor)
            left.insert(at + 1, replace(one, at=left[at].at))
    return left


def renumbered(protocol: WireProtocol, frames: Sequence[Frame]) -> list[Frame]:
    """The events with the field that counts them (`Normalisation.counter`) in order again."""
    field = protocol.normalize.counter
    if not field:
        return list(frames)
    out, count = [], None
    for frame in frames:
        value = value_of(frame)
        if isinstance(value, dict) and isinstance(value.get(field), int):
            count = value[field] if count is None else count + 1
            frame = replace(frame, data=dumps({**value, field: count}))
        out.append(frame)
    return out
