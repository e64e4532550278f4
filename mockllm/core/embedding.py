"""Vectors that stand for texts: the same for the same text, near each other for texts that share
words. Standard library only.
"""

from __future__ import annotations

import hashlib
import re
import struct
from math import sqrt

_WORD = re.compile(r"\w+")
_PLACES = 16
"""How many dimensions each word changes."""

_NOISE = 0.2
"""The length of the part that only this very text has; that of the words is 1."""

_DIGITS = 7
"""Decimal digits of a number, as many as a 32-bit float has."""


def unit_vector(text: str, dimensions: int) -> tuple[float, ...]:
    """A vector of length 1 that is derived from a text.

    Each word adds to a few dimensions that are derived from it, and the text as a whole to all of
    them. So vectors of texts with common words have a larger scalar product than others, and those
    of different texts differ.

    Args:
        dimensions: at least 1.
    """
    words = _words(text, dimensions)
    own = _own(text, dimensions)
    length = sqrt(sum(value * value for value in words))
    if length:
        words = [value / length + _NOISE * other for value, other in zip(words, own, strict=True)]
    else:
        words = own
    length = sqrt(sum(value * value for value in words))
    return tuple([round(value / length, _DIGITS) for value in words])


def _words(text: str, dimensions: int) -> list[float]:
    """The sum of what the words of a text add."""
    vector = [0.0] * dimensions
    for word in _WORD.findall(text.casefold()):
        digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=64).digest()
        for number in struct.unpack(f"<{_PLACES}I", digest):
            vector[(number >> 1) % dimensions] += 1 if number & 1 else -1
    return vector


def _own(text: str, dimensions: int) -> list[float]:
    """A vector of length 1 that only this text has."""
    data = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(2 * dimensions)
    vector = [number + 0.5 for number in struct.unpack(f"<{dimensions}h", data)]
    length = sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]
