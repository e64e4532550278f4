"""A patch between two JSON values of one event: its fields set, copied and removed.

`mockllm.protocols.extra` describes the notation. `patched(value, patch_of(value, other))` equals
`other`, but for what normalisation ignores. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from mockllm.errors import WireError
from mockllm.protocols.base import WireProtocol
from mockllm.protocols.normalisation import ABSENT, answer_in, is_made_up, normal_value
from mockllm.protocols.records import Normalisation

__all__ = ["BEFORE", "Patch", "merged", "patch_of", "patch_of_errors", "patch_of_events", "patched"]

Patch = dict[str, Any]
"""`{"set": {pointer: value}, "copy": {pointer: pointer}, "remove": [pointer]}`; {}: no change."""

BEFORE = "^"
"""The beginning of a pointer into the event that is sent before."""

_DEEPEST = 16
"""A value with more levels cannot be written in YAML, which has a bound on nesting."""


# Making


def patch_of(
    protocol: WireProtocol,
    ours: object,
    theirs: object,
    *,
    streamed: bool,
    before: object = ABSENT,
) -> Patch:
    """The patch from an encoded event to the recorded one; pointers of a body begin inside its
    envelope.

    Args:
        before: the recorded event before it.

    Raises:
        WireError: they are no objects, or differ in the number of items of a list of content.
    """
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        if ours == theirs:
            return {}
        raise WireError("an event is no JSON object")
    making = _Making(protocol.normalize, _texts(protocol, ours), ours.get("type"), before)
    path = "" if streamed else protocol.normalize.envelope
    inner = (lambda value: value) if streamed else (lambda value: answer_in(protocol, value))
    making.compare(inner(ours), inner(theirs), path, "")
    return making.patch()


def patch_of_events(protocol: WireProtocol, before: dict[str, Any], after: dict[str, Any]) -> Patch:
    """The patch from one recorded event to the next, of any kind."""
    making = _Making(protocol.normalize, {}, after.get("type"), free=True)
    making.compare(before, after, "", "")
    return making.patch()


def patch_of_errors(
    protocol: WireProtocol, ours: dict[str, Any], theirs: dict[str, Any], message: str
) -> Patch:
    """The patch between the bodies of two HTTP errors, of any form; the message is copied."""
    strings = _strings(ours, ours, "")
    texts = {text: pointer for pointer, text, _ in strings if text and text == message}
    making = _Making(protocol.normalize, texts, theirs.get("type"), free=True)
    making.compare(ours, theirs, "", "")
    return making.patch()


class _Making:
    """The operations of one patch.

    Args:
        texts: pointers to the model's text in the encoded event, by text.
        type: of the event.
        before: the event before it.
        free: whether lists of content may have other numbers of items.
    """

    def __init__(
        self,
        rules: Normalisation,
        texts: Mapping[str, str],
        type: object,
        before: object = ABSENT,
        *,
        free: bool = False,
    ) -> None:
        self._rules = rules
        self._texts = texts
        self._type = type
        self._before = before
        self._free = free
        self._set: dict[str, Any] = {}
        self._copy: dict[str, str] = {}
        self._remove: list[str] = []

    def patch(self) -> Patch:
        operations = {"set": self._set, "copy": self._copy, "remove": self._remove}
        return {name: values for name, values in operations.items() if values}

    def compare(
        self, ours: dict[str, Any], theirs: dict[str, Any], path: str, pointer: str
    ) -> None:
        """Adds the operations for the fields of two objects."""
        for key in [*ours, *(key for key in theirs if key not in ours)]:
            inner = f"{path}.{key}" if path else key
            if not is_made_up(self._rules, path, key, self._type):
                mine, other = ours.get(key, ABSENT), theirs.get(key, ABSENT)
                self._field(mine, other, inner, f"{pointer}/{_escaped(key)}")

    def _field(self, ours: object, theirs: object, path: str, pointer: str) -> None:
        if self._equal(ours, theirs, path):
            return
        if isinstance(ours, dict) and isinstance(theirs, dict):
            self.compare(ours, theirs, path, pointer)
        elif self._adds_content(ours, theirs, path):
            if self._repeats(theirs, path, pointer):
                self._copy[pointer] = BEFORE + pointer
                return
            raise WireError(f"{path}: {_count(theirs)} were recorded, the turn has {_count(ours)}")
        elif isinstance(ours, list) and isinstance(theirs, list) and _objects(ours, theirs):
            for i, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                self.compare(one, other, path, f"{pointer}/{i}")
        elif theirs is ABSENT:
            self._remove.append(pointer)
        else:
            self._write(theirs, pointer)

    def _adds_content(self, ours: object, theirs: object, path: str) -> bool:
        """Whether a list of content has another number of items; an item without an id, a name
        and text in a list of ours that is empty is no content (OpenRouter's usage chunk)."""
        if self._free:
            return False
        same = path.rpartition(".")[2] not in self._rules.content or _count(ours) == _count(theirs)
        return not same and bool(_count(ours) or _has_content(theirs))

    def _repeats(self, theirs: object, path: str, pointer: str) -> bool:
        """Whether the event before has the same value, as where OpenRouter repeats its finish."""
        found = _item(*_parent(self._before, pointer))
        return found is not ABSENT and self._equal(found, theirs, path)

    def _equal(self, ours: object, theirs: object, path: str) -> bool:
        mine, other = (normal_value(self._rules, one, path) for one in (ours, theirs))
        return mine is other or (type(mine) is type(other) and mine == other)

    def _write(self, value: object, pointer: str) -> None:
        if isinstance(value, str) and value in self._texts:
            self._copy[pointer] = self._texts[value]
            return
        self._set[pointer] = self._without_texts(value, pointer, 0)

    def _without_texts(self, value: Any, pointer: str, depth: int) -> Any:
        """A value in which copies fill the strings that are text of the model."""
        if depth > _DEEPEST:
            raise WireError(f"{pointer}: it is nested too deeply")
        if isinstance(value, dict):
            return {
                key: self._inner(item, f"{pointer}/{_escaped(key)}", depth)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._inner(item, f"{pointer}/{i}", depth) for i, item in enumerate(value)]
        return value

    def _inner(self, value: Any, pointer: str, depth: int) -> Any:
        if isinstance(value, str) and value and value in self._texts:
            self._copy[pointer] = self._texts[value]
            return ""
        return self._without_texts(value, pointer, depth + 1)


def _has_content(value: object) -> bool:
    """Whether a value has a string besides the role."""
    if isinstance(value, dict):
        return any(_has_content(item) for key, item in value.items() if key != "role")
    if isinstance(value, list):
        return any(map(_has_content, value))
    return isinstance(value, str) and value != ""


def _count(value: object) -> int:
    return len(value) if isinstance(value, list) else 0


def _objects(ours: list[Any], theirs: list[Any]) -> bool:
    """Whether two lists have the same number of items, which are all objects."""
    return len(ours) == len(theirs) and all(isinstance(item, dict) for item in (*ours, *theirs))


_MARK = "\0"


def _texts(protocol: WireProtocol, value: dict[str, Any]) -> dict[str, str]:
    """The pointers to the model's text in an event, by text; the first of several is kept."""
    marked = protocol.events.map_text(value, lambda text: _MARK + text)
    found: dict[str, str] = {}
    for pointer, text, other in _strings(value, marked, ""):
        if text != other:
            found.setdefault(text, pointer)
    return found


def _strings(value: Any, marked: Any, pointer: str) -> Iterator[tuple[str, str, str]]:
    """Each string of a value with its pointer and its counterpart in a value of the same form."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, marked[key], f"{pointer}/{_escaped(key)}")
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _strings(item, marked[i], f"{pointer}/{i}")
    elif isinstance(value, str):
        yield pointer, value, marked


# Applying


def merged(patches: list[Patch]) -> Patch:
    """Several patches as one; later ones win."""
    whole: Patch = {"set": {}, "copy": {}, "remove": []}
    for patch in patches:
        whole["set"] |= patch.get("set", {})
        whole["copy"] |= patch.get("copy", {})
        whole["remove"] += patch.get("remove", [])
    return whole


def patched(value: dict[str, Any], patch: Patch, before: object = ABSENT) -> dict[str, Any]:
    """The value with the operations of a patch, without those whose pointers lead nowhere.

    Args:
        before: the value that pointers after `^` lead into.
    """
    changed = deepcopy(value)
    for pointer in patch.get("remove", ()):
        parent, key = _parent(changed, pointer)
        if isinstance(parent, dict):
            parent.pop(key, None)
    for pointer, item in patch.get("set", {}).items():
        _put(changed, pointer, deepcopy(item))
    for pointer, source in patch.get("copy", {}).items():
        parent, key = _parent(
            before if source.startswith(BEFORE) else value, source.removeprefix(BEFORE)
        )
        found = _item(parent, key)
        if found is not ABSENT:
            _put(changed, pointer, deepcopy(found))
    return changed


def _put(value: object, pointer: str, item: object) -> None:
    parent, key = _parent(value, pointer)
    if isinstance(parent, dict):
        parent[key] = item
    elif isinstance(parent, list) and _item(parent, key) is not ABSENT:
        parent[int(key)] = item


def _parent(value: object, pointer: str) -> tuple[object, str]:
    """The object or list that a pointer leads into, and the last token of the pointer."""
    *tokens, last = pointer.split("/")[1:] or [""]
    for token in tokens:
        value = _item(value, _unescaped(token))
    return value, _unescaped(last)


def _item(value: object, key: str) -> object:
    if isinstance(value, dict):
        return value.get(key, ABSENT)
    if isinstance(value, list) and key.isdecimal() and key.isascii() and int(key) < len(value):
        return value[int(key)]
    return ABSENT


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _unescaped(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")
