"""Cutting a value into fragments as `split` says. Cuts fall between code points."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from mockllm.scenario.model import RandomSplit, Split

__all__ = ["fragments"]

_WORD = re.compile(r"\s*\S+|\s+")
_DRAW = 8
"""Bytes of the hash that one draw takes."""


def fragments(text: str, split: Split, seed: str) -> tuple[str, ...]:
    """The fragments of `text`, which join to it.

    `words` leaves the white space before a word with it. Empty text has no fragments, except
    those written out.

    Args:
        seed: what a random split is drawn from; the same text and seed are cut alike, anywhere.
    """
    match split:
        case tuple():
            return split
        case "words":
            return tuple(_WORD.findall(text))
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
    key = hashlib.blake2b(seed.encode()).digest()
    block = 0
    while True:
        digest = hashlib.blake2b(block.to_bytes(8, "big"), key=key).digest()
        for at in range(0, len(digest), _DRAW):
            yield int.from_bytes(digest[at : at + _DRAW], "big")
        block += 1
