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
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import lru_cache
from io import BytesIO
from itertools import groupby
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from mockllm.conformance.forms import form_problem
from mockllm.conformance.results import Results, Stream


class DamagedError(ValueError):
    """A value that has not the form of results; the message begins with its path."""


def results_to_json(results: Results) -> dict[str, Any]:
    """The JSON object of results, without the version of the format."""
    return _object(results)


def results_from_json(value: Mapping[str, Any]) -> Results:
    """The results of a JSON object, with the version of the format.

    Raises:
        DamagedError: it has not the form of `results.schema.json`.
    """
    problem = form_problem(value, "results")
    if problem:
        raise DamagedError(problem)
    fields = {name: item for name, item in value.items() if name != "mockllm_results"}
    results: Results = _built(Results, fields, "")
    return results


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


def _built(kind: Any, value: Any, path: str) -> Any:
    """The value of a type, from JSON of the right form.

    Args:
        path: of the value, for messages.
    """
    if kind is Any or value is None:
        return value
    if isinstance(kind, type) and is_dataclass(kind):
        value = _with_writes(value, path) if kind is Stream else value
        hints = _hints(kind)
        fields = {name: _built(hints[name], item, f"{path}.{name}") for name, item in value.items()}
        return kind(**fields)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        return _built(next(one for one in arguments if one is not NoneType), value, path)
    if origin is tuple and not isinstance(value, tuple):
        return tuple(_built(arguments[0], one, f"{path}[{n}]") for n, one in enumerate(value))
    if origin is Mapping:
        return {key: _built(arguments[1], one, f"{path}.{key}") for key, one in value.items()}
    return value


_hints = lru_cache(get_type_hints)


def _with_writes(value: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The fields of a stream, its bytes as writes."""
    try:
        writes = writes_from_json(value)
    except ValueError as error:
        raise DamagedError(f"{path.removeprefix('.')}: {error}") from None
    others = {name: item for name, item in value.items() if name not in ("gzip", "sizes")}
    return {**others, "writes": writes}


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


def writes_from_json(value: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The writes of a stream.

    Raises:
        ValueError: its bytes cannot be unpacked.
    """
    if "writes" in value:
        return tuple(text.encode() for text in value["writes"])
    if sum(count for _, count in value["sizes"]) > _MOST_WRITES:
        raise ValueError(f"sizes has more than {_MOST_WRITES:,} writes")
    sizes = [size for size, count in value["sizes"] for _ in range(count)]
    data = BytesIO(_unpacked(value["gzip"], sum(sizes)))
    return tuple(map(data.read, sizes))


def _unpacked(text: str, size: int) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(base64.b64decode(text, validate=True), size + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"gzip cannot be read: {error}") from None
    if len(data) != size:
        raise ValueError(f"gzip has another length than the sizes, which are {size} bytes")
    return data
