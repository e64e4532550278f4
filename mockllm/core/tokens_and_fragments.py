"""The tokens that a text counts as, and the fragments into which a stream cuts it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Literal

from mockllm.core.record import record


def tokens(text: str) -> int:
    """The number of tokens that a text counts as: one for four bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


@record
class RandomSplit:
    """Fragments of `low` to `high` characters, drawn from the seed."""

    low: int
    high: int


Split = Literal["whole", "chars", "words"] | int | RandomSplit | tuple[str, ...]
"""How a value is cut: by a rule, every n characters, at random, or into the fragments given."""

_PIECE = re.compile(r"\s*\S+|\s+")
_DRAW = 8
"""Bytes of the hash for one random number."""


def fragments(text: str, split: Split, seed: str) -> tuple[str, ...]:
    """The fragments of `text`; joined they are `text` again.

    `words` keeps white space with the word after it. Empty text has no fragments, unless they
    are written out. The same text and seed give the same fragments on any machine.
    """
    match split:
        case tuple():
            return split
        case "words":
            return tuple(_PIECE.findall(text))
        case "chars":
            return tuple(text)
        case RandomSplit():
            return tuple(_random(text, split, seed))
        case int():
            return tuple(text[at : at + split] for at in range(0, len(text), split))
        case _:
            return (text,) if text else ()


def _random(text: str, split: RandomSplit, seed: str) -> Iterator[str]:
    at = 0
    for number in _draws(f"{seed}\x1f{split.low}\x1f{split.high}"):
        if at >= len(text):
            return
        end = at + split.low + number % (split.high - split.low + 1)
        yield text[at:end]
        at = end


def _draws(seed: str) -> Iterator[int]:
    key = hashlib.blake2b(seed.encode("utf-8", "surrogatepass")).digest()
    block = 0
    while True:
        digest = hashlib.blake2b(block.to_bytes(8, "big"), key=key).digest()
        for at in range(0, len(digest), _DRAW):
            yield int.from_bytes(digest[at : at + _DRAW], "big")
        block += 1
