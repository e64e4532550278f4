"""Results to JSON values and back. Fields that have their default are left out. Pure.

Each dataclass of `results` is an object with its fields. A stream has `{"writes": ["TEXT", ...]}`
where each write is UTF-8 and the stream is short, else `{"gzip": "BASE64", "sizes": [[SIZE, COUNT],
...]}` with the sizes of the writes, run by run.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import lru_cache
from itertools import groupby
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from mockllm.conformance.results import Results, Stream


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


# Streams: text where people can read it, else compressed


_LONGEST_TEXT = 4096
"""Bytes of a stream that is kept as text."""

_MOST_WRITES = 10_000_000
"""A damaged count may not fill the memory."""


def writes_to_json(writes: Sequence[bytes]) -> dict[str, Any]:
    """The fields of a stream that hold its bytes."""
    if sum(map(len, writes)) <= _LONGEST_TEXT:
        try:
            return {"writes": [write.decode() for write in writes]}
        except UnicodeDecodeError:
            pass  # bytes that are no UTF-8, or a character that is cut
    packed = gzip.compress(b"".join(writes), mtime=0)
    sizes = [[size, len(list(same))] for size, same in groupby(map(len, writes))]
    return {"gzip": base64.b64encode(packed).decode(), "sizes": sizes}


def writes_from_json(value: dict[str, Any]) -> tuple[bytes, ...]:
    """The writes of a stream."""
    if "writes" in value:
        texts = value["writes"]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError("writes must be a list of strings")
        return tuple(text.encode() for text in texts)
    sizes = _sizes(value.get("sizes"))
    return _split(_unpacked(value.get("gzip"), sizes), sizes)


def _sizes(value: object) -> list[int]:
    pairs = value if isinstance(value, list) else None
    if pairs is None or not all(map(_is_pair, pairs)):
        raise ValueError("it needs writes, or gzip with sizes, a list of [size, count]")
    if sum(count for _, count in pairs) > _MOST_WRITES:
        raise ValueError(f"sizes has more than {_MOST_WRITES:,} writes")
    return [size for size, count in pairs for _ in range(count)]


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(
            isinstance(number, int) and not isinstance(number, bool) and number >= 0
            for number in value
        )
    )


def _unpacked(text: object, sizes: list[int]) -> bytes:
    if not isinstance(text, str):
        raise ValueError("gzip must be a string in base64")  # noqa: TRY004 - as the docstring says
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(base64.b64decode(text, validate=True), sum(sizes) + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"gzip cannot be read: {error}") from None
    if len(data) != sum(sizes):
        raise ValueError(f"gzip has another length than the sizes, which are {sum(sizes)} bytes")
    return data


def _split(data: bytes, sizes: list[int]) -> tuple[bytes, ...]:
    found = []
    start = 0
    for size in sizes:
        found.append(data[start : start + size])
        start += size
    return tuple(found)
