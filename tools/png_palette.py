"""PNG files with at most 256 colours: pictures of pages need no more, and are a third as large."""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from collections.abc import Iterator

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHANNELS = {2: 3, 6: 4}
"""Bytes of a pixel, by the type of its colours: with or without alpha, of 8 bits each."""

Colour = tuple[int, int, int]


def with_palette(png: bytes) -> bytes:
    """The picture with the 256 colours that are used most, each other one as the nearest of them.

    Args:
        png: with 8 bits a channel, not interlaced, as Chromium writes it.
    """
    chunks = dict(_chunks(png))
    width, height, _, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    channels = _CHANNELS[kind]
    rows = list(_rows(zlib.decompress(chunks[b"IDAT"]), width * channels, channels))
    colours = [list(zip(row[::channels], row[1::channels], row[2::channels])) for row in rows]  # noqa: B905 - equal
    counts = Counter(colour for row in colours for colour in row)
    palette = [colour for colour, _ in counts.most_common(256)]
    index = {colour: _nearest(colour, palette) for colour in counts}
    data = b"".join(b"\0" + bytes([index[colour] for colour in row]) for row in colours)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return (
        _SIGNATURE
        + _chunk(b"IHDR", head)
        + _chunk(b"PLTE", b"".join(map(bytes, palette)))
        + _chunk(b"IDAT", zlib.compress(data, 9))
        + _chunk(b"IEND", b"")
    )


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The chunks by name, those of the pixels joined."""
    at, pixels = len(_SIGNATURE), b""
    while at < len(png):
        size, name = struct.unpack(">I4s", png[at : at + 8])
        data = png[at + 8 : at + 8 + size]
        if name == b"IDAT":
            pixels += data
        else:
            yield name, data
        at += size + 12
    yield b"IDAT", pixels


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _rows(data: bytes, width: int, channels: int) -> Iterator[bytes]:
    """The rows without their filters (PNG specification, section 9)."""
    above = bytes(width)
    for start in range(0, len(data), width + 1):
        kind, row = data[start], bytearray(data[start + 1 : start + 1 + width])
        for at in range(width if kind else 0):
            left = row[at - channels] if at >= channels else 0
            corner = above[at - channels] if at >= channels else 0
            row[at] = (row[at] + _filtered(kind, left, above[at], corner)) & 255
        above = bytes(row)
        yield above


def _filtered(kind: int, left: int, above: int, corner: int) -> int:
    if kind == 1:
        return left
    if kind == 2:
        return above
    if kind == 3:
        return (left + above) // 2
    guess = left + above - corner
    return min((left, above, corner), key=lambda one: abs(guess - one))


def _nearest(colour: Colour, palette: list[Colour]) -> int:
    def distance(at: int) -> int:
        return sum((one - other) ** 2 for one, other in zip(colour, palette[at], strict=True))

    return min(range(len(palette)), key=distance)
