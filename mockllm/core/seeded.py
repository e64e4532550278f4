"""Deterministic values that look random: the same for the same arguments.

All generated values (ids, timestamps, jitter, log probabilities) come from here, so that two
servers send the same bytes for the same request. Standard library only.
"""

from __future__ import annotations

import hashlib

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


def derive_int(seed: str, *what: object, below: int) -> int:
    """An integer in `range(below)`."""
    return int.from_bytes(_digest(seed, what)[:16], "big") % below


def derive_unit(seed: str, *what: object) -> float:
    """A number from -1 up to 1."""
    return int.from_bytes(_digest(seed, what)[:6], "big") / (1 << 47) - 1


def tokens(text: str) -> int:
    """The number of tokens that a text counts as: one for four bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def _digest(seed: str, what: tuple[object, ...]) -> bytes:
    # The separator keeps ("a", "bc") and ("ab", "c") apart.
    text = "\x1f".join([seed, *map(str, what)])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=64).digest()
