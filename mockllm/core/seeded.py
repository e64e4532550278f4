"""Deterministic values that look random: the same for the same arguments.

All generated values (ids, timestamps, jitter, log probabilities, embeddings) come from here, so
that two servers send the same bytes for the same request. Standard library only.
"""

from __future__ import annotations

import hashlib
import re
import struct
from math import sqrt

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def derive(seed: str, *what: object, length: int = 24, hex: bool = False) -> str:
    """A string derived from `seed` and `what`.

    Args:
        length: in characters, at most 64.
        hex: lower-case hexadecimal digits instead of base 62.
    """
    digest = _digest(seed, what)
    if hex:
        return digest.hex()[:length]
    number = int.from_bytes(digest, "big")
    out = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        out.append(_BASE62[digit])
    return "".join(out)


def derive_uuid(seed: str, *what: object) -> str:
    """A UUID of version 4, as text."""
    digits = derive(seed, *what, length=32, hex=True)
    groups = (digits[:8], digits[8:12], f"4{digits[13:16]}", f"8{digits[17:20]}", digits[20:])
    return "-".join(groups)


def derive_int(seed: str, *what: object, below: int) -> int:
    """An integer in `range(below)`."""
    return int.from_bytes(_digest(seed, what)[:16], "big") % below


def derive_unit(seed: str, *what: object) -> float:
    """A number from -1 up to 1."""
    return int.from_bytes(_digest(seed, what)[:6], "big") / (1 << 47) - 1


def _digest(seed: str, what: tuple[object, ...]) -> bytes:
    # The separator keeps ("a", "bc") and ("ab", "c") apart.
    text = "\x1f".join([seed, *map(str, what)])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=64).digest()


# Embeddings


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
