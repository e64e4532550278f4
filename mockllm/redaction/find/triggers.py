"""Which patterns a text needs: most texts need none, and this is where that is found out.

A key of a service has a long run of letters, digits, `_` and `-`, which prose does not have. Where
there is such a run, the words of the text decide: `ghp` in `ghp_1a2b...` is one. The cost does not
depend on the number of patterns.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence

LONGEST_PROSE = 15
"""A longer run of letters, digits, `_` and `-` may be a key."""

_RUN = b"x" * (LONGEST_PROSE + 1)
_ALNUM = (string.ascii_letters + string.digits).encode()
_SHAPE = bytes(ord("x") if one in _ALNUM or one in b"_-" else ord(" ") for one in range(256))
_WORDS = bytes(ord(chr(one).lower()) if one in _ALNUM else ord(" ") for one in range(256))
_BEGINNING = 4
_LONG = 4096
"""Characters from which on it is faster to look at the words than to search for each text."""
_WORD = re.compile(r"([A-Za-z0-9]+)[-_.~]")


def has_long_run(text: str) -> bool:
    """Whether a text has a run of 16 letters, digits, `_` and `-`."""
    if len(text) <= LONGEST_PROSE:
        return False
    return _RUN in text.encode("ascii", "replace").translate(_SHAPE)


class Triggers:
    """Finds the patterns whose triggers are in a text.

    Args:
        keys: for each pattern of a key with a long run its triggers. One that begins with a word
            and a separator (`ghp_`) means that word, in any case; any other one means that text.
        others: the same for all other patterns; their triggers are texts.
    """

    def __init__(
        self, keys: Iterable[tuple[int, Sequence[str]]], others: Iterable[tuple[int, Sequence[str]]]
    ) -> None:
        self._words: dict[bytes, set[int]] = {}
        self._parts: dict[str, set[int]] = {}
        self._texts: dict[str, set[int]] = {}
        for index, triggers in keys:
            for trigger in triggers:
                word = _WORD.match(trigger)
                if word is None:
                    self._parts.setdefault(trigger, set()).add(index)
                else:
                    self._words.setdefault(word[1].lower().encode(), set()).add(index)
        for index, triggers in others:
            for trigger in triggers:
                self._texts.setdefault(trigger, set()).add(index)
        self._every_word = frozenset(self._words)
        self._beginnings: dict[bytes, list[str]] = {}
        for part in self._parts:
            if part[:_BEGINNING].isalnum() and len(part) >= _BEGINNING:
                beginning = part[:_BEGINNING].lower().encode()
                self._beginnings.setdefault(beginning, []).append(part)
        self._every_beginning = frozenset(self._beginnings)
        self._others = [
            part
            for part in self._parts
            if not any(part in one for one in self._beginnings.values())
        ]

    def find(self, text: str) -> list[int]:
        """The numbers of the patterns that may be in a text, in their order."""
        found: set[int] = set()
        for trigger, indexes in self._texts.items():
            if trigger in text:
                found |= indexes
        if has_long_run(text):
            self._keys(text, found)
        return sorted(found)

    def _keys(self, text: str, found: set[int]) -> None:
        words = text.encode("ascii", "replace").translate(_WORDS).split()
        for word in self._every_word.intersection(words):
            found |= self._words[word]
        for part in self._parts if len(text) < _LONG else self._near(words):
            if part in text:
                found |= self._parts[part]

    def _near(self, words: Iterable[bytes]) -> Iterable[str]:
        """The texts that may be in a long text: each of the others begins no word of it."""
        near = self._every_beginning.intersection({word[:_BEGINNING] for word in words})
        return [*self._others, *(part for one in near for part in self._beginnings[one])]
