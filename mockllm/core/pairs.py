"""Options with keys and values: `requests=60 by=key`. Pure.

The one grammar of all options, headers and marks that have keys: pairs `KEY=VALUE`, with spaces or
commas between them. A value goes to the next key, so it may have both; in brackets it may have keys
as well, and a bracket without its other half is a character like others. Where the keys are names
of the user's, as in `chat=/v1/my/chat`, an option has one pair, whose value is all the rest.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from mockllm.core.text import did_you_mean

# Of texts that clients send: each character is looked at twice at most.
_WORD = re.compile(r"(?:[^\s,()]|\([^()]*\)|[()])+")
_KEY = re.compile(r"([^\s,()=]+)=")


def read_pairs(text: str, keys: Collection[str], example: str) -> dict[str, str]:
    """The values of `ttft=lognormal(300ms, p99=2s) itl=20ms` by their keys.

    Args:
        keys: that there are; each may be given once.
        example: how such a text is written, for messages.

    Raises:
        ValueError: what is wrong with it, as a sentence.
    """
    pairs = split_pairs(text, example)
    for key in pairs:
        if key not in keys:
            hint = did_you_mean(key.lower(), keys)
            known = f"{hint}{' There' if hint else 'there'} are: {', '.join(keys)}"
            raise ValueError(f"there is no {key!r}; {known}")
    return pairs


def split_pairs(text: str, example: str) -> dict[str, str]:
    """The values of any keys; the arguments and errors are those of `read_pairs`."""
    starts: list[tuple[str, int, int]] = []  # a key, where it begins, and where its value does
    end = 0
    for word in _WORD.finditer(text):
        if text[end : word.start()].strip(" \t\r\n,"):
            break
        key = _KEY.match(text, word.start(), word.end())
        if key is not None:
            starts.append((key[1], key.start(), key.end()))
        elif not starts:
            break
        end = word.end()
    rest = text[end:].strip(" \t\r\n,")
    if rest or not starts:
        raise ValueError(f"must be KEY=VALUE, such as {example}, got {rest!r}")
    pairs: dict[str, str] = {}
    ends = (*(begin for _, begin, _ in starts[1:]), len(text))
    for (key_name, _, begin), stop in zip(starts, ends, strict=True):
        value = text[begin:stop].strip(" \t\r\n,")
        if key_name in pairs:
            raise ValueError(f"has {key_name!r} twice; keep one")
        if not value:
            raise ValueError(f"must be KEY=VALUE, such as {example}; {key_name!r} has no value")
        pairs[key_name] = value
    return pairs


def read_pair(text: str, example: str) -> tuple[str, str]:
    """The key and the value of `KEY=VALUE`, where the value is all that follows.

    Raises:
        ValueError: it has no such form.
    """
    key, _, value = (part.strip() for part in text.partition("="))
    if not value or not key or key.split() != [key]:
        raise ValueError(f"must be KEY=VALUE, such as {example}, got {text!r}")
    return key, value
