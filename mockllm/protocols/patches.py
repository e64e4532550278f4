"""The patches of the events of one stream, by kind of event.

What all events share is written once, under `*`; what those of a kind share, under the kind; the
values of a field that every event of a kind has, in a list (`each`). `collected` finds these
patches, and `Patches` gives each event its own again. Pure.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mockllm.core.frame import Frame
from mockllm.protocols.arrangement import Entry
from mockllm.protocols.base import WireProtocol, dumps
from mockllm.protocols.field_patch import BEFORE, Patch, merged, patched
from mockllm.protocols.normalisation import ABSENT, difference_of_frames, value_of

__all__ = ["Patches", "changed", "collected"]

_FEWEST = 4
"""A kind with fewer events has no list of values."""


def changed(frame: Frame, patches: list[Patch], before: object = ABSENT) -> Frame:
    """An event with its patches.

    Args:
        before: the value of the event that is sent before it.
    """
    value = value_of(frame)
    if not any(patches) or not isinstance(value, dict):
        return frame
    after = patched(value, merged(patches), before)
    if frame.event is not None and frame.event == value.get("type") != after.get("type"):
        frame = replace(frame, event=str(after.get("type")))
    return replace(frame, data=dumps(after))


class Patches:
    """The patches of an extra; `of` gives those of one event.

    Args:
        by_kind: the `stream` of an extra.
    """

    def __init__(self, by_kind: Mapping[str, Any]) -> None:
        self._by_kind = by_kind
        self._all = by_kind.get("*", {})

    def of(self, kind: str, name: str) -> list[Patch]:
        """The patches of an event, to be applied in this order."""
        shared = self._by_kind.get(kind, {})
        own = self._by_kind.get(name, shared)
        number = int(name.rpartition("#")[2])
        return [self._all, own, *_values(self._all, number, kind), *_values(shared, number, kind)]


def _values(patch: Patch, number: int, kind: str) -> list[Patch]:
    """The patch with the values that `each` has for the event with a number."""
    each = patch.get("each", {}).items() if kind else ()
    found = {pointer: values[number - 1] for pointer, values in each if number <= len(values)}
    return [{"set": found}] if found else []


def collected(
    protocol: WireProtocol, entries: Sequence[Entry], patches: Mapping[str, Patch]
) -> dict[str, Any]:
    """The patches by kind.

    Args:
        entries: all events of the turn.
        patches: by name of an event that is sent, its patch.
    """
    sent = [one for one in entries if one.name in patches]
    left, each = _in_lists(entries, patches)
    kinds = [one.kind for one in sent]
    own = [left[one.name] for one in sent]
    usual = {kind: _usual(kinds, own, kind) for kind in dict.fromkeys(kinds)}
    chosen = [
        usual[one.kind] if _same(protocol, one.frame, usual[one.kind], patch) else patch
        for one, patch in zip(sent, own, strict=True)
    ]
    common = _common(chosen)
    by_kind = {one: _minus(patch, common) | each.get(one, {}) for one, patch in usual.items()}
    different = {
        one.name: _minus(patch, common)
        for one, patch in zip(sent, chosen, strict=True)
        if patch != usual[one.kind]
    }
    shared = {"*": common} if common else {}
    return shared | {kind: patch for kind, patch in by_kind.items() if patch} | different


def _in_lists(
    entries: Sequence[Entry], patches: Mapping[str, Patch]
) -> tuple[dict[str, Patch], dict[str, Patch]]:
    """The patches without the fields that every event of a kind sets, to different values; and, by
    kind, the lists of these values."""
    names: dict[str, list[str]] = {}
    for one in entries:
        names.setdefault(one.kind, []).append(one.name)
    left = dict(patches)
    each: dict[str, Patch] = {}
    for kind, members in names.items():
        if len(members) < _FEWEST or not all(name in patches for name in members):
            continue
        values = [patches[name].get("set", {}) for name in members]
        lists = {
            pointer: [one[pointer] for one in values]
            for pointer in values[0]
            if all(pointer in one for one in values)
        }
        lists = {pointer: of for pointer, of in lists.items() if len(set(map(dumps, of))) > 1}
        if lists:
            each[kind] = {"each": lists}
            for name in members:
                left[name] = _minus(patches[name], {"set": lists})
    return left, each


def _usual(kinds: Sequence[str], patches: Sequence[Patch], wanted: str) -> Patch:
    """The most frequent patch of a kind."""
    texts = Counter(dumps(p) for one, p in zip(kinds, patches, strict=True) if one == wanted)
    patch: Patch = json.loads(texts.most_common(1)[0][0])
    return patch


def _same(protocol: WireProtocol, frame: Frame, one: Patch, other: Patch) -> bool:
    """Whether two patches have the same effect on an event: a copy of "" is "", too."""
    if one == other:
        return True
    sources = [*one.get("copy", {}).values(), *other.get("copy", {}).values()]
    if any(source.startswith(BEFORE) for source in sources):
        return False
    frames = [[changed(frame, [patch])] for patch in (one, other)]
    return difference_of_frames(protocol, *frames) is None


def _common(patches: Sequence[Patch]) -> Patch:
    """The operations that all patches have."""
    if len(patches) < 2:
        return {}
    first, others = patches[0], patches[1:]
    common: Patch = {}
    for name in ("set", "copy"):
        same = {
            pointer: value
            for pointer, value in first.get(name, {}).items()
            if all(_has(one.get(name, {}), pointer, value) for one in others)
        }
        common |= {name: same} if same else {}
    removed = [p for p in first.get("remove", ()) if all(p in o.get("remove", ()) for o in others)]
    return common | ({"remove": removed} if removed else {})


def _has(values: Mapping[str, Any], pointer: str, value: Any) -> bool:
    return pointer in values and dumps(values[pointer]) == dumps(value)


def _minus(patch: Patch, common: Patch) -> Patch:
    """The operations of a patch without the common ones."""
    left: Patch = {}
    for name, values in patch.items():
        shared = common.get(name, ())
        if isinstance(values, list):
            kept: Any = [pointer for pointer in values if pointer not in shared]
        else:
            kept = {pointer: value for pointer, value in values.items() if pointer not in shared}
        left |= {name: kept} if kept else {}
    return left
