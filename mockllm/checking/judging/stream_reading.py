"""Reads the stream of a case where a judgement needs the order or the ends of its parts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from mockllm.checking.cases.case import Case, Level
from mockllm.core.errors import MockLLMError
from mockllm.core.events import (
    Cite,
    Event,
    Finish,
    PartEnd,
    ReasoningDelta,
    RefusalDelta,
    ServerToolResult,
    ServerToolStart,
    TextDelta,
    ToolStart,
)
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.values import json_value


def readable_events(data: bytes, api: str) -> Iterator[list[Event]]:
    """The events of each frame, up to the first frame that cannot be read: the streams of the kit
    are broken on purpose."""
    protocol = PROTOCOLS[api]
    decoder = protocol.decoder()
    for frame in protocol.usual.readable(data):
        try:
            events = list(decoder.decode(frame))
        except MockLLMError:
            return
        yield events


_Fragment = TextDelta | ReasoningDelta | RefusalDelta

_DELTAS: dict[str, type[_Fragment]] = {
    "text": TextDelta,
    "reasoning": ReasoningDelta,
    "refusal": RefusalDelta,
}


def is_in_order_of_arrival(case: Case, name: str, got: str) -> bool:
    """Whether a text is the expected one with its fragments in the order of their arrival.

    Of several texts that grow at the same time, a client may keep one after the other, or append
    each fragment as it comes.
    """
    expected = getattr(case.expected, name)
    if len(got) != len(expected) or Counter(got) != Counter(expected):
        return False
    return _join_texts(b"".join(case.chunks), case.api, name) == got


@lru_cache(maxsize=64)
def _join_texts(data: bytes, api: str, name: str) -> str:
    kind = _DELTAS[name]
    return "".join(
        event.text
        for events in readable_events(data, api)
        for event in events
        if isinstance(event, kind)
    )


def open_calls(case: Case) -> frozenset[str]:
    """The ids of the calls that are open at the end of a stream.

    Empty where the API does not mark the end of each call, but of the answer alone: arguments that
    parse are then all that a client has to go by.
    """
    started, ended, _ = _calls(b"".join(case.chunks), case.api)
    if not started - ended or case.plain is None:
        return frozenset()
    _, _, marked = _calls(b"".join(case.plain.chunks), case.plain.api)
    return (started - ended) & marked


@lru_cache(maxsize=256)
def _calls(data: bytes, api: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The ids of the calls that start, that end, and that end before the frame of the finish."""
    ids: dict[int, str] = {}
    ended: set[str] = set()
    before_finish: set[str] = set()
    for events in readable_events(data, api):
        now = set()
        for event in events:
            if isinstance(event, ToolStart):
                ids[event.part] = event.id
            elif isinstance(event, PartEnd) and event.part in ids:
                now.add(ids[event.part])
        ended |= now
        if not any(isinstance(event, Finish) for event in events):
            before_finish |= now
    return frozenset(ids.values()), frozenset(ended), frozenset(before_finish)


def served_calls(case: Case) -> frozenset[str]:
    """The ids of the calls that the service runs itself: a client passes over their blocks."""
    frames = readable_events(b"".join(case.chunks), case.api)
    return frozenset(
        one.id for events in frames for one in events if isinstance(one, ServerToolStart)
    )


def is_passed_over(case: Case, level: Level, at: int) -> bool:
    """Whether the event of a `feed` is of a kind that adds nothing to any outcome, such as `ping`
    or a citation."""
    if level == "payloads":
        value = case.events.decoded[at][0] if case.events is not None else None
    else:
        frames = PROTOCOLS[case.api].usual.readable(b"".join(case.chunks[: at + 1]))
        value = json_value(frames[-1].data) if frames else None
    kind = _kind(value)
    return bool(kind) and _kinds(b"".join(case.chunks), case.api).get(kind, False)


def names_what_is_passed_over(case: Case, text: str) -> bool:
    """Whether a text names such a kind of event, or the type of such events alone. A `KeyError`
    names what is missing."""
    kinds = _passed_over_types(b"".join(case.chunks), case.api)
    words = text.partition("{")[0].split()  # it may quote an event
    return not text.startswith("KeyError") and any(word.strip("'`:,.") in kinds for word in words)


_Kind = tuple[str, ...]


def _kind(value: Any) -> _Kind:
    """The types in an event: its own, and those of the objects directly in it."""
    inner = value.values() if isinstance(value, dict) else ()
    types = (part.get("type") for part in (value, *inner) if isinstance(part, dict))
    return tuple(type for type in types if isinstance(type, str))


def _passed_over_types(data: bytes, api: str) -> set[str]:
    """The innermost types of the kinds that add nothing, and those that no other kind has."""
    kinds = _kinds(data, api)
    others = {type for kind, empty in kinds.items() if not empty for type in kind}
    empty = [kind for kind in kinds if kind and kinds[kind]]
    return {kind[-1] for kind in empty} | {type for kind in empty for type in kind} - others


@lru_cache(maxsize=256)
def _kinds(data: bytes, api: str) -> dict[_Kind, bool]:
    """The kinds of events before the end of a stream, and whether those of a kind neither begin
    nor end a part, nor add to one."""
    found: dict[_Kind, bool] = {}
    frames = PROTOCOLS[api].usual.readable(data)
    # The events end at the first frame that cannot be decoded, the frames do not.
    for frame, events in zip(frames, readable_events(data, api), strict=False):
        value = json_value(frame.data)
        if isinstance(value, dict) and PROTOCOLS[api].events.is_end(value):
            break
        empty = all(isinstance(each, Cite | ServerToolResult | ServerToolStart) for each in events)
        found[_kind(value)] = found.get(_kind(value), True) and empty
    return found
