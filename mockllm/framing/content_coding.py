"""What bodies are compressed with, and how that is undone, chunk by chunk.

`br` and `zstd` take packages that are not always there (the extra `compression`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from mockllm.core.timed_bytes import TimedBytes
from mockllm.errors import WireError

__all__ = ["codings", "decompressed"]

_Feed = Callable[[bytes], bytes]
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_PACKAGES = {"br": "brotli", "zstd": "zstandard"}


def codings() -> tuple[str, ...]:
    """The codings that can be undone here, by their names in HTTP."""
    return (*_WINDOWS, *(coding for coding in _PACKAGES if _package(coding) is not None))


def decompressed(
    chunks: tuple[TimedBytes, ...], encoding: str, source: str = ""
) -> tuple[TimedBytes, ...]:
    """Chunks without their compression; those that bring nothing to light are left out.

    Args:
        source: where they are from, for messages.

    Raises:
        WireError: a coding that is not known here, or data that are not so compressed.
    """
    feed, broken = _decompressor(encoding, source)
    plain = []
    try:
        for piece in chunks:
            data = feed(piece.data)
            if data:
                plain.append(TimedBytes(piece.at, data))
    except broken as error:
        raise WireError(f"{source}: the body is not {encoding} as it says: {error}") from None
    return tuple(plain)


def _decompressor(encoding: str, source: str) -> tuple[_Feed, type[Exception]]:
    """What takes the chunks one after the other, and what it raises for what it cannot read."""
    if encoding in _WINDOWS:
        return zlib.decompressobj(_WINDOWS[encoding]).decompress, zlib.error
    package = _package(encoding) if encoding in _PACKAGES else None
    if package is None:
        more = " (or install 'mockllm-harness[compression]')" if encoding in _PACKAGES else ""
        raise WireError(
            f"{source}: the body is compressed as {encoding!r}, which is not known here; known "
            f"are {', '.join(codings())}. Ask the service without "
            f"`accept-encoding: {encoding}`{more}."
        )
    if encoding == "br":
        return package.Decompressor().process, package.error
    inflate = package.ZstdDecompressor().decompressobj(read_across_frames=True)
    return inflate.decompress, package.ZstdError


@cache
def _package(coding: str) -> Any:
    try:
        return import_module(_PACKAGES[coding])
    except ImportError:
        return None
