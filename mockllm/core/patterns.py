r"""Regular expressions that are not ours: of scenarios, of JSON Schemas, and of what is secret.

They have the syntax of Python's `re`, which the documentation promises. RE2 has no lookaround and
no backreferences, and its `\w` and `\b` know ASCII only, so it cannot stand in. Most searches are
proven short by the pattern and the length of the text, and are done by `re`. All others are done by
`regex`, in a text that means the same to it, which can stop after a time: soon at first, then for
longer, away from the event loop. A search that gave up is an error, never "no match".
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any

from mockllm.core.later import later
from mockllm.core.pattern_costs import Cost, cost_of
from mockllm.core.pattern_text import for_regex
from mockllm.core.text import display
from mockllm.errors import RequestError

__all__ = ["ForeignPattern", "PatternError", "PatternGaveUpError", "compiled"]

MOST_STEPS = 500_000
"""Of a search by `re`: some milliseconds."""

FIRST_LIMIT = 0.01
"""Of a search by `regex` on the event loop, in seconds."""

LIMIT = 2.0
"""Of a search by `regex` away from it, in seconds."""

MOST_WEIGHT = 20_000
"""Of a pattern's counted repeats: `regex` writes them out, and would need gigabytes."""

MOST_FOLDED = 3_000_000
"""Of a pattern: `re` looks at each character of a range that ignores case, for about a second."""


class PatternError(ValueError):
    """A text is no regular expression of Python, or none whose searches can be bounded."""


class PatternGaveUpError(RequestError):
    """A search took longer than `LIMIT`, so that its result is not known."""


class ForeignPattern:
    """A regular expression that a user or a client wrote.

    Raises:
        PatternError: see there.
    """

    __slots__ = ("_cost", "_guarded", "_plain", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._cost = cost_of(text)
            _check_size(self._cost, len(text))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._plain = re.compile(text)
        except (re.error, OverflowError, RecursionError) as problem:
            raise PatternError(f"must be a regular expression of Python; {problem}") from problem
        self._guarded: Any = None
        if self._cost.degree is None:
            self._guarded = self._compile_guarded()

    def is_short(self, size: int) -> bool:
        """Whether `re` searches a text of so many characters in a short time, proven."""
        return self._cost.steps(size) <= MOST_STEPS

    def found_in(self, text: str, long: Callable[[], None] | None = None) -> bool:
        """Whether it matches anywhere in a text.

        Args:
            long: called where the search is a long one, before it is done.

        Raises:
            PatternGaveUpError: the search took too long.
            NotDoneError: it is to be done in a thread; see `mockllm.core.later`.
        """
        if self.is_short(len(text)):
            return self._plain.search(text) is not None
        self.prepare()
        try:
            return self._guarded.search(text, timeout=FIRST_LIMIT) is not None
        except TimeoutError:
            pass
        if long is not None:
            long()
        key = ("pattern", self.text, sha256(text.encode("utf-8", "surrogatepass")).digest())
        found = _slow.get(key)
        if found is None:
            found = later(key, partial(self._search_long, key, text))
        if found == "gave up":
            raise self._gave_up(text)
        return found == "yes"

    def prepare(self) -> None:
        """Makes sure that long searches are possible.

        Raises:
            PatternError: they cannot be bounded.
        """
        if self._guarded is None:
            self._guarded = self._compile_guarded()

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where a text has it: the first group of each match, or all of the match if there is no
        group; not what is empty. It may take as long as `LIMIT`.

        Raises:
            PatternGaveUpError: the search took too long.
        """
        group = min(self._plain.groups, 1)
        if self.is_short(len(text)):
            matches = self._plain.finditer(text)
        else:
            self.prepare()
            matches = self._guarded.finditer(text, timeout=LIMIT, concurrent=True)
        try:
            spans = [match.span(group) for match in matches]
        except TimeoutError:
            raise self._gave_up(text) from None
        return [(start, end) for start, end in spans if start < end]

    def is_whole(self, text: str) -> bool:
        """Whether it matches a text from its beginning to its end. It may take as long as `LIMIT`.

        Raises:
            PatternGaveUpError: the search took too long.
        """
        if self.is_short(len(text)):
            return self._plain.fullmatch(text) is not None
        self.prepare()
        try:
            found = self._guarded.fullmatch(text, timeout=LIMIT, concurrent=True)
        except TimeoutError:
            raise self._gave_up(text) from None
        return found is not None

    def _gave_up(self, text: str) -> PatternGaveUpError:
        return PatternGaveUpError(
            f"mockllm gave up the regular expression {display(self.text)} after {LIMIT:g} s, "
            f"in a text of {len(text)} characters: it tries too many ways to match. Write it "
            "without a repeat in a repeat, such as (a+)+.",
            code="pattern_gave_up",
        )

    def _search_long(self, key: tuple[str, str, bytes], text: str) -> str:
        try:
            found = self._guarded.search(text, timeout=LIMIT, concurrent=True)
        except TimeoutError:
            outcome = "gave up"
        else:
            outcome = "no" if found is None else "yes"
        if len(_slow) >= _MOST_KEPT:
            _slow.clear()
        _slow[key] = outcome
        return outcome

    def _compile_guarded(self) -> Any:
        # Imported here: few patterns need it.
        import regex  # type: ignore[import-untyped]

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                text = for_regex(self.text)
                return regex.compile(text, regex.VERSION0, cache_pattern=False)
        except (re.error, regex.error, RecursionError, OverflowError) as problem:
            raise PatternError(
                "is a regular expression whose searches cannot be bounded; write it without a "
                f"repeat in a repeat (regex: {problem})"
            ) from problem


def _check_size(cost: Cost, length: int) -> None:
    if cost.weight > length + MOST_WEIGHT:
        raise PatternError(
            "is a regular expression whose searches cannot be bounded; make its counted repeats "
            "smaller"
        )
    if cost.folded > MOST_FOLDED:
        raise PatternError(
            "is a regular expression with ranges of too many characters for (?i); make the ranges "
            "smaller"
        )


@lru_cache(maxsize=1024)
def compiled(text: str) -> ForeignPattern:
    """The pattern with this text.

    Raises:
        PatternError: see there.
    """
    return ForeignPattern(text)


_slow: dict[tuple[str, str, bytes], str] = {}
"""The outcomes of long searches: "yes", "no" or "gave up". Clients repeat requests."""

_MOST_KEPT = 1024
