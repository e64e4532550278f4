"""Finds what a client may pass over: kinds of events and fields that add nothing to an outcome,
such as `ping` and citations. Pure."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from mockllm.checking.cases.case import Case, Level
from mockllm.core.events import Cite, PartEnd, ServerToolResult, ServerToolStart, Start, ToolArgs
from mockllm.errors import MockLLMError
from mockllm.framing.sse import decode
from mockllm.protocols import PROTOCOLS

_Kind = tuple[str, ...]


def is_passed_over(case: Case, level: Level, at: int) -> bool:
    """Whether the event of a `feed` is of a kind that adds nothing."""
    chunks = case.chunks if level == "payloads" else case.chunks[: at + 1]
    values = _values(b"".join(chunks), case.api)
    value = values[at if level == "payloads" else -1] if values else None
    return value is not None and _adds_nothing(b"".join(case.chunks), case.api, kind=_kind(value))


def names_what_is_passed_over(case: Case, text: str) -> bool:
    """Whether a text names a kind of event, or a field, that adds nothing. A `KeyError` names what
    is missing."""
    if text.startswith("KeyError"):
        return False
    data = b"".join(case.chunks)
    kinds = {kind for value in _values(data, case.api) for kind in (_kind(value),) if kind}
    words = set(re.findall(r"[\w.]*[a-z][._A-Z][\w.]*|(?<=['`\"])\w+(?=['`\"])", text))
    named = [kind for kind in kinds if kind[-1] in {*words, *text.split()}]
    return any(_adds_nothing(data, case.api, kind=kind) for kind in named) or any(
        _adds_nothing(data, case.api, field=word) for word in words
    )


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


@lru_cache(maxsize=512)
def _adds_nothing(data: bytes, api: str, *, kind: _Kind = (), field: str = "") -> bool:
    """Whether a stream has the same content without events of a kind, or without a field."""
    values = _values(data, api)
    fewer = [_without(value, field) for value in values if not kind or _kind(value) != kind]
    return fewer != values and _content(fewer, api) == _content(values, api)


def _without(value: Any, field: str) -> Any:
    if isinstance(value, list):
        return [_without(inner, field) for inner in value]
    if not isinstance(value, dict):
        return value
    return {key: _without(inner, field) for key, inner in value.items() if key != field}


_NOT_IN_OUTCOMES = (Cite, PartEnd, ServerToolResult, ServerToolStart, Start)


def _content(values: list[Any], api: str) -> object:
    """What a client keeps of the events of a stream; None where they cannot be read."""
    decoder = PROTOCOLS[api].decoder()
    text = "".join(f"data: {json.dumps(value)}\n\n" for value in values).encode()
    try:
        events = [event for frame in decode(text) for event in decoder.decode(frame)]
    except MockLLMError:
        return None
    events += decoder.close()
    hosted = {event.part for event in events if isinstance(event, ServerToolStart)}
    return [
        (type(event), *(repr(getattr(event, name)) for name in event.__slots__ if name != "part"))
        for event in events
        if not isinstance(event, _NOT_IN_OUTCOMES)
        and not (isinstance(event, ToolArgs) and event.part in hosted)
    ]
