"""The JSON form of a stream in a results file: text where people can read it, else compressed.

`{"writes": ["TEXT", ...]}` where each write is UTF-8 and the stream is short, else
`{"gzip": "BASE64", "sizes": [[SIZE, COUNT], ...]}` with the sizes of the writes, run by run. Pure.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from collections.abc import Sequence
from itertools import groupby
from typing import Any

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


def writes_from_json(value: dict[str, Any]) -> tuple[bytes, ...]:
    """The writes of a stream."""
    if "writes" in value:
        texts = value["writes"]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError("writes must be a list of strings")
        return tuple(text.encode() for text in texts)
    sizes = _sizes(value.get("sizes"))
    return _split(_unpacked(value.get("gzip"), sizes), sizes)


def _sizes(value: object) -> list[int]:
    pairs = value if isinstance(value, list) else None
    if pairs is None or not all(map(_is_pair, pairs)):
        raise ValueError("it needs writes, or gzip with sizes, a list of [size, count]")
    if sum(count for _, count in pairs) > _MOST_WRITES:
        raise ValueError(f"sizes has more than {_MOST_WRITES:,} writes")
    return [size for size, count in pairs for _ in range(count)]


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(
            isinstance(number, int) and not isinstance(number, bool) and number >= 0
            for number in value
        )
    )


def _unpacked(text: object, sizes: list[int]) -> bytes:
    if not isinstance(text, str):
        raise ValueError("gzip must be a string in base64")  # noqa: TRY004 - as the docstring says
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(base64.b64decode(text, validate=True), sum(sizes) + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"gzip cannot be read: {error}") from None
    if len(data) != sum(sizes):
        raise ValueError(f"gzip has another length than the sizes, which are {sum(sizes)} bytes")
    return data


def _split(data: bytes, sizes: list[int]) -> tuple[bytes, ...]:
    found = []
    start = 0
    for size in sizes:
        found.append(data[start : start + size])
        start += size
    return tuple(found)
