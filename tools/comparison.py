"""Comparison of two streams of one API, event by event.

Ids, times, padding and fields about the service's configuration differ between two answers with
the same content. Each protocol's `Normalisation` lists them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from mockllm.core.events import Frame
from mockllm.core.text import shorten
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.extra import is_made_up
from mockllm.wire.protocols.records import Normalisation

_REPLACED = {"response.output_item.added": "encrypted_content"}
"""By the `type` of an event, the field of its `item` that a later event has in its final form."""

ABSENT = object()
"""The value of a missing field or event in a comparison."""


def normalized(protocol: WireProtocol, frames: Sequence[Frame]) -> list[object]:
    """The events of a stream as values to compare, without generated fields.

    Null fields are removed, and so are zeros of usage and empty log probabilities, because
    clients treat them as absent. Comments are removed: they are the transport's.
    """
    rules = protocol.normalize
    return [_normal_event(rules, value) for value in _compared(protocol, frames)]


def _compared(protocol: WireProtocol, frames: Sequence[Frame]) -> list[Any]:
    """The values of the frames that a comparison looks at."""
    return [value_of(frame) for frame in frames if not is_ignored(protocol, frame)]


def _normal_event(rules: Normalisation, value: Any) -> object:
    """The value of an event as comparisons see it; it is changed."""
    type = value.get("type") if isinstance(value, dict) else None
    replaced = _REPLACED.get(type) if isinstance(type, str) else None
    if replaced is not None and isinstance(value.get("item"), dict):
        value["item"].pop(replaced, None)
    return normal_value(rules, value, "")


def is_ignored(protocol: WireProtocol, frame: Frame) -> bool:
    """Whether a frame is a comment, an event that depends on the time only, or the end marker of
    another API, which some services add."""
    if frame.comment is not None and frame.data is None:
        return True
    if protocol.end_data is None and frame.data == "[DONE]":
        return True
    value = value_of(frame) if protocol.normalize.keepalive else None
    type = value.get("type") if isinstance(value, dict) else None
    return isinstance(type, str) and type in protocol.normalize.keepalive


def value_of(frame: Frame) -> Any:
    """The data of a frame as a JSON value; as text, where they are none; {} without data."""
    if frame.data is None:
        return {}
    try:
        return json.loads(frame.data)
    except (ValueError, RecursionError):
        return frame.data


def normal_value(rules: Normalisation, value: object, path: str) -> object:
    """A value at a path as comparisons see it; `ABSENT` where they see none."""
    if value is None:
        return ABSENT
    normal = _normalized(rules, value, path)
    if not normal:
        before, _, key = path.rpartition(".")
        if key == "logprobs" or rules.usage in before.split("."):
            return ABSENT
    return normal


def _normalized(rules: Normalisation, value: object, path: str) -> object:
    if isinstance(value, list):
        return [_normalized(rules, item, path) for item in value]
    if not isinstance(value, dict):
        return value
    compared = {}
    for key, item in value.items():
        if not is_made_up(rules, path, key):
            normal = normal_value(rules, item, f"{path}.{key}" if path else key)
            if normal is not ABSENT:
                compared[key] = normal
    return compared


def difference_of_frames(
    protocol: WireProtocol, recorded: Sequence[Frame], encoded: Sequence[Frame]
) -> str | None:
    """The first difference of two normalised streams, as a sentence; None where they are equal."""
    rules = protocol.normalize
    pairs = zip_longest(
        _compared(protocol, recorded), _compared(protocol, encoded), fillvalue=ABSENT
    )
    for number, (one, other) in enumerate(pairs, 1):
        if one is ABSENT or other is ABSENT or not _is_same(rules, one, other):
            here = one if one is ABSENT else _normal_event(rules, one)
            there = other if other is ABSENT else _normal_event(rules, other)
            different = difference(here, there, "recorded", "re-encoded")
            if different is not None:
                return f"event {number}: {different}"
    return None


def _is_same(rules: Normalisation, one: object, other: object) -> bool:
    """Whether two events have the same text without their generated fields. Most have, and then
    they need not be normalised, which takes ten times as long."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    texts = [
        json.dumps({key: value for key, value in event.items() if key not in rules.made_up})
        for event in (one, other)
    ]
    return texts[0] == texts[1]


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
    different = _walk(one, other, "")
    if different is None:
        return None
    path, here, there = different
    where = f"{path}: " if path else ""
    return f"{where}{first} {_shortened(here)}, {second} {_shortened(there)}"


def _walk(one: object, other: object, path: str) -> tuple[str, object, object] | None:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            inner = f"{path}.{key}" if path else str(key)
            different = _walk(one.get(key, ABSENT), other.get(key, ABSENT), inner)
            if different is not None:
                return different
        return None
    if isinstance(one, list) and isinstance(other, list):
        for i, (here, there) in enumerate(zip_longest(one, other, fillvalue=ABSENT)):
            different = _walk(here, there, f"{path}[{i}]")
            if different is not None:
                return different
        return None
    return None if one == other and type(one) is type(other) else (path, one, other)


def _shortened(value: object) -> str:
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return shorten(text, 60, keep=57, mark="...")
