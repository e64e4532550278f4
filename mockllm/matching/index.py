"""All scenarios that are served, indexed so that finding the right one does not take longer
the more there are.

The index looks for the needles of `match.user` by one rare piece of each: the pieces of a text
are looked up, at its words or at every letter, and only the needles whose piece is met are
searched.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from mockllm.core.seeded import derive
from mockllm.matching.conditions import text_holds
from mockllm.scenario.model import Match, Scenario

__all__ = ["SCENARIO_HEADER", "Catalogue", "mint_token"]

SCENARIO_HEADER = "x-mockllm-scenario"

_GRAM = 8
_SPACE = re.compile(r"\s").finditer
_END = re.Match.end
_CACHED_TEXTS = 2048
_CACHED_LENGTH = 4096


def mint_token(scenario: Scenario, position: int) -> str:
    """40 hexadecimal digits that tell a scenario and a position in its conversation."""
    check = derive(scenario.seeded, scenario.name, position, "token", length=18, hex=True)
    return f"{_digest(scenario)}{position:06x}{check}"


def _digest(scenario: Scenario) -> str:
    return derive(scenario.name, "scenario", length=16, hex=True)


class _Needles:
    """Finds which of many substrings a text contains.

    Each needle is filed under its rarest piece, of the kind that is cheapest to look up in a
    text: a whole word inside of it; else a piece that begins a word; else any piece.
    """

    def __init__(self, needles: Sequence[tuple[str, int]]) -> None:
        self._needles = needles
        kinds = (_inner_words, _word_grams, _grams)
        counts: Counter[str] = Counter()
        for needle, _ in needles:
            counts.update({piece for kind in kinds for piece in kind(needle)})
        tables: tuple[_Table, ...] = ({}, {}, {})
        for needle, index in needles:
            for kind, table in zip(kinds, tables, strict=True):
                pieces = kind(needle)
                if pieces:
                    piece = min(pieces, key=counts.__getitem__)
                    table.setdefault(piece, []).append((needle, index))
                    break
        self._words, self._at_words, self._anywhere = tables
        self._sizes = sorted({len(piece) for piece in self._anywhere})

    def search(self, text: str) -> list[int]:
        if len(text) * (1 + len(self._sizes)) > 2 * len(self._needles):
            return [index for needle, index in self._needles if needle in text]
        found: list[int] = []
        if self._words:
            _hold(self._words, set(text.split()), text, found)
        if self._at_words:
            _hold(self._at_words, set(_word_grams(text)), text, found)
        for size in self._sizes:
            pieces = {text[at : at + size] for at in range(len(text) - size + 1)}
            _hold(self._anywhere, pieces, text, found)
        return found


_Table = dict[str, list[tuple[str, int]]]


def _hold(table: _Table, pieces: set[str], text: str, found: list[int]) -> None:
    for piece in table.keys() & pieces:
        found += [index for needle, index in table[piece] if needle in text]


def _inner_words(needle: str) -> list[str]:
    """The words with white space on both sides: whole words of any text with this needle."""
    return needle.split()[1:-1]


def _word_grams(text: str) -> list[str]:
    """The pieces that begin right after white space and are whole."""
    last = len(text) - _GRAM
    return [text[at : at + _GRAM] for at in map(_END, _SPACE(text)) if at <= last]


def _grams(needle: str) -> list[str]:
    size = min(_GRAM, len(needle))
    return [needle[at : at + size] for at in range(len(needle) - size + 1)]


class Catalogue:
    """The scenarios that are served; never changed, a reload makes a new one.

    Args:
        scenarios: in the order in which ties are listed; names are unique.
    """

    def __init__(self, scenarios: Iterable[Scenario] = ()) -> None:
        self.scenarios: tuple[Scenario, ...] = tuple(scenarios)
        self.by_name: dict[str, Scenario] = {s.name: s for s in self.scenarios}
        self._by_digest = {_digest(s): s for s in self.scenarios}
        matches = [(s.match, i) for i, s in enumerate(self.scenarios) if s.match is not None]
        texts = [(m.user, i) for m, i in matches if m.user is not None and not m.anything]
        self._contains = _Needles([(c.value, i) for c, i in texts if c.op == "contains"])
        self._equals: dict[str, list[int]] = {}
        for condition, index in texts:
            if condition.op == "equals":
                self._equals.setdefault(condition.value, []).append(index)
        self._regexes = [(c, i) for c, i in texts if c.op == "regex"]
        self._models: dict[str, list[Scenario]] = {}
        self._others: list[Scenario] = []
        for match, index in matches:
            if match.user is None and not match.anything:
                self._add_userless(match, self.scenarios[index])
        self.fallbacks = tuple(self.scenarios[i] for m, i in matches if m.anything)
        self.headers: tuple[str, ...] = tuple(
            sorted({SCENARIO_HEADER, *(name for m, _ in matches for name, _ in m.headers)})
        )
        """The names of all headers that decide which scenario answers."""
        self._cache: dict[str, tuple[Scenario, ...]] = {}

    def _add_userless(self, match: Match, scenario: Scenario) -> None:
        model = match.model
        if model is not None and not any(char in model for char in "*?["):
            self._models.setdefault(model, []).append(scenario)
        else:
            self._others.append(scenario)

    def by_token(self, token: str) -> tuple[Scenario, int] | None:
        """The scenario and the position that a token of ours tells; None for any other."""
        scenario = self._by_digest.get(token[:16])
        if scenario is None or len(token) != 40:
            return None
        try:
            position = int(token[16:22], 16)
        except ValueError:
            return None
        return (scenario, position) if token == mint_token(scenario, position) else None

    def for_text(self, text: str) -> tuple[Scenario, ...]:
        """The scenarios whose `match.user` this text meets."""
        found = self._cache.get(text)
        if found is None:
            found = tuple(self.scenarios[i] for i in sorted(set(self._search(text))))
            if len(text) <= _CACHED_LENGTH:
                if len(self._cache) >= _CACHED_TEXTS:
                    self._cache.clear()
                self._cache[text] = found
        return found

    def _search(self, text: str) -> Iterator[int]:
        yield from self._contains.search(text)
        yield from self._equals.get(text, ())
        yield from (index for condition, index in self._regexes if text_holds(condition, text))

    def for_model(self, model: str) -> Iterator[Scenario]:
        """The scenarios without `match.user` that may answer for this model."""
        yield from self._models.get(model, ())
        yield from self._others
