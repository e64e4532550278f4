"""Decompression of HTTP content codings (RFC 9110, section 8.4.1), chunk by chunk.

`br` and `zstd` need packages of the extra `compression`. What a body may unpack to is bounded: a
few kilobytes can hold gigabytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from mockllm.core.errors import WireError
from mockllm.core.http import TimedBytes

MAX_PLAIN = 256 * 1024 * 1024
"""The most bytes that a body may unpack to."""

_FREE = 16 * 1024 * 1024
"""Up to this many plain bytes, every ratio is accepted."""

_MAX_RATIO = 250
"""How many plain bytes a compressed one may hold on average. Event streams of repeated words stay
below 150; zeros in gzip reach 1,030."""

_PACKAGES = {"br": "brotli", "zstd": "zstandard"}
"""By content coding (RFC 7932, RFC 8878), the package that reads it."""


def codings() -> tuple[str, ...]:
    """The names of the content codings that can be decompressed here."""
    return (*_CODINGS, *(coding for coding in _PACKAGES if _package(coding) is not None))


def decompress(
    chunks: tuple[TimedBytes, ...], encoding: str, source: str = ""
) -> tuple[TimedBytes, ...]:
    """The decompressed chunks; a chunk that completes no data is left out.

    A body that ends early gives what it has: some servers never write the end of a compressed
    event stream, and a stream may have been cut.

    Args:
        encoding: the value of `content-encoding`.
        source: where the chunks are from, for messages.

    Raises:
        WireError: an unknown coding, data that are not compressed with it, bytes after their end,
            or more data than the bounds allow.
    """
    coding, format_error = _coding(encoding, source)
    try:
        plain = tuple(_unpack_chunks(chunks, coding))
    except format_error as error:
        raise _body_error(encoding, source, str(error)) from None
    except _TooLargeError as error:
        raise WireError(
            f"{source}: the body unpacks from {error.packed} bytes of {encoding} to more than "
            f"{error.bound}. Send the request without `accept-encoding: {encoding}`."
        ) from None
    # Codings without a mark at their beginning (`br`, and bare deflate data) may read text as the
    # beginning of long data.
    packed = b"".join([chunk.data for chunk in chunks])
    if packed and not coding.is_complete() and packed.isascii():
        raise _body_error(encoding, source, "it is text")
    return plain


def _body_error(encoding: str, source: str, reason: str) -> WireError:
    return WireError(f"{source}: content-encoding is {encoding}, but the body is not: {reason}")


class _TooLargeError(Exception):
    def __init__(self, packed: int, bound: str) -> None:
        super().__init__(packed, bound)
        self.packed = packed
        self.bound = bound


def _unpack_chunks(chunks: tuple[TimedBytes, ...], coding: _Coding) -> Iterator[TimedBytes]:
    packed = size = 0
    for chunk in chunks:
        packed += len(chunk.data)
        pieces = []
        for at in range(0, len(chunk.data), coding.piece):
            plain = coding.unpack(chunk.data[at : at + coding.piece])
            pieces.append(plain)
            size += len(plain)
            if size > MAX_PLAIN:
                raise _TooLargeError(packed, f"{MAX_PLAIN} bytes, which is the most that is read")
            if size > max(_FREE, _MAX_RATIO * packed):
                bound = f"{_MAX_RATIO} times its size, which is the most that is read of a body "
                raise _TooLargeError(packed, f"{bound}above {_FREE} bytes")
        if any(pieces):
            yield TimedBytes(chunk.at, b"".join(pieces))


class _Coding(Protocol):
    """Unpacks consecutive data; raises its own format error.

    `piece` is how many bytes it gets at once. A call gives all the data that its input stands for,
    so that bounds the memory: a byte can stand for 1,032 bytes (deflate), for a block of 128 KiB
    (zstd) or for 16 MiB (br) at the most.
    """

    piece: int

    def unpack(self, data: bytes) -> bytes: ...

    def is_complete(self) -> bool:
        """Whether the data are whole."""
        ...


def _coding(encoding: str, source: str) -> tuple[_Coding, type[Exception]]:
    """The decompressor of a coding, and its exception for malformed data."""
    if encoding in _CODINGS:
        return _CODINGS[encoding](), zlib.error
    package = _package(encoding) if encoding in _PACKAGES else None
    if package is None:
        more = " (or install 'mockllm-harness[compression]')" if encoding in _PACKAGES else ""
        raise WireError(
            f"{source}: the body is compressed as {encoding!r}, which mockllm cannot read; it "
            f"reads {', '.join(codings())}. Send the request without "
            f"`accept-encoding: {encoding}`{more}."
        )
    if encoding == "br":
        return _Brotli(package), package.error
    return _Zstd(package), package.ZstdError


class _Gzip:
    """Members one after the other (RFC 1952, section 2.2)."""

    piece = 1024

    def __init__(self) -> None:
        self._inflate: Any = zlib.decompressobj(31)

    def unpack(self, data: bytes) -> bytes:
        plain = []
        while data:
            if self._inflate.eof:
                if data[0] != 0x1F:
                    raise zlib.error("bytes follow its end")
                self._inflate = zlib.decompressobj(31)
            plain.append(self._inflate.decompress(data))
            data = self._inflate.unused_data
        return b"".join(plain)

    def is_complete(self) -> bool:
        return bool(self._inflate.eof)


class _Deflate:
    """The zlib format, as RFC 9110 (section 8.4.1.2) defines `deflate`, or bare deflate data,
    as some servers send in its place."""

    piece = 1024

    def __init__(self) -> None:
        self._inflate: Any = None
        self._begin = b""

    def unpack(self, data: bytes) -> bytes:
        if self._inflate is None:
            # The first two bytes tell the two formats apart, and may come in two reads.
            self._begin += data
            if len(self._begin) < 2:
                return b""
            data = self._begin
            self._inflate = zlib.decompressobj(15 if _is_zlib(data) else -15)
        rest = data if self._inflate.eof else b""
        plain: bytes = b"" if rest else self._inflate.decompress(data)
        if rest or self._inflate.unused_data:
            raise zlib.error("bytes follow its end")
        return plain

    def is_complete(self) -> bool:
        return self._inflate is not None and bool(self._inflate.eof)


def _is_zlib(data: bytes) -> bool:
    """Whether data begin with the two bytes of the zlib format (RFC 1950, section 2.2)."""
    method, check = data[0], data[1]
    return method & 0x0F == 8 and method >> 4 <= 7 and (method << 8 | check) % 31 == 0


class _Brotli:
    """RFC 7932."""

    piece = 8

    def __init__(self, package: Any) -> None:
        self._inflate = package.Decompressor()
        self._error: type[Exception] = package.error

    def unpack(self, data: bytes) -> bytes:
        if self._inflate.is_finished():
            raise self._error("bytes follow its end")
        plain: bytes = self._inflate.process(data)
        return plain

    def is_complete(self) -> bool:
        return bool(self._inflate.is_finished())


class _Zstd:
    """Frames one after the other (RFC 8878, section 3). They begin with a mark that is not text."""

    piece = 16

    def __init__(self, package: Any) -> None:
        self._inflate = package.ZstdDecompressor().decompressobj(read_across_frames=True)

    def unpack(self, data: bytes) -> bytes:
        plain: bytes = self._inflate.decompress(data)
        return plain

    def is_complete(self) -> bool:
        return False


_CODINGS: dict[str, Callable[[], _Coding]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Deflate,
}


@cache
def _package(coding: str) -> Any:
    try:
        return import_module(_PACKAGES[coding])
    except ImportError:
        return None
