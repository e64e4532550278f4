"""Options that are pairs of a key and a value: `requests=60 by=key`. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from mockllm.core.text import did_you_mean

_PAIR = re.compile(r"([^\s=()]+)=((?:[^\s()]|\([^()]*\))+)(?:\s+|\Z)")


def read_pairs(text: str, keys: Collection[str], example: str) -> dict[str, str]:
    """The values of `ttft=lognormal(300ms, p99=2s) itl=20ms` by their keys; in brackets there may
    be spaces.

    Args:
        keys: that there are; each may be given once.
        example: how such a text is written, for messages.

    Raises:
        ValueError: what is wrong with it, as a sentence.
    """
    pairs: dict[str, str] = {}
    rest = text.strip()
    while rest or not pairs:
        match = _PAIR.match(rest)
        if match is None:
            raise ValueError(f"must be KEY=VALUE, such as {example}, got {rest!r}")
        key, value = match.groups()
        if key not in keys:
            hint = did_you_mean(key.lower(), keys, f"there are: {', '.join(keys)}")
            raise ValueError(f"there is no {key!r}; {hint}")
        if key in pairs:
            raise ValueError(f"has {key!r} twice; keep one")
        pairs[key] = value
        rest = rest[match.end() :]
    return pairs
