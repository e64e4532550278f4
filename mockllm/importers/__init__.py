"""Files of other tools to exchanges, and back: VCR cassettes, HTTP archives, dumps of streams.

Each reader has `read(path)`, which gives the exchanges of a file in their order, and in place of
those that cannot be had the reason. Fixtures of aimock hold no bytes; they give scenarios.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mockllm.errors import UsageError
from mockllm.importers import har, sse_dump, vcr
from mockllm.importers.file_formats import Kind, detect
from mockllm.importers.reading import Found, Unread

__all__ = ["READERS", "Found", "Unread", "read"]

READERS: dict[Kind, Callable[[Path], list[Found]]] = {
    "vcr": vcr.read,
    "har": har.read,
    "sse": sse_dump.read,
}
"""By kind of file, what reads its exchanges."""


def read(path: Path) -> list[Found]:
    """The exchanges of a file of any kind that holds some.

    Raises:
        UsageError: it cannot be read, or is of no such kind.
    """
    kind = detect(path)
    reader = READERS.get(kind) if kind is not None else None
    if reader is None:
        raise UsageError(
            f"{path} is neither a VCR cassette nor an HTTP archive nor a dumped event stream"
        )
    return reader(path)
