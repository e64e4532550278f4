"""The shape of JSON values: which fields there are at which places, of which types. Pure.

A place is a path without indexes, inside of a kind of event: `choices[].delta.content`. An object
whose `type` is a text has that type in its path, `output[function_call].arguments`, so that objects
which a model may choose from are told apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_TYPES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
}
NULL = frozenset({"null"})


class JsonPlace(NamedTuple):
    """A place in JSON values: the type of the event, "" where it has none, and the path in it."""

    event: str
    path: str

    def __str__(self) -> str:
        return f"{self.event}: {self.path}" if self.event else self.path


@dataclass(slots=True)
class FieldShape:
    """The types of a field in some values.

    Args:
        parent: the object that has it.
        count: how many such objects had it.
        null, empty: in how many of them it was null, and an empty text, list or object.
    """

    parent: JsonPlace
    types: set[str] = field(default_factory=set)
    count: int = 0
    null: int = 0
    empty: int = 0


class Shape:
    """The shape of some values; `objects` counts the objects at each place.

    Args:
        free: the names of fields whose value is an object that the model writes, such as the
            arguments of a call: what is in it is no shape.
    """

    def __init__(self, free: Iterable[str] = ()) -> None:
        self._free = frozenset(free)
        self.fields: dict[JsonPlace, FieldShape] = {}
        self.objects: Counter[JsonPlace] = Counter()

    def add(self, value: Any, event: str = "") -> None:
        """Adds a value.

        Args:
            event: the type of the event that it is.
        """
        if isinstance(value, dict):
            self._object(value, JsonPlace(event, ""))
        else:
            self._value(value, JsonPlace(event, ""))

    def merge(self, other: Shape) -> None:
        """Adds the values of another shape."""
        self.objects.update(other.objects)
        for place, theirs in other.fields.items():
            mine = self.fields.setdefault(place, FieldShape(theirs.parent))
            mine.types |= theirs.types
            mine.count += theirs.count
            mine.null += theirs.null
            mine.empty += theirs.empty

    def is_always(self, place: JsonPlace) -> bool:
        """Whether each object that may have a field has it."""
        known = self.fields[place]
        return known.count >= self.objects[known.parent]

    def _object(self, value: dict[str, Any], place: JsonPlace) -> None:
        self.objects[place] += 1
        for name, inner in value.items():
            path = f"{place.path}.{name}" if place.path else name
            at = JsonPlace(place.event, path)
            known = self.fields.setdefault(at, FieldShape(place))
            known.types.add(_TYPES.get(type(inner), "string"))
            known.count += 1
            known.null += inner is None
            known.empty += inner in ("", [], {})
            if not (isinstance(inner, dict) and (name in self._free or _is_schema(inner))):
                self._value(inner, at)

    def _value(self, value: Any, place: JsonPlace) -> None:
        if isinstance(value, dict):
            kind = value.get("type")
            named = f"{place.path}[{kind}]" if isinstance(kind, str) else place.path
            self._object(value, JsonPlace(place.event, named))
        elif isinstance(value, list):
            for item in value:
                self._item(item, place)

    def _item(self, item: Any, place: JsonPlace) -> None:
        has_type = isinstance(item, dict) and isinstance(item.get("type"), str)
        at = place if has_type else JsonPlace(place.event, f"{place.path}[]")
        self._value(item, at)


def _is_schema(value: dict[str, Any]) -> bool:
    """Whether an object is a JSON Schema, which the client wrote."""
    return value.get("type") == "object" and "properties" in value


def unknown_fields(known: Shape, seen: Shape) -> Iterator[JsonPlace]:
    """The fields of a shape that another one does not know, though it knows the objects that have
    them: the outermost ones."""
    for place, found in seen.fields.items():
        if place not in known.fields and found.parent in known.objects:
            yield place


def unknown_kinds(known: Shape, seen: Shape) -> Iterator[JsonPlace]:
    """The objects of a shape whose type another one does not know, though it knows the field that
    they are the value of, or an item of."""
    for place in seen.objects:
        outer = JsonPlace(place.event, place.path.rpartition("[")[0])
        is_kind = place.path.endswith("]") and not place.path.endswith("[]")
        if is_kind and place not in known.objects and outer in known.fields:
            yield place


def missing_fields(known: Shape, seen: Shape) -> Iterator[JsonPlace]:
    """The fields that each object of a shape has, and no such object of another one."""
    for place, found in known.fields.items():
        if place not in seen.fields and found.parent in seen.objects and known.is_always(place):
            yield place


def untyped_objects(known: Shape, seen: Shape) -> Iterator[JsonPlace]:
    """The types that objects always had and now lack: the place of each `type`."""
    for place in known.objects:
        outer, _, kind = place.path.rpartition("[")
        if kind.endswith("]") and kind != "]":
            bare = [JsonPlace(place.event, path) for path in (outer, f"{outer}[]")]
            if any(one in seen.objects and one not in known.objects for one in bare):
                yield JsonPlace(place.event, f"{place.path}.type")


def retyped_fields(known: Shape, seen: Shape) -> Iterator[JsonPlace]:
    """The fields that have a type in a shape which they never had in another; null is no type."""
    for place, found in seen.fields.items():
        before = known.fields[place].types - NULL if place in known.fields else set()
        if before and found.types - NULL - before:
            yield place
