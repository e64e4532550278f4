"""Reads and writes results files: JSON, one case a line, so that two of them can be compared.

`results` describes what they hold, `results.schema.json` the form.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mockllm.conformance.results import Results
from mockllm.conformance.results.values_json import DamagedError, results_from_json, results_to_json
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
