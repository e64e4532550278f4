"""Decompression of HTTP content codings (RFC 9110, section 8.4.1), chunk by chunk.

`br` and `zstd` need packages of the extra `compression`.
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
    """The names of the content codings that can be decompressed here."""
    return (*_WINDOWS, *(coding for coding in _PACKAGES if _package(coding) is not None))


def decompressed(
    chunks: tuple[TimedBytes, ...], encoding: str, source: str = ""
) -> tuple[TimedBytes, ...]:
    """The decompressed chunks; a chunk that completes no data is left out.

    Args:
        encoding: the value of `content-encoding`.
        source: where the chunks are from, for messages.

    Raises:
        WireError: an unknown coding, or data that are not compressed with it.
    """
    feed, format_error = _decompressor(encoding, source)
    plain = []
    try:
        for chunk in chunks:
            data = feed(chunk.data)
            if data:
                plain.append(TimedBytes(chunk.at, data))
    except format_error as error:
        raise WireError(
            f"{source}: content-encoding is {encoding}, but the body is not: {error}"
        ) from None
    return tuple(plain)


def _decompressor(encoding: str, source: str) -> tuple[_Feed, type[Exception]]:
    """The function that decompresses consecutive chunks, and its exception for malformed data."""
    if encoding in _WINDOWS:
        return zlib.decompressobj(_WINDOWS[encoding]).decompress, zlib.error
    package = _package(encoding) if encoding in _PACKAGES else None
    if package is None:
        more = " (or install 'mockllm-harness[compression]')" if encoding in _PACKAGES else ""
        raise WireError(
            f"{source}: the body is compressed as {encoding!r}, which mockllm cannot read; it "
            f"reads {', '.join(codings())}. Send the request without "
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
