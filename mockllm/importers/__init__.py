"""Reads exchanges from files of other tools, and writes them: VCR, HTTP archives, flows of
mitmproxy, dumped streams.

Each reader has `read(path)`, which returns the entries of a file in order: an exchange, or an
`Unread` with the reason why the entry is none. Fixtures of aimock hold no bytes, so `aimock` makes
scenarios of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mockllm.errors import UsageError
from mockllm.importers import flows, har, sse_dump, vcr
from mockllm.importers.file_formats import Kind, detect
from mockllm.importers.reading import Entry, Unread

__all__ = ["READERS", "Entry", "Unread", "read"]

READERS: dict[Kind, Callable[[Path], list[Entry]]] = {
    "vcr": vcr.read,
    "har": har.read,
    "flows": flows.read,
    "sse": sse_dump.read,
}
"""The reader of each kind of file with exchanges."""


def read(path: Path) -> list[Entry]:
    """The entries of a file of any kind in `READERS`.

    Raises:
        UsageError: it cannot be read, or is of no such kind.
    """
    kind = detect(path)
    reader = READERS.get(kind) if kind is not None else None
    if reader is None:
        raise UsageError(
            f"{path} is no VCR cassette, HTTP archive, flow file of mitmproxy or dumped event "
            "stream"
        )
    return reader(path)
