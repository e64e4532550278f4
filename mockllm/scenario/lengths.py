"""Lengths of answers in tokens, as options and scenarios write them. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from mockllm.core.distributions import Distribution, read_distribution

MAX_TOKENS = 100_000
"""The longest answer that is made: a longer one is a typing mistake, and would fill the memory."""


@lru_cache(maxsize=256)
def read_tokens(text: str) -> Distribution:
    """The distribution of a number of tokens: `200`, or `lognormal(200, p99=1500)`.

    Raises:
        ValueError: what is wrong with it, as a sentence.
    """
    return read_distribution(text, _number)


def _number(text: str) -> float:
    if re.fullmatch(r"\d{1,6}(?:\.\d{1,6})?", text, re.ASCII) and float(text) <= MAX_TOKENS:
        return float(text)
    raise ValueError(f"a number of tokens from 0 to {MAX_TOKENS}")
