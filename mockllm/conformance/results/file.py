"""Reads and writes results files: JSON, one case a line, so that two of them can be compared.

`results` describes what they hold, `results.schema.json` the form: each dataclass is an object with
its fields, and those that have their default are left out. A stream has `{"writes": ["TEXT", ...]}`
where each write is UTF-8 and the stream is short, else `{"gzip": "BASE64", "sizes": [[SIZE, COUNT],
...]}` with the sizes of the writes, run by run.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import lru_cache
from io import BytesIO
from itertools import groupby
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from mockllm.conformance.forms import form_problem
from mockllm.conformance.results import Results, Stream
from mockllm.core.errors import UsageError
from mockllm.record.recording.store.locks import put

FORMAT = 1
"""The version of the format: the value of `mockllm_results`."""


def read_results(path: str | os.PathLike[str]) -> Results:
    """The results in a file."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    return load_results(data, str(path))


def load_results(data: bytes | str, name: str) -> Results:
    """The results in the text of a file."""
    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is no results file: not JSON ({error}); {_AGAIN}") from None
    if not isinstance(value, dict) or "mockllm_results" not in value:
        raise UsageError(f"{name} is no results file: it has no field mockllm_results; {_AGAIN}")
    version = value["mockllm_results"]
    if version != FORMAT:
        raise UsageError(
            f"{name} has format {version!r} of results files and this mockllm reads {FORMAT}; "
            "install a newer one: pip install -U mockllm-harness"
        )
    try:
        if problem := form_problem(value, "results"):
            raise _DamagedError(problem)
        del value["mockllm_results"]
        results: Results = _build(Results, value, "")
    except _DamagedError as error:
        raise UsageError(f"{name} is damaged: {error}; {_AGAIN}") from None
    return results


_AGAIN = "write it again with `mockllm check`"


class _DamagedError(ValueError):
    """A value that has not the form of results; the message begins with its path."""


def write_results(results: Results, path: str | os.PathLike[str]) -> None:
    """Writes a results file as a whole or not at all, and the folders above it."""
    _write(Path(path), dump_results(results), put)


def write_report(file: Path, text: str) -> None:
    """Writes what is made of results, and the folders above it."""
    _write(file, text, Path.write_bytes)


def _write(file: Path, text: str, write: Callable[[Path, bytes], object]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Lone surrogates, which clients return and UTF-8 cannot encode, are escaped.
        write(file, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror or error}") from None


def dump_results(results: Results) -> str:
    """The text of a results file."""
    return "".join(_lines({"mockllm_results": FORMAT, **_object(results)}))


def _lines(value: dict[str, Any]) -> Iterator[str]:
    """One line for each field, each case, each quirk and each play."""
    yield "{\n"
    for number, (name, item) in enumerate(value.items()):
        comma = ",\n" if number else ""
        if name == "cases":
            lines = ",\n".join(map(_text, item))
            yield f'{comma}"{name}": [\n{lines}\n]'
        elif name in ("quirks", "plays"):
            lines = ",\n".join(f"{_text(key)}: {_text(inner)}" for key, inner in item.items())
            yield f'{comma}"{name}": {{\n{lines}\n}}'
        else:
            yield f"{comma}{_text(name)}: {_text(item)}"
    yield "\n}\n"


_SURROGATE = re.compile("[\ud800-\udfff]")


def _text(value: object) -> str:
    """JSON text that UTF-8 can encode: lone surrogates, which clients return, are escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


# To JSON


def _object(value: Any) -> dict[str, Any]:
    written = _writes_to_json(value.writes) if isinstance(value, Stream) else {}
    for field in fields(value):
        item = getattr(value, field.name)
        if item != _default(field) and field.name != "writes":
            written[field.name] = _value(item)
    return written


def _value(value: Any) -> Any:
    if is_dataclass(value):
        return _object(value)
    if isinstance(value, Mapping):
        return {key: _value(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_value(item) for item in value]
    return value


def _default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else MISSING


# From JSON


def _build(kind: Any, value: Any, path: str) -> Any:
    """The value of a type, from JSON of the right form.

    Args:
        path: of the value, for messages.
    """
    if kind is Any or value is None:
        return value
    if isinstance(kind, type) and is_dataclass(kind):
        value = _with_writes(value, path) if kind is Stream else value
        hints = _hints(kind)
        fields = {name: _build(hints[name], item, f"{path}.{name}") for name, item in value.items()}
        return kind(**fields)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        return _build(next(option for option in arguments if option is not NoneType), value, path)
    if origin is tuple and not isinstance(value, tuple):
        return tuple(_build(arguments[0], item, f"{path}[{n}]") for n, item in enumerate(value))
    if origin is Mapping:
        return {key: _build(arguments[1], item, f"{path}.{key}") for key, item in value.items()}
    return value


_hints = lru_cache(get_type_hints)


def _with_writes(value: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The fields of a stream, its bytes as writes."""
    try:
        writes = _writes_from_json(value)
    except ValueError as error:
        raise _DamagedError(f"{path.removeprefix('.')}: {error}") from None
    others = {name: item for name, item in value.items() if name not in ("gzip", "sizes")}
    return {**others, "writes": writes}


# Streams: text where people can read it, else compressed


_LONGEST_TEXT = 4096
"""Bytes of a stream that is kept as text."""

_MOST_WRITES = 10_000_000
"""A damaged count may not fill the memory."""


def _writes_to_json(writes: Sequence[bytes]) -> dict[str, Any]:
    if sum(map(len, writes)) <= _LONGEST_TEXT:
        try:
            return {"writes": [write.decode() for write in writes]}
        except UnicodeDecodeError:
            pass  # bytes that are no UTF-8, or a character that is cut
    packed = gzip.compress(b"".join(writes), mtime=0)
    sizes = [[size, len(list(same))] for size, same in groupby(map(len, writes))]
    return {"gzip": base64.b64encode(packed).decode(), "sizes": sizes}


def _writes_from_json(value: Mapping[str, Any]) -> tuple[bytes, ...]:
    if "writes" in value:
        return tuple(text.encode() for text in value["writes"])
    if sum(count for _, count in value["sizes"]) > _MOST_WRITES:
        raise ValueError(f"sizes has more than {_MOST_WRITES:,} writes")
    sizes = [size for size, count in value["sizes"] for _ in range(count)]
    data = BytesIO(_unpack(value["gzip"], sum(sizes)))
    return tuple(map(data.read, sizes))


def _unpack(text: str, size: int) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(base64.b64decode(text, validate=True), size + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"gzip cannot be read: {error}") from None
    if len(data) != size:
        raise ValueError(f"gzip has another length than the sizes, which are {size} bytes")
    return data
