"""Results to JSON values and back. Fields that have their default are left out. Pure.

Each dataclass of `results` is an object with its fields; `stream_json` has the form of bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from mockllm.conformance.results import Results, Stream
from mockllm.conformance.results.stream_json import writes_from_json, writes_to_json


class DamagedError(ValueError):
    """A value that has not the form of results; the message begins with its path."""


def results_to_json(results: Results) -> dict[str, Any]:
    """The JSON object of results, without the version of the format."""
    return _object(results)


def results_from_json(value: object) -> Results:
    """The results of a JSON object."""
    found: Results = _dataclass(Results, value, "")
    return found


# To JSON


def _object(value: Any) -> dict[str, Any]:
    found = writes_to_json(value.writes) if isinstance(value, Stream) else {}
    for field in fields(value):
        item = getattr(value, field.name)
        if item != _default(field) and field.name != "writes":
            found[field.name] = _value(item)
    return found


def _value(value: Any) -> Any:
    if is_dataclass(value):
        return _object(value)
    if isinstance(value, Mapping):
        return {key: _value(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_value(item) for item in value]
    return value


def _default(one: Field[Any]) -> Any:
    if one.default is not MISSING:
        return one.default
    return one.default_factory() if one.default_factory is not MISSING else MISSING


# From JSON


def _read(kind: Any, value: object, path: str) -> Any:
    """The value of a type, from JSON."""
    if is_dataclass(kind):
        return _dataclass(kind, value, path)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        if value is None and NoneType in arguments:
            return None
        return _read(
            next(argument for argument in arguments if argument is not NoneType), value, path
        )
    if origin is Literal:
        return _checked(value in arguments, value, path, f"one of {', '.join(arguments)}")
    if origin is tuple:
        return _tuple(arguments, value, path)
    if origin is Mapping:
        _checked(isinstance(value, dict), value, path, "an object")
        items = value.items() if isinstance(value, dict) else ()
        return {key: _read(arguments[1], item, f"{path}.{key}") for key, item in items}
    if kind is Any:
        return value
    if kind is float and type(value) is int:
        value = float(value)
    right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    return _checked(right, value, path, _NAMES[kind])


_NAMES = {str: "a string", int: "a whole number", float: "a number"}


def _tuple(arguments: tuple[Any, ...], value: object, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _wrong(value, path, "a list")
    if arguments[-1] is not Ellipsis:
        _checked(len(value) == len(arguments), value, path, f"a list of {len(arguments)}")
        pairs = zip(arguments, value, strict=True)
        return tuple(_read(kind, item, path) for kind, item in pairs)
    return tuple(_read(arguments[0], one, f"{path}[{n}]") for n, one in enumerate(value))


def _dataclass(kind: Any, value: object, path: str) -> Any:
    if not isinstance(value, dict):
        raise _wrong(value, path, "an object")
    known, required = _fields(kind)
    found: dict[str, Any] = {}
    if kind is Stream:
        found["writes"] = _writes(value, path)
        value = {name: item for name, item in value.items() if name not in _BYTES}
    for name, item in value.items():
        where = f"{path}.{name}".lstrip(".")
        if name not in known:
            raise DamagedError(f"{where} is not a field that is known here")
        found[name] = known[name](item, where)
    missing = [name for name in required if name not in found]
    if missing:
        raise DamagedError(f"{path}.{missing[0]} is missing".lstrip("."))
    return kind(**found)


_BYTES = frozenset({"writes", "gzip", "sizes"})


def _writes(value: dict[str, Any], path: str) -> tuple[bytes, ...]:
    try:
        return writes_from_json(value)
    except ValueError as error:
        raise DamagedError(f"{path}: {error}") from None


@lru_cache
def _fields(kind: Any) -> tuple[dict[str, Callable[[object, str], Any]], list[str]]:
    """How each field of a dataclass is read, and which have no default."""
    hints = get_type_hints(kind)

    def reader(hint: Any) -> Callable[[object, str], Any]:
        return lambda value, path: _read(hint, value, path)

    known = {field.name: reader(hints[field.name]) for field in fields(kind)}
    return known, [field.name for field in fields(kind) if _default(field) is MISSING]


def _checked(right: bool, value: object, path: str, wanted: str) -> Any:
    if not right:
        raise _wrong(value, path, wanted)
    return value


def _wrong(value: object, path: str, wanted: str) -> DamagedError:
    return DamagedError(f"{path or 'the file'} must be {wanted}, got {value!r:.60}")
