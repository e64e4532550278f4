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
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import lru_cache
from io import BytesIO
from itertools import groupby
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from mockllm.conformance.forms import form_problem
from mockllm.conformance.results import Results, Stream
from mockllm.errors import UsageError

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
        return results_from_json(value)
    except DamagedError as error:
        raise UsageError(f"{name} is damaged: {error}; {_AGAIN}") from None


_AGAIN = "write it again with `mockllm check`"


def write_results(results: Results, path: str | os.PathLike[str]) -> None:
    """Writes a results file as a whole or not at all, and the folders above it."""
    file = Path(path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _replace(file, dump_results(results).encode())
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror or error}") from None


def _replace(file: Path, data: bytes) -> None:
    handle, other = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        mask = os.umask(0)
        os.umask(mask)
        Path(other).chmod(0o666 & ~mask)
        Path(other).replace(file)
    except BaseException:
        Path(other).unlink(missing_ok=True)
        raise


def dump_results(results: Results) -> str:
    """The text of a results file."""
    return "".join(_lines({"mockllm_results": FORMAT, **results_to_json(results)}))


def _lines(value: dict[str, Any]) -> Iterator[str]:
    """One line for each field, each case, each quirk and each play."""
    yield "{\n"
    for number, (name, item) in enumerate(value.items()):
        comma = ",\n" if number else ""
        if name == "cases":
            yield f'{comma}"{name}": [\n{_joined(map(_text, item))}\n]'
        elif name in ("quirks", "plays"):
            texts = (f"{_text(key)}: {_text(one)}" for key, one in item.items())
            yield f'{comma}"{name}": {{\n{_joined(texts)}\n}}'
        else:
            yield f"{comma}{_text(name)}: {_text(item)}"
    yield "\n}\n"


def _joined(texts: Iterator[str]) -> str:
    return ",\n".join(texts)


_SURROGATE = re.compile("[\ud800-\udfff]")


def _text(value: object) -> str:
    """JSON text that UTF-8 can encode: lone surrogates, which clients return, are escaped."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


# The values of a file


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
        return _built(next(option for option in arguments if option is not NoneType), value, path)
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
