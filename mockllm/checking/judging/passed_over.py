"""Finds what a client may pass over: kinds of events and fields that add nothing to an outcome,
such as `ping` and citations. Pure."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from functools import lru_cache
from typing import Any

from mockllm.checking.cases.case import Case, Level
from mockllm.core.events import Cite, PartEnd, ServerToolResult, ServerToolStart, Start
from mockllm.errors import MockLLMError
from mockllm.framing.sse import decode
from mockllm.protocols import PROTOCOLS

_Kind = tuple[str, ...]

_LONGEST = 500
"""So much of a message is read, up to the first bracket: it may quote an event."""


def is_passed_over(case: Case, level: Level, at: int) -> bool:
    """Whether the event of a `feed` is of a kind that adds nothing."""
    chunks = case.chunks if level == "payloads" else case.chunks[: at + 1]
    values = _values(b"".join(chunks), case.api)
    value = values[at if level == "payloads" else -1] if values else None
    return _kind(value) in _empty_kinds(b"".join(case.chunks), case.api)


def names_what_is_passed_over(case: Case, text: str) -> bool:
    """Whether a text names a kind of event, or a field, that adds nothing. A `KeyError` names what
    is missing."""
    if text.startswith("KeyError"):
        return False
    data = b"".join(case.chunks)
    text = re.split(r"[{\[]", text[:_LONGEST])[0]
    words = set(re.findall(r"[\w.]+", text))
    kinds = {kind[-1] for kind in _empty_kinds(data, case.api)}
    # A word of prose is no name of a field: `object` and `type` stand in many messages.
    names = {word for word in words if f"'{word}'" in text or re.search("[a-z][._A-Z]", word)}
    return bool(kinds & words) or any(_adds_nothing(data, case.api, name) for name in names)


def _values(data: bytes, api: str) -> list[Any]:
    """The JSON values of the events that a client of decoded events gets."""
    end = PROTOCOLS[api].end_data
    texts = (frame.data for frame in decode(data))
    try:
        return [json.loads(text) for text in texts if text not in (None, end, "[DONE]")]
    except ValueError:
        return []


def _kind(value: Any) -> _Kind:
    """The types in an event: its own, and those of the objects directly in it."""
    inner = value.values() if isinstance(value, dict) else ()
    types = (part.get("type") for part in (value, *inner) if isinstance(part, dict))
    return tuple(type for type in types if isinstance(type, str))


_PASSED_OVER = (Cite, ServerToolResult, ServerToolStart)


@lru_cache(maxsize=256)
def _empty_kinds(data: bytes, api: str) -> frozenset[_Kind]:
    """The kinds of events before the end of a stream that neither begin nor end a part, nor add
    to one."""
    found: defaultdict[_Kind, bool] = defaultdict(lambda: True)
    values = _values(data, api)
    ends = (at for at, value in enumerate(values) if PROTOCOLS[api].events.is_end(value))
    for value, events in zip(values[: next(ends, None)], _decoded(values, api), strict=False):
        found[_kind(value)] &= all(isinstance(event, _PASSED_OVER) for event in events)
    return frozenset(kind for kind, empty in found.items() if kind and empty)


@lru_cache(maxsize=512)
def _adds_nothing(data: bytes, api: str, field: str) -> bool:
    """Whether a stream has a field, and the same content without it."""
    values = _values(data, api)
    fewer = [_without(value, field) for value in values]
    return fewer != values and _content(fewer, api) == _content(values, api)


def _without(value: Any, field: str) -> Any:
    if isinstance(value, list):
        return [_without(inner, field) for inner in value]
    if not isinstance(value, dict):
        return value
    return {key: _without(inner, field) for key, inner in value.items() if key != field}


def _content(values: list[Any], api: str) -> list[str]:
    """What a client keeps of the events of a stream."""
    ignored = (*_PASSED_OVER, PartEnd, Start)
    events = (event for events in _decoded(values, api) for event in events)
    return [repr(event) for event in events if not isinstance(event, ignored)]


def _decoded(values: list[Any], api: str) -> list[list[Any]]:
    """What is decoded from each event, and at the end; [] where they cannot be read."""
    decoder = PROTOCOLS[api].decoder()
    frames = decode("".join(f"data: {json.dumps(value)}\n\n" for value in values).encode())
    try:
        return [*([*decoder.decode(frame)] for frame in frames), [*decoder.close()]]
    except MockLLMError:
        return []
