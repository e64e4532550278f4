"""What of an event its service makes up, so that two streams can be compared event by event.

Identifiers, times, padding and what a service fills in about its configuration differ between
two answers that say the same. Only pure functions and data may live here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from mockllm.core.frame import Frame

__all__ = ["ABSENT", "difference", "first_difference", "masked"]

ABSENT = object()
"""Stands in a comparison for what is not there."""

_MADE_UP: dict[str, frozenset[str]] = {
    "chat": frozenset(
        {"id", "created", "model", "service_tier", "system_fingerprint", "obfuscation"}
    ),
    "responses": frozenset(
        {"sequence_number", "obfuscation", "item_id", "item.id"}
        | {"response.id", "response.output.id", "response.output.encrypted_content"}
        | {"response.created_at", "response.completed_at", "response.model"}
    ),
    "anthropic": frozenset(
        {"message.id", "message.model", "request_id", "message.usage"}
        | {"usage.inference_geo", "usage.service_tier", "usage.cache_creation"}
    ),
    "gemini": frozenset({"responseId", "modelVersion", "createTime", "candidates.index"}),
    "agui": frozenset({"timestamp", "threadId", "runId", "messageId", "parentMessageId"}),
}
"""The fields that are left out, by protocol; a dot leads into an object or a list of them.

Anthropic's usage at the beginning is what was counted so far; the end tells it again. Gemini's
index of the only candidate is 0, which its servers may leave out."""

_ANSWER: dict[str, dict[str, frozenset[str]]] = {
    "responses": {
        "response": frozenset(
            {"object", "status", "output", "usage", "error", "incomplete_details"}
        )
    }
}
"""Objects of which only these fields are the answer; the others repeat the configuration,
which services extend every few weeks."""

_USAGE = re.compile(r"(^|\.)usage(\.|$)|[uU]sageMetadata")

_RENEWED = {"response.output_item.added": "encrypted_content"}
"""By the `type` of an event, what its `item` has in a form that a later event replaces."""

_BESIDE: dict[str, frozenset[str]] = {"anthropic": frozenset({"ping"})}
"""Events that come by the clock, by their `type`."""


def masked(api: str, frames: Sequence[Frame]) -> list[object]:
    """The events of a stream as values to compare, without what its service makes up.

    Fields that are null are left out, and so are zeros of usage and empty log probabilities:
    clients take them for absent.
    """
    beside = _BESIDE.get(api, frozenset())
    values = []
    for frame in frames:
        value = _value(frame)
        type = value.get("type") if isinstance(value, dict) else None
        if isinstance(type, str) and type in beside:
            continue
        if type in _RENEWED and isinstance(value.get("item"), dict):
            value["item"].pop(_RENEWED[type], None)
        values.append(_mask(api, value, ""))
    return values


def _value(frame: Frame) -> Any:
    if frame.data is None:
        return {"comment": frame.comment} if frame.comment is not None else {}
    try:
        return json.loads(frame.data)
    except (ValueError, RecursionError):
        return frame.data


def _mask(api: str, value: object, path: str) -> object:
    if isinstance(value, list):
        return [_mask(api, item, path) for item in value]
    if not isinstance(value, dict):
        return value
    only = _ANSWER.get(api, {}).get(path)
    made_up = _MADE_UP.get(api, frozenset())
    kept = {}
    for key, item in value.items():
        inner = f"{path}.{key}" if path else key
        if item is None or inner in made_up or (only is not None and key not in only):
            continue
        shown = _mask(api, item, inner)
        if not shown and (key == "logprobs" or _USAGE.search(path)):
            continue
        kept[key] = shown
    return kept


# Differences in words


def first_difference(recorded: Sequence[object], made: Sequence[object]) -> str | None:
    """Where two lists of events first differ, in words; None where they are equal."""
    for number, (one, other) in enumerate(zip_longest(recorded, made, fillvalue=ABSENT), 1):
        found = difference(one, other, "recorded", "re-encoded")
        if found is not None:
            return f"event {number}: {found}"
    return None


def difference(one: object, other: object, first: str, second: str) -> str | None:
    """The first difference between two JSON values, as `path: <first> …, <second> …`.

    Args:
        first: what `one` is called.
        second: what `other` is called.
    """
    found = _walk(one, other, "")
    if found is None:
        return None
    path, here, there = found
    where = f"{path}: " if path else ""
    return f"{where}{first} {_shown(here)}, {second} {_shown(there)}"


def _walk(one: object, other: object, path: str) -> tuple[str, object, object] | None:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            inner = f"{path}.{key}" if path else str(key)
            found = _walk(one.get(key, ABSENT), other.get(key, ABSENT), inner)
            if found is not None:
                return found
        return None
    if isinstance(one, list) and isinstance(other, list):
        for i, (here, there) in enumerate(zip_longest(one, other, fillvalue=ABSENT)):
            found = _walk(here, there, f"{path}[{i}]")
            if found is not None:
                return found
        return None
    return None if one == other and type(one) is type(other) else (path, one, other)


def _shown(value: object) -> str:
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
