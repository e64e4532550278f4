"""A turn to its events (`expand`) and back (`fold`).

`fold(expand(turn)) == turn` for every turn in normal form (`normal`): without an `order` that is
merely sequential, and without `gaps` that are all zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from mockllm.core import events as ev
from mockllm.core.turn import (
    Media,
    Opaque,
    Part,
    Reasoning,
    Refusal,
    ServerTool,
    Text,
    ToolCall,
    Turn,
    beats,
)


def expand(turn: Turn) -> tuple[ev.Timed, ...]:
    """The events of a turn, in order, each with the time at which it is due.

    Raises:
        ValueError: `order` or `gaps` do not fit the parts.
    """
    out: list[ev.Timed] = []
    order = turn.order or sequential(turn)
    remaining = [beats(part) for part in turn.parts]
    if sorted(order) != sorted(sequential(turn)):
        raise ValueError(f"order {turn.order} does not have the beats {remaining} of the parts")
    if turn.gaps and len(turn.gaps) != len(order) + 1:
        raise ValueError(f"{len(turn.gaps)} gaps for {len(order)} beats; one more is needed")
    gaps = turn.gaps or (0,) * (len(order) + 1)
    now = gaps[0]
    out.append(ev.Timed(now, ev.Start()))
    for beat, index in enumerate(order):
        if beat:
            now += gaps[beat]
        part = turn.parts[index]
        done = beats(part) - remaining[index]
        remaining[index] -= 1
        out.append(ev.Timed(now, _event(part, index, done)))
        if not remaining[index]:
            out.extend(ev.Timed(now, event) for event in _closing(part, index))
    if order:
        now += gaps[-1]
    if turn.usage is not None:
        out.append(ev.Timed(now, turn.usage))
    if turn.error is not None:
        out.append(ev.Timed(now, turn.error))
    elif turn.finish is not None:
        out.append(ev.Timed(now, ev.Finish(turn.finish, turn.finish_raw, turn.stop_sequence)))
    return tuple(out)


def sequential(turn: Turn) -> tuple[int, ...]:
    """The `order` of a turn whose parts come one after the other."""
    return tuple(i for i, part in enumerate(turn.parts) for _ in range(beats(part)))


def _event(part: Part, index: int, beat: int) -> ev.Event:
    match part:
        case Text():
            tokens = part.tokens_of(beat)
            return ev.TextDelta(index, part.fragments[beat], part.logprobs, tokens)
        case Reasoning():
            return ev.ReasoningDelta(index, part.fragments[beat], part.summary)
        case Refusal():
            return ev.RefusalDelta(index, part.fragments[beat])
        case ToolCall():
            if beat == 0:
                return ev.ToolStart(index, part.id, part.name, part.custom)
            return ev.ToolArgs(index, part.fragments[beat - 1])
        case ServerTool():
            if beat == 0:
                return ev.ServerToolStart(index, part.id, part.kind, part.name)
            return ev.ToolArgs(index, part.fragments[beat - 1])
        case Media():
            return ev.MediaDelta(index, part.media_type, *part.beat(beat))
        case Opaque():
            return ev.Raw(index, part.api, part.frame, part.native)


def _closing(part: Part, index: int) -> Iterable[ev.Event]:
    if isinstance(part, Opaque):
        return
    if isinstance(part, Text):
        for citation in part.citations:
            yield replace(citation, part=index)
    if isinstance(part, ServerTool) and part.output is not None:
        yield ev.ServerToolResult(index, part.output)
    if isinstance(part, (Text, Reasoning, ToolCall, Media)) and part.signature is not None:
        yield ev.Signature(index, part.signature)
    yield ev.PartEnd(index)


@dataclass(slots=True)
class _Building:
    """One part while its events arrive."""

    first: ev.Event
    fragments: list[str] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    citations: list[ev.Cite] = field(default_factory=list)
    tokens: list[ev.Token] = field(default_factory=list)
    signature: str | None = None
    output: str | None = None

    def part(self) -> Part:
        """The part, with the fragments so far."""
        fragments = tuple(self.fragments)
        match self.first:
            case ev.TextDelta(logprobs=logprobs):
                cites = tuple(replace(cite, part=0) for cite in self.citations)
                return Text(fragments, cites, logprobs, self.signature, tuple(self.tokens))
            case ev.ReasoningDelta(summary=summary):
                return Reasoning(fragments, self.signature, summary)
            case ev.RefusalDelta():
                return Refusal(fragments)
            case ev.ToolStart(id=id, name=name, custom=custom):
                return ToolCall(name, id, fragments, self.signature, custom)
            case ev.ServerToolStart(id=id, kind=kind, name=name):
                return ServerTool(kind, id, name, fragments, self.output)
            case ev.MediaDelta(media_type=media_type):
                return Media(media_type, tuple(self.data), fragments, self.signature)
            case ev.Raw(api=api, frame=frame, native=native):
                return Opaque(api, frame, native)
        raise AssertionError(f"not the beginning of a part: {self.first}")


class _Folding:
    """The turn so far."""

    def __init__(self) -> None:
        self._building: dict[int, _Building] = {}
        self._order: list[int] = []
        self._times: list[int] = []
        self._end = 0
        self._usage: ev.Usage | None = None
        self._finish: ev.Finish | None = None
        self._error: ev.StreamError | None = None

    def add(self, item: ev.Timed) -> None:
        """Adds the next event, in the order in which they came."""
        match item.event:
            case ev.PartEnd():
                pass  # encoders need it; the parts of a whole stream show their ends without it
            case ev.Start():
                # A second run on one stream (AG-UI): the answer ends with the last run.
                self._finish = None
                self._end = max(self._end, item.at)
            case ev.Usage() | ev.Finish() | ev.StreamError():
                self._end = item.at
                self._ending(item.event)
            case ev.Cite() as event:
                if event.part in self._building:
                    self._building[event.part].citations.append(event)
            case ev.Replacement() as event:
                self._replace(event)
            case ev.ServerToolResult() as event:
                self._result(event)
            case ev.Signature() as event:
                # Hidden reasoning has a signature and no text.
                if event.part not in self._building:
                    self._building[event.part] = _Building(ev.ReasoningDelta(event.part, ""))
                    self._beat(event.part, item.at)
                self._building[event.part].signature = event.value
            case event:
                self._fragment(event)
                self._beat(event.part, item.at)

    def _replace(self, event: ev.Replacement) -> None:
        """The surplus beats of the fragments are left out by `normal`."""
        slot = self._building.get(event.part)
        if slot is None or isinstance(slot.first, ev.Raw):
            raise ValueError(f"a replacement for part {event.part}, which has no fragments")
        slot.fragments = [event.text]

    def _result(self, event: ev.ServerToolResult) -> None:
        slot = self._building.get(event.part)
        if slot is None or not isinstance(slot.first, ev.ServerToolStart):
            raise ValueError(f"a result for part {event.part}, which is no tool of the service")
        slot.output = event.output

    def _beat(self, part: int, at: int) -> None:
        self._order.append(part)
        self._times.append(at)

    def _ending(self, event: ev.Usage | ev.Finish | ev.StreamError) -> None:
        match event:
            case ev.Usage():
                self._usage = event
            case ev.Finish():
                self._finish = event
            case ev.StreamError():
                self._error = event

    def _fragment(self, event: _Fragment) -> None:
        match event:
            case ev.ToolStart() | ev.ServerToolStart() | ev.Raw():
                if event.part in self._building:
                    raise ValueError(f"part {event.part} opens twice")
                self._building[event.part] = _Building(event)
            case ev.ToolArgs():
                if event.part not in self._building:
                    raise ValueError(f"arguments for part {event.part}, which never opened")
                self._building[event.part].fragments.append(event.text)
            case _:
                slot = self._building.setdefault(event.part, _Building(event))
                if type(slot.first) is not type(event):
                    raise ValueError(f"part {event.part} is {slot.first}, yet gets {event}")
                if isinstance(event, ev.TextDelta):
                    slot.tokens += event.tokens or ()
                if isinstance(event, ev.MediaDelta) and not event.text:
                    slot.data.append(event.data)
                else:
                    slot.fragments.append(event.text)

    def turn(self) -> Turn:
        """The turn that the events so far add up to."""
        keys = sorted(self._building)
        index = {key: i for i, key in enumerate(keys)}
        # The error is what a client raises: a finish reason beside it is not how the answer ended.
        finish = None if self._error else self._finish
        return normal(
            Turn(
                parts=tuple(self._building[key].part() for key in keys),
                finish=finish.reason if finish else None,
                usage=self._usage,
                order=tuple(index[key] for key in self._order),
                gaps=_gaps(self._times, self._end),
                error=self._error,
                finish_raw=finish.raw if finish else None,
                stop_sequence=finish.stop_sequence if finish else None,
            )
        )


_Fragment = ev.Delta | ev.ToolStart | ev.ServerToolStart | ev.Raw


def fold(timed: Iterable[ev.Timed]) -> Turn:
    """The turn of a sequence of events.

    Raises:
        ValueError: arguments of a call that was never opened, a part that opens twice, a fragment
            of another kind than its part, or a replacement of nothing.
    """
    folding = _Folding()
    for item in timed:
        folding.add(item)
    return folding.turn()


def _gaps(times: list[int], end: int) -> tuple[int, ...]:
    if not times:
        return (end,)
    moments = [*times, max(end, times[-1])]
    return (moments[0], *(b - a for a, b in pairwise(moments)))


def normal(turn: Turn) -> Turn:
    """The same turn without a sequential `order` and without `gaps` that are all zero.

    An order with more beats than the parts have is repaired: "{}" of a zero-argument call is a
    beat of the stream, and `ToolCall` drops that fragment.
    """
    order, gaps = turn.order, turn.gaps
    if order and len(order) != sum(map(beats, turn.parts)):
        order, gaps = _without_surplus(turn)
    if order == sequential(turn):
        order = ()
    cut = turn.usage is None and turn.finish is None and turn.error is None
    if len(gaps) > 1 and cut:
        gaps = (*gaps[:-1], 0)  # a stream that was cut has no event after its last pause
    if not any(gaps):
        gaps = ()
    return replace(turn, order=order, gaps=gaps)


def _without_surplus(turn: Turn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Order and gaps without surplus beats, whose pauses are added to the next beat."""
    remaining = [beats(part) for part in turn.parts]
    order: list[int] = []
    gaps: list[int] = []
    carried = 0
    for beat, index in enumerate(turn.order):
        carried += turn.gaps[beat] if turn.gaps else 0
        if remaining[index]:
            remaining[index] -= 1
            order.append(index)
            gaps.append(carried)
            carried = 0
    if not turn.gaps:
        return tuple(order), ()
    return tuple(order), (*gaps, carried + turn.gaps[-1])
