"""Detects the kind of a file from its content, names its reader, and lists the files of folders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from mockllm.core.text import quantity
from mockllm.record.importers import har, httprr, mcp, nock, sse_dump, vcr
from mockllm.record.importers.foreign_files import ForeignFile
from mockllm.record.importers.reading import Entry

Kind = Literal["vcr", "har", "nock", "httprr", "flows", "sse", "aimock", "mcp"]

READERS: dict[Kind, Callable[[ForeignFile], list[Entry]]] = {
    "vcr": vcr.read,
    "har": har.read,
    "nock": nock.read,
    "httprr": httprr.read,
    "sse": sse_dump.read,
}
"""The reader of each kind of file with exchanges."""

_FLOW_ENDINGS = (".flow", ".flows", ".mitm", ".mitmproxy")

_CASSETTE = re.compile(
    rb"^(?:(?:http_)?interactions|requests(?=[ \t]*:[\s\S]*^responses))[ \t]*:", re.MULTILINE
)
_ARCHIVE = re.compile(rb"^log:\s*^[ \t][\s\S]*?^[ \t]+entries:", re.MULTILINE)
_STREAM = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:HTTP/[\d.]+ \d{3}|(?:data|event|id|retry)?:)")
# Flows of mitmproxy are typed netstrings: each is a mapping whose first key is text, or bytes as in
# files of Python 2 (mitmproxy/io/tnetstring.py).
_FLOWS = re.compile(rb"\d{1,12}:\d{1,3}:[\w ]*[;,]")
_READ = ("", ".yaml", ".yml", ".json", ".har", ".httprr", *_FLOW_ENDINGS, *sse_dump.ENDINGS)


def detect(file: ForeignFile) -> Kind | None:
    """The kind of a file; None where it is none of `Kind`.

    Raises:
        UsageError: it cannot be read, or begins like JSON and is not JSON.
    """
    data = file.data
    if _STREAM.match(data) or sse_dump.LINES.match(data):
        return "sse"
    if data.startswith(httprr.FIRST):
        return "httprr"
    if _FLOWS.match(data):
        return "flows"
    if file.is_json:
        kind = _of_json(file.value)
        return kind or ("sse" if file.path.suffix in sse_dump.ENDINGS else None)
    if mcp.TRANSCRIPT.search(data):
        return "mcp"
    if _CASSETTE.search(data):
        return "vcr"
    return "har" if _ARCHIVE.search(data) else None


def _of_json(value: Any) -> Kind | None:
    match value:
        case {"log": {"entries": _}}:
            return "har"
        case {"interactions": [{"type": _, "response_status": _}, *_]}:
            return "mcp"
        case {"interactions": _} | {"http_interactions": _}:
            return "vcr"
        case {"request": {"method": _}, "response": {"status": _}}:
            return "vcr"
        case {"fixtures": list()} | {"agui": {"fixtures": _}} | {"llm": {"fixtures": _}}:
            return "aimock"
        case [{"scope": _, "method": _, "path": _}, *_]:
            return "nock"
    return None


def path_without_gz(path: Path) -> Path:
    """The path of a file without the ending of a compressed one."""
    return path.with_name(path.name.removesuffix(".gz") or path.name)


def may_be_read(path: Path) -> bool:
    """Whether a file in a folder is looked at: by its name it may be a recording."""
    return path_without_gz(path).suffix in _READ


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files among paths and below folders, without those that belong to a dump."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(
                file
                for file in path.rglob("*")
                if file.is_file() and not _hidden(file.relative_to(path))
            )
        else:
            found.append(path)
    dumps = [path for path in found if path.suffix in sse_dump.ENDINGS]
    belonging = {other for path in dumps for other in sse_dump.beside(path)}
    yield from (path for path in dict.fromkeys(found) if path not in belonging)


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def not_read(files: Iterable[Path]) -> str:
    """The line about files of other kinds: how many of each ending, and the first of them."""
    by_ending: dict[str, list[Path]] = {}
    for file in files:
        by_ending.setdefault(path_without_gz(file).suffix, []).append(file)
    kinds = [
        f"{len(several)} {f'*{suffix}' if suffix else 'without an ending'} ({several[0].name}"
        f"{', ...' if len(several) > 1 else ''})"
        for suffix, several in sorted(by_ending.items(), key=lambda kind: (-len(kind[1]), kind[0]))
    ]
    count = sum(map(len, by_ending.values()))
    one = count == 1
    return (
        f"{quantity(count, 'file')} of {'another kind was' if one else 'other kinds were'} not "
        f"read: {', '.join(kinds)}"
    )
