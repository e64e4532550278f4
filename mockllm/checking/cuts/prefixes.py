"""The prefixes of a stream, and what each of them has of the answer; the samples that are cut.

A stream is complete in its content with the event that has the finish reason (or, where an API has
none, the end of the run); see `StreamEvents.is_end`. Nothing but counts of tokens and the end
marker may follow. Such prefixes are not made: a client may report the missing end, or accept it.

An event counts as received from the moment when its data are whole, although its blank line is
missing: the specification discards it then (HTML, 9.2.6), and many clients use it. A frame with a
checksum counts as received with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from mockllm.checking.cases.case import Case, Cut, Ending, Events, Place
from mockllm.checking.cases.compile import plain_cases
from mockllm.checking.cases.expected import strings_in
from mockllm.checking.judging.difference import call_key, comparable
from mockllm.checking.material import scenarios_of_file
from mockllm.checking.outcome import Call
from mockllm.checking.rules import CUT_RULES
from mockllm.core.events import PartEnd, ToolArgs, ToolStart
from mockllm.play.faults.places import SeenEvent, seen_events
from mockllm.play.quirks.base import Right
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.fault_model import Place as FaultPlace
from mockllm.scenario.model import Api, Scenario
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.values import json_value

CutLevel = Literal["payloads", "bytes", "http"]
PLACES: Mapping[str, str] = {
    "before-first-event": "nothing came",
    "between-events": "after the blank line of an event",
    "inside-event": "in an event",
    "inside-character": "between the bytes of one character",
    "before-blank-line": "the data of an event are whole, the blank line or line end is not",
}
"""Where streams are cut; at the level of payloads only before the first event and between two."""


def prefixes(case: Case, level: CutLevel = "bytes") -> list[Case]:
    """The prefixes of a stream which a client has to report as cut, the shortest first.

    Args:
        level: at `payloads`, a prefix ends with an event. At `http`, also in the middle of one,
            and each has two endings: clients request different fields, so that single bytes have no
            fixed place.
    """
    seen = _Seen(case)
    if level == "bytes":
        sizes = seen.places()
    else:
        sizes = seen.event_ends() | (seen.middles() if level == "http" else {})
    cuts = [seen.cut(size, place) for size, place in sorted(sizes.items())]
    endings: tuple[Ending, ...] = ("orderly", "close") if level == "http" else ("orderly",)
    return [
        _cut_case(replace(cut, ending=ending), level)
        for cut in cuts
        if not cut.content_complete
        for ending in endings
    ]


def prefix_at(case: Case, size: int, level: CutLevel = "bytes") -> Case:
    """The prefix of so many bytes, wherever that is."""
    return prefixes_at(case, [size], level)[0]


def prefixes_at(case: Case, sizes: Iterable[int], level: CutLevel = "bytes") -> list[Case]:
    """The prefixes of so many bytes each."""
    seen = _Seen(case)
    return [_cut_case(seen.cut(size, seen.place(size)), level) for size in sizes]


def cut_of(case: Case) -> Cut:
    """Where the stream of a prefix breaks off."""
    assert case.cut is not None, f"{case.name} is no prefix"
    return case.cut


class _Seen:
    """The events of a whole stream, with what they add to the answer."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._body = b"".join(case.chunks)
        protocol = PROTOCOLS[case.api]
        self._carrier = protocol.usual
        self._events = seen_events(protocol, self._body, self._carrier)
        self._whole_at = [event.begin + self._whole(event) for event in self._events]
        self._calls = list(_calls(case.api, self._events))

    def _block(self, event: SeenEvent) -> bytes:
        return self._body[event.begin : event.end]

    def _whole(self, event: SeenEvent) -> int:
        """The number of bytes of an event that have to arrive, so that a client may use it."""
        block = self._block(event)
        has_checksum = self._carrier.parts(block)["payload"][1] < len(block)
        return len(block if has_checksum else block.rstrip(b"\r\n"))

    def event_ends(self) -> dict[int, Place]:
        """The size of each prefix that ends with an event."""
        found: dict[int, Place] = {0: "before-first-event"}
        found |= {
            event.end: "between-events" for event in self._events if event.end < len(self._body)
        }
        return found

    def middles(self) -> dict[int, Place]:
        """The size of each prefix that ends in the middle of an event."""
        return {event.middle: "inside-event" for event in self._events}

    def places(self) -> dict[int, Place]:
        """The size of each prefix that ends at a place that matters."""
        sizes = {size for event in self._events for size in self._sizes_in(event)}
        return {size: self.place(size) for size in sizes}

    def _sizes_in(self, event: SeenEvent) -> Iterator[int]:
        block = self._block(event)
        parts = self._carrier.parts(block)
        start, stop = parts["payload"]
        data = block[start:stop].rstrip(b"\r\n")
        inside = {0, 1, len(data) // 2, len(data) - 1, *range(len(data), len(block) - start)}
        inside |= {match.end() for match in _LINE_PARTS.finditer(data)}
        inside |= {match.start() + 1 for match in _ESCAPES.finditer(data)}
        inside |= {match.start() + 1 for match in _CHARACTERS.finditer(data)}
        inside |= {match.end() - 1 for match in _CHARACTERS.finditer(data)}
        yield from (event.begin + start + offset for offset in inside)
        for name, (begin, end) in parts.items():
            if name != "payload":
                yield from (event.begin + begin, event.begin + (begin + end) // 2)

    def place(self, size: int) -> Place:
        """The kind of place at which so many bytes end."""
        if not size:
            return "before-first-event"
        if size == len(self._body):
            return "whole"
        for event, whole_at in zip(self._events, self._whole_at, strict=True):
            if size == event.end:
                return "between-events"
            if event.begin < size < event.end:
                if size >= whole_at:
                    return "before-blank-line"
                begin, end = self._carrier.parts(self._block(event))["payload"]
                inside = begin < size - event.begin < end
                continued = inside and self._body[size] & 0xC0 == 0x80
                return "inside-character" if continued else "inside-event"
        return "between-events"

    def cut(self, size: int, place: Place) -> Cut:
        """The cut after so many bytes."""
        dispatched = [event for event in self._events if event.end <= size]
        count = sum(at <= size for at in self._whole_at)
        received = self._events[:count]
        begun, ended = self._calls[count]
        last = dispatched[-1] if dispatched else None
        return Cut(
            whole=self._case,
            size=size,
            place=place,
            events=len(dispatched),
            content_complete=any(event.finishes for event in received),
            begun=begun,
            ended=ended,
            last_event=last.data if last else "",
            rest=self._body[last.end if last else 0 : size],
        )


_LINE_PARTS = re.compile(rb"(?m)^[a-z]+:? ?|[\r\n]+")
"""The name of a line with its colon and blank, and the ends of lines."""

_ESCAPES = re.compile(rb"\\.")
_CHARACTERS = re.compile(rb"[\xc2-\xf4][\x80-\xbf]+")


def _calls(api: str, events: Sequence[SeenEvent]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The calls that have begun, and those that have ended, after each number of events."""
    calls: dict[int, tuple[str, str]] = {}
    ended: dict[int, str] = {}
    whole = _whole_arguments(events)
    yield 0, ()
    for event in events:
        argued = False
        for inner in event.events:
            if isinstance(inner, ToolStart):
                calls[inner.part] = (inner.name or "", "")
            elif isinstance(inner, ToolArgs) and inner.part in calls:
                name, before = calls[inner.part]
                calls[inner.part] = (name, before + inner.text)
                argued = True
            elif isinstance(inner, PartEnd) and inner.part in calls:
                ended[inner.part] = _key(*calls[inner.part])
        if not argued:
            # An event may repeat the arguments as a whole before the event that ends the call.
            texts = set(strings_in(json_value(event.data)))
            for part, call in calls.items():
                if call[1] and call[1] == whole[part] and call[1] in texts:
                    ended.setdefault(part, _key(*call))
        yield len(calls), tuple(ended.values())


def _whole_arguments(events: Sequence[SeenEvent]) -> dict[int, str]:
    found: dict[int, str] = {}
    for event in events:
        for inner in event.events:
            if isinstance(inner, ToolStart):
                found[inner.part] = ""
            elif isinstance(inner, ToolArgs):
                found[inner.part] = found.get(inner.part, "") + inner.text
    return found


def _key(name: str, arguments: str) -> str:
    return call_key(comparable(Call(name, arguments)))


# Cases


def _cut_case(cut: Cut, level: CutLevel) -> Case:
    """A prefix as a case; over HTTP the whole stream, with a fault that the server plays."""
    whole = cut.whole
    if level == "http" and cut.place == "whole":
        return replace(whole, name=cut.name, cut=cut)
    name = cut.name.partition("/")[2]
    rules = () if cut.place == "whole" else CUT_RULES if cut.begun else CUT_RULES[:1]
    reaction: Right = "same" if cut.place == "whole" else "error"
    if level == "http":
        fault = Fault("cut", _fault_place(cut), (("end", cut.ending),))
        turns = (replace(whole.scenario.turns[0], fault=(fault,)),)
        scenario = replace(whole.scenario, name=name, turns=turns)
        return replace(
            whole, name=cut.name, scenario=scenario, reaction=reaction, rules=rules, cut=cut
        )
    chunks = cut.chunks
    return replace(
        whole,
        name=cut.name,
        scenario=replace(whole.scenario, name=name),
        answer=replace(whole.answer, data=chunks, times=(0,) * len(chunks), size=cut.size),
        events=_events(cut),
        reaction=reaction,
        rules=rules,
        body=None,
        cut=cut,
    )


def _fault_place(cut: Cut) -> FaultPlace:
    if not cut.size:
        return FaultPlace("before", name="first")
    if cut.place == "between-events":
        return FaultPlace("events", cut.events)
    return FaultPlace("in event", cut.events + 1)


def _events(cut: Cut) -> Events | None:
    """The decoded events of a prefix that ends with an event."""
    events = cut.whole.events
    if events is None or cut.place == "whole":
        return events
    return Events(lambda: events.decoded[: cut.events])


# The answers that are cut


def cut_samples() -> tuple[Scenario, ...]:
    """The kit's own samples."""
    return scenarios_of_file(__package__ or "", "samples.yaml")


def kit_samples_of(api: Api) -> list[Case]:
    """The kit's samples over an API, without those that it cannot express."""
    return [case for case in plain_cases(cut_samples(), api) if not _loses_call(case)]


def samples_of(api: Api, scenarios: Iterable[Scenario]) -> list[Case]:
    """The streamed turns of scenarios, without those that end with an error anyway."""
    return [case for case in plain_cases(scenarios, api) if case.reaction == "same"]


def _loses_call(case: Case) -> bool:
    """Whether the API cannot carry the call of a sample: it has arguments as values."""
    values = PROTOCOLS[case.api].client.arguments_are_values
    return values and bool(case.tools) and not case.expected.tool_calls
