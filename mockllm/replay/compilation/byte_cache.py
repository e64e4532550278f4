"""Caches that are bounded in bytes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from cachetools import LRUCache

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


def byte_bounded(max_bytes: int, size: Callable[[_Value], int]) -> LRUCache[_Key, _Value]:
    """An empty cache; where it would be too large, the least recently used values go.

    A value that is larger than the bound is kept as the only one: `LRUCache` refuses such values,
    and the largest answers would be made again for each request.

    Args:
        max_bytes: at least 1.
        size: how many bytes a value takes, at least 1; always the same for one value.
    """
    return LRUCache(max_bytes, lambda value: min(size(value), max_bytes))
