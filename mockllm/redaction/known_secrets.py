"""Finds known secrets, and pieces of them, in texts where nothing else tells that they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["LEAST", "Pieces"]

LEAST = 12
"""Characters of a secret that are too many to be there by accident."""

_STEP = LEAST // 2
_SHORT = 8


class Pieces:
    """Finds secrets of at least 12 characters by any 12 of them, shorter ones as whole words.

    Args:
        secrets: those that could be words are passed over.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._windows: dict[str, list[tuple[str, str, int]]] = {}
        short = []
        for secret in secrets:
            source = _source(secret)
            if len(source) >= LEAST:
                for at in range(len(source) - _STEP + 1):
                    window = source[at : at + _STEP]
                    self._windows.setdefault(window, []).append((secret, source, at))
            elif len(source) >= _SHORT and re.search(r"[0-9@ ]", source):
                short.append(source)
        words = "|".join(map(re.escape, sorted(short, key=len, reverse=True)))
        self._short = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if short else None

    @property
    def short(self) -> bool:
        """Whether some of them are of less than 12 characters."""
        return self._short is not None

    def find(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        """The secrets that the text has something of, and where."""
        if self._windows:
            yield from self._long(text)
        for found in self._short.finditer(text) if self._short else ():
            yield found[0], found.span()

    def _long(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        # Any 12 characters hold a window of 6 that begins at a multiple of 6.
        past = 0
        for at in range(0, len(text) - _STEP + 1, _STEP):
            near = self._windows.get(text[at : at + _STEP])
            if near is None or at < past:
                continue
            secret, (start, end) = max(
                ((secret, _extended(text, at, source, place)) for secret, source, place in near),
                key=lambda one: one[1][1] - one[1][0],
            )
            if end - start >= LEAST:
                yield secret, (start, end)
                past = end


def _source(secret: str) -> str:
    """What is looked for: of an e-mail address not the domain, which many have."""
    local, at, domain = secret.rpartition("@")
    return f"{local}@" if at and "@" not in local and "." in domain else secret


def _extended(text: str, at: int, source: str, place: int) -> tuple[int, int]:
    start, end = at, at + _STEP
    left, right = place, place + _STEP
    while start and left and text[start - 1] == source[left - 1]:
        start, left = start - 1, left - 1
    while end < len(text) and right < len(source) and text[end] == source[right]:
        end, right = end + 1, right + 1
    return start, end
