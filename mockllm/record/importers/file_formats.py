"""Detects the kind of a file from its content, names its reader, and lists the files of folders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from mockllm.core.errors import UsageError
from mockllm.record.importers import har, sse_dump, vcr
from mockllm.record.importers.foreign_files import contents, json_value
from mockllm.record.importers.reading import Entry

Kind = Literal["vcr", "har", "flows", "sse", "aimock"]

READERS: dict[Kind, Callable[[Path], list[Entry]]] = {
    "vcr": vcr.read,
    "har": har.read,
    "sse": sse_dump.read,
}
"""The reader of each kind of file with exchanges."""

_FLOW_ENDINGS = (".flow", ".flows", ".mitm", ".mitmproxy")

_CASSETTE = re.compile(rb"^(?:interactions|http_interactions)[ \t]*:", re.MULTILINE)
_STREAM = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:HTTP/[\d.]+ \d{3}|(?:data|event|id|retry)?:)")
_LINES = re.compile(rb"\s*\{[^\n]*\}\s*\n\{")
"""Two objects, each in its line: no JSON file has these."""

# Flows of mitmproxy are typed netstrings: each is a mapping whose first key is text, or bytes as in
# files of Python 2 (mitmproxy/io/tnetstring.py).
_FLOWS = re.compile(rb"\d{1,12}:\d{1,3}:[\w ]*[;,]")
_READ = (".yaml", ".yml", ".json", ".har", *_FLOW_ENDINGS, *sse_dump.ENDINGS)


def detect(path: Path) -> Kind | None:
    """The kind of a file; None where it is none of `Kind`.

    Raises:
        UsageError: it cannot be read, or begins like JSON and is not JSON.
    """
    data = contents(path)
    if _STREAM.match(data) or _LINES.match(data):
        return "sse"
    if _FLOWS.match(data):
        return "flows"
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        kind = _of_json(json_value(data, path))
        return kind or ("sse" if path.suffix in sse_dump.ENDINGS else None)
    if _CASSETTE.search(data):
        return "vcr"
    return None


def _of_json(value: Any) -> Kind | None:
    match value:
        case {"log": {"entries": _}}:
            return "har"
        case {"interactions": _} | {"http_interactions": _}:
            return "vcr"
        case {"fixtures": list()} | {"agui": {"fixtures": _}} | {"llm": {"fixtures": _}}:
            return "aimock"
    return None


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files among paths and below folders, without those that belong to a dump.

    Raises:
        UsageError: a path is not there.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(
                file
                for file in path.rglob("*")
                if file.suffix in _READ and file.is_file() and not _hidden(file.relative_to(path))
            )
        elif path.exists():
            found.append(path)
        else:
            raise UsageError(f"{path}: there is no such file or folder")
    dumps = [path for path in found if path.suffix in sse_dump.ENDINGS]
    belonging = {other for path in dumps for other in sse_dump.beside(path)}
    yield from (path for path in dict.fromkeys(found) if path not in belonging)


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
