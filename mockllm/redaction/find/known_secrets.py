"""Finds secrets that are known from elsewhere, and parts of them, in texts that do not show what
they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MIN_MATCH = 12
"""So many characters of a secret are not in a text by accident."""

_WINDOW = MIN_MATCH // 2
_SHORTEST = 8


class KnownSecrets:
    """Finds secrets of at least 12 characters by any 12 of them, shorter ones as whole words.

    Args:
        secrets: in an order that does not change from run to run: what several of them have in
            common counts as a part of the first. Those that could be words are passed over.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._windows: dict[str, list[tuple[str, str, int]]] = {}
        self._pieces: list[str] = []
        short = []
        for secret in secrets:
            source = _searched(secret)
            if len(source) >= MIN_MATCH:
                ends = range(0, len(source) - _WINDOW + 1, _WINDOW)
                self._pieces += [source[at : at + _WINDOW] for at in ends]
                for at in range(len(source) - _WINDOW + 1):
                    window = source[at : at + _WINDOW]
                    self._windows.setdefault(window, []).append((secret, source, at))
            elif len(source) >= _SHORTEST and re.search(r"[0-9@ ]", source):
                short.append(source)
        words = "|".join(map(re.escape, sorted(short, key=len, reverse=True)))
        self._short = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if short else None

    @property
    def short(self) -> bool:
        """Whether some of them have less than 12 characters."""
        return self._short is not None

    def find(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        """The secrets that are in the text, whole or in part, and where."""
        if self._windows:
            yield from self._long(text)
        for found in self._short.finditer(text) if self._short else ():
            yield found[0], found.span()

    def _long(self, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
        # Any 12 characters hold a window of 6 that begins at a multiple of 6: of the secret, and of
        # the text.
        if len(self._pieces) * _WINDOW < len(text) and not any(
            map(text.__contains__, self._pieces)
        ):
            return
        past = 0
        for at in range(0, len(text) - _WINDOW + 1, _WINDOW):
            near = self._windows.get(text[at : at + _WINDOW])
            if near is None or at < past:
                continue
            secret, (start, end) = max(
                ((secret, _extended(text, at, source, offset)) for secret, source, offset in near),
                key=lambda one: one[1][1] - one[1][0],
            )
            if end - start >= MIN_MATCH:
                yield secret, (start, end)
                past = end


def _searched(secret: str) -> str:
    """What is looked for: of an e-mail address not the domain, which many share."""
    local, at, domain = secret.rpartition("@")
    return f"{local}@" if at and "@" not in local and "." in domain else secret


def _extended(text: str, at: int, source: str, offset: int) -> tuple[int, int]:
    """The longest part of `source` in the text around a window that is in both."""
    start, end = at, at + _WINDOW
    left, right = offset, offset + _WINDOW
    while start and left and text[start - 1] == source[left - 1]:
        start, left = start - 1, left - 1
    while end < len(text) and right < len(source) and text[end] == source[right]:
        end, right = end + 1, right + 1
    return start, end
