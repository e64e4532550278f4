"""Which events of a stream a service sends as one: a text with the role, usage with the finish.

The encoder of an API sends each of them in an event of its own. `joins` compares its events with
recorded ones and returns the kinds of those that are joined to the event before them; `joined`
joins them. `protocols.extra` keeps the result. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate

from mockllm.core import events as ev
from mockllm.core.frame import Frame
from mockllm.protocols.base import WireProtocol
from mockllm.protocols.normalisation import is_ignored, value_of

__all__ = ["content_of", "join", "joined", "joins", "kind", "numbered"]


def kind(protocol: WireProtocol, frame: Frame) -> str:
    """What an event is: its types joined by dots, or the shape of a chunk."""
    value = value_of(frame)
    if not isinstance(value, dict):
        return "end"
    shape = protocol.normalize.shape
    if shape is not None:
        return shape(value)
    inner = (one.get("type") for one in value.values() if isinstance(one, dict))
    return ".".join(one for one in (value.get("type"), *inner) if isinstance(one, str))


def numbered(kinds: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each kind with the name of the one event: `kind#2` is the second of its kind."""
    seen: Counter[str] = Counter()
    for one in kinds:
        seen[one] += 1
        yield one, f"{one}#{seen[one]}"


def join(protocol: WireProtocol, first: Frame, second: Frame) -> Frame | None:
    """One event with the content of two, as some services send them; None if there is none."""
    for one in (protocol.join, protocol.join_usage):
        whole = one(first, second) if one is not None else None
        if whole is not None:
            return whole
    return None


def joined(
    protocol: WireProtocol, frames: Iterable[tuple[int, Frame]], names: Collection[str]
) -> list[tuple[int, Frame]]:
    """The frames with those of some kinds joined to the frames before them, where that is possible.

    Args:
        frames: with the times when they are due; a joined frame is due when its last part is.
        names: kinds, or names of single events.
    """
    out: list[tuple[int, Frame]] = []
    seen: Counter[str] = Counter()
    last = -1
    for at, frame in frames:
        whole = None
        if not is_ignored(protocol, frame):
            own = kind(protocol, frame)
            seen[own] += 1
            if last >= 0 and (own in names or f"{own}#{seen[own]}" in names):
                whole = join(protocol, out[last][1], frame)
            if whole is not None:
                out.pop(last)  # comments in between come before the joined frame
            last = len(out)
        out.append((at, frame if whole is None else whole))
    return out


def joins(protocol: WireProtocol, ours: Sequence[Frame], theirs: Sequence[Frame]) -> list[str]:
    """The `names` with which `joined` gives as many frames as were recorded, each with the content
    of the recorded one; [] if there are none.

    Args:
        ours: the encoded frames.
        theirs: the recorded ones.
    """
    if protocol.join is None or len(ours) <= len(theirs):
        return []
    lengths = _lengths(protocol, ours, theirs)
    if len(lengths) != len(theirs) or sum(lengths) != len(ours):
        return []
    first = {0, *accumulate(lengths)}
    named = list(numbered(kind(protocol, frame) for frame in ours))
    later = [pair for i, pair in enumerate(named) if i not in first]
    counts, all_of = Counter(one for one, _ in later), Counter(one for one, _ in named)
    whole = [one for one in counts if counts[one] == all_of[one]]
    return whole + [name for one, name in later if one not in whole]


def _lengths(protocol: WireProtocol, ours: Sequence[Frame], theirs: Sequence[Frame]) -> list[int]:
    """How many of our frames make each recorded one; fewer numbers where ours are too few."""
    lengths: list[int] = []
    at = 0
    for frame in theirs:
        if at >= len(ours):
            break
        lengths.append(_length(protocol, ours[at:], frame))
        at += lengths[-1]
    return lengths


def _length(protocol: WireProtocol, ours: Sequence[Frame], recorded: Frame) -> int:
    """How many of our next frames have together the content of a recorded frame; 1 if none have."""
    wanted = content_of(protocol, recorded)
    whole: Frame | None = ours[0]
    for count in range(1, len(wanted) + 4):
        if whole is None:
            break
        if content_of(protocol, whole) == wanted:
            return count
        whole = join(protocol, whole, ours[count]) if count < len(ours) else None
    return 1


_Content = list[tuple[object, ...]]


def content_of(protocol: WireProtocol, frame: Frame) -> _Content:
    """What a client reads in one event alone, whatever the keys of its parts."""
    decoder = protocol.decoder()
    found: _Content = []
    for event in [*decoder.decode(frame), *decoder.close()]:
        one = _read(event)
        if one and found and one[0] == found[-1][0] and len(one) == 2:
            found[-1] = (one[0], f"{found[-1][1]}{one[1]}")
        elif one:
            found.append(one)
    return found


def _read(event: ev.Event) -> tuple[object, ...]:
    """The kind and the content of an event; () for one without content."""
    match event:
        case ev.TextDelta(text=text) | ev.ReasoningDelta(text=text) | ev.RefusalDelta(text=text):
            return (type(event).__name__, text) if text else ()
        case ev.ToolArgs(text=text):
            return ("ToolArgs", text) if text else ()
        case ev.ToolStart(name=name):
            return ("ToolStart", name, "")
        case ev.Signature(value=value):
            return ("Signature", value, "")
        case ev.Finish() | ev.Usage() | ev.StreamError() | ev.ServerToolStart():
            return (type(event).__name__, "", "")
    return ()
