"""Counts what is done, for whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Progress = Callable[[str, int, int], None]
"""Called with what is done (`files read`), how many of it are done, and of how many."""

_Item = TypeVar("_Item")


def no_progress(what: str, done: int, total: int) -> None:
    """Shows nothing."""


def counted(items: Sequence[_Item], what: str, progress: Progress) -> Iterator[_Item]:
    """The items; reports each as done when the next one is requested."""
    total = len(items)
    for done, item in enumerate(items):
        progress(what, done, total)
        yield item
    progress(what, total, total)
