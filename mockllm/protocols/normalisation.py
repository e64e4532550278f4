"""Normalisation of streams, so that two of them can be compared event by event.

Ids, times, padding and fields about the service's configuration differ between two answers with
the same content. Each protocol's `Normalisation` lists them. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from mockllm.core.frame import Frame
from mockllm.core.text import shorten
from mockllm.protocols.base import WireProtocol
from mockllm.protocols.records import Normalisation

__all__ = ["ABSENT", "difference", "difference_of_frames", "first_difference", "normalized"]

ABSENT = object()
"""The value of a missing field or event in a comparison."""


def normalized(protocol: WireProtocol, frames: Sequence[Frame]) -> list[object]:
    """The events of a stream as values to compare, without generated fields.

    Null fields are removed, and so are zeros of usage and empty log probabilities, because
    clients treat them as absent.
    """
    rules = protocol.normalize
    values = []
    for frame in frames:
        value = _value(frame)
        type = value.get("type") if isinstance(value, dict) else None
        if isinstance(type, str) and type in rules.keepalive:
            continue
        replaced = rules.replaced.get(type) if isinstance(type, str) else None
        if replaced is not None and isinstance(value.get("item"), dict):
            value["item"].pop(replaced, None)
        values.append(_normalized(rules, value, ""))
    return values


def _value(frame: Frame) -> Any:
    if frame.data is None:
        return {"comment": frame.comment} if frame.comment is not None else {}
    try:
        return json.loads(frame.data)
    except (ValueError, RecursionError):
        return frame.data


def _normalized(rules: Normalisation, value: object, path: str) -> object:
    if isinstance(value, list):
        return [_normalized(rules, item, path) for item in value]
    if not isinstance(value, dict):
        return value
    only = rules.answer_fields.get(path)
    kept = {}
    for key, item in value.items():
        inner = f"{path}.{key}" if path else key
        if item is None or inner in rules.made_up or (only is not None and key not in only):
            continue
        normal = _normalized(rules, item, inner)
        if not normal and (key == "logprobs" or rules.usage in path.split(".")):
            continue
        kept[key] = normal
    return kept


def difference_of_frames(
    protocol: WireProtocol, recorded: Sequence[Frame], encoded: Sequence[Frame]
) -> str | None:
    """The first difference of two normalised streams, as a sentence; None where they are equal."""
    return first_difference(normalized(protocol, recorded), normalized(protocol, encoded))


# Descriptions of differences


def first_difference(recorded: Sequence[object], encoded: Sequence[object]) -> str | None:
    """The first difference of two lists of events, as a sentence; None where they are equal."""
    for number, (one, other) in enumerate(zip_longest(recorded, encoded, fillvalue=ABSENT), 1):
        found = difference(one, other, "recorded", "re-encoded")
        if found is not None:
            return f"event {number}: {found}"
    return None


def difference(one: object, other: object, first: str, second: str) -> str | None:
    """The first difference between two JSON values, as `path: <first> …, <second> …`.

    Args:
        first: the name of `one` in the result.
        second: the name of `other` in the result.
    """
    found = _walk(one, other, "")
    if found is None:
        return None
    path, here, there = found
    where = f"{path}: " if path else ""
    return f"{where}{first} {_shortened(here)}, {second} {_shortened(there)}"


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


def _shortened(value: object) -> str:
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return shorten(text, 60, keep=57, mark="...")
