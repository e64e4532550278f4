"""The parts that one API has and no other: what must be in them, as tables.

A *shape* yields what is wrong with a JSON value: where in it, and why, in the words of scenarios.
An API lists the shapes of its parts by their `type` (`WireProtocol.native`). Scenarios are checked
with them, and decoders make a native part only of a value of such a shape: what the table does not
know stays a frame. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mockllm.core import events as ev
from mockllm.core.jsontext import compact
from mockllm.core.text import did_you_mean
from mockllm.wire.protocols.records import Json

Mistake = tuple[tuple[str | int, ...], str]
Shape = Callable[[Any], Iterator[Mistake]]

_MOST_BRACKETS = 50
"""YAML may not nest more deeply."""


def anything(_: Any) -> Iterator[Mistake]:
    """Any value, null among them."""
    return iter(())


def _of_kind(kind: type, name: str) -> Shape:
    def mistakes(value: Any) -> Iterator[Mistake]:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            yield (), f"must be {name}, got {_kind_of(value)}"

    return mistakes


text = _of_kind(str, "a string")
boolean = _of_kind(bool, "true or false")
integer = _of_kind(int, "a whole number")
mapping = _of_kind(dict, "a mapping")
sequence = _of_kind(list, "a list")


def _kind_of(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return compact(value)[:60]


def nullable(shape: Shape) -> Shape:
    """Null, or a value of a shape."""
    return lambda value: iter(()) if value is None else shape(value)


def one_of(*names: str) -> Shape:
    """One of some strings."""

    def mistakes(value: Any) -> Iterator[Mistake]:
        if value not in names:
            hint = did_you_mean(value, names) if isinstance(value, str) else ""
            known = f"must be one of {', '.join(names)}, got {_kind_of(value)}"
            yield (), f"{known}; {hint}" if hint else known

    return mistakes


def either(kind: type, shape: Shape, otherwise: Shape) -> Shape:
    """A value of one shape where it is of a kind, and of another one elsewhere."""
    return lambda value: (shape if isinstance(value, kind) else otherwise)(value)


def items(shape: Shape, *, least: int = 0) -> Shape:
    """A list of values of a shape."""

    def mistakes(value: Any) -> Iterator[Mistake]:
        yield from sequence(value)
        if isinstance(value, list):
            if len(value) < least:
                yield (), "must not be empty"
            for number, item in enumerate(value):
                yield from _inside(number, shape(item))

    return mistakes


def keys(required: Mapping[str, Shape], others: Mapping[str, Shape] | None = None) -> Shape:
    """A mapping with these keys, and with no other ones."""
    known = {**required, **(others or {})}

    def mistakes(value: Any) -> Iterator[Mistake]:
        if not isinstance(value, dict):
            yield from mapping(value)
            return
        for key, inner in value.items():
            if key in known:
                yield from _inside(key, known[key](inner))
            else:
                hint = did_you_mean(key, known, f"known here: {', '.join(known)}")
                yield (key,), f"unknown key {key!r}; {hint}"
        for key in required:
            if key not in value:
                yield (), f"needs the key {key!r}"

    return mistakes


def by_key(name: str, shapes: Mapping[str, Shape]) -> Shape:
    """A mapping whose other keys depend on the value of one key."""
    known = one_of(*shapes)

    def mistakes(value: Any) -> Iterator[Mistake]:
        if not isinstance(value, dict):
            yield from mapping(value)
        elif name not in value:
            yield (), f"needs the key {name!r}, one of {', '.join(shapes)}"
        else:
            shape = shapes.get(value[name]) if isinstance(value[name], str) else None
            if shape is None:
                yield from _inside(name, known(value[name]))
            else:
                yield from shape({key: inner for key, inner in value.items() if key != name})

    return mistakes


def _inside(key: str | int, mistakes: Iterator[Mistake]) -> Iterator[Mistake]:
    return (((key, *path), message) for path, message in mistakes)


def native_event(part: int, api: str, value: Json, shapes: Mapping[str, Shape]) -> ev.Raw | None:
    """The event of a part in the form of an API; None for a value of no known shape."""
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in shapes:  # most frames
        return None
    written = compact(value)
    if written.count("[") + written.count("{") > _MOST_BRACKETS:
        return None
    if next(by_key("type", shapes)(value), None) is not None:
        return None
    return ev.Raw(part, api, ev.Frame(written), native=True)
