r"""Regular expressions that users wrote, or that stand in the JSON Schemas of clients.

They have Python's syntax and are searched by the package `regex`, which has a time limit. A search
that gave up is an error, never "no match".
"""

from __future__ import annotations

import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import warnings
from bisect import bisect_left
from functools import lru_cache
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.text import display

REQUEST_LIMIT = 0.5
"""Of a search that a request waits for, in seconds."""

LIMIT = 2.0
"""Of a search in a recording, in seconds."""

MOST_NODES = 20_000
"""Of a pattern with its counted repeats written out, beyond its own length. `regex` compiles each
round of a repeat: `((a{1000}){1000}){1000}` would need gigabytes."""

_REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
_CHARACTERS = (op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN)
_FUZZY = re.compile(r"(?<!\\)(?:\\\\)*(\{[\d<=+\s]*[deis][\d<=+,:\s}])")
"""What `regex` would read as a number of errors, as in `(?:foo){e<=1}`, and `re` reads as text."""


_FROM_BEGIN = re.compile(r"(?s:\\A\(\?:(.*)\)\\Z)")
"""As a recorder writes one for a whole text."""

_UNIT = re.compile(
    r"(?s:\(\?s:\.\+\?\)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[^\\\[\]()*+?|])(?:[*+?]|\{\d*,?\d*\})?[?+]?"
)
"""A part of an expression that matches by itself, with its repeat; other groups are none."""


class PatternError(ValueError):
    """A text is no regular expression of Python, or compiles to too much."""


class PatternGaveUpError(RequestError):
    """A search took longer than its limit, so that its result is not known."""


class TimedPattern:
    """A regular expression that a user or a client wrote.

    It is checked when it is made, and compiled when it is first searched for: compiling takes three
    times as long, and of the patterns of a folder few are searched for. `regex` reads whatever `re`
    reads, so nothing is wrong only then.

    Raises:
        PatternError: see there.
    """

    __slots__ = ("_regex", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._regex: Any = None
        try:
            with warnings.catch_warnings():
                # `re` warns where `regex` might read a class in another way, such as `[[:alpha:]]`.
                warnings.simplefilter("error", FutureWarning)
                _check_size(parser.parse(text), len(text))
        except (re.error, FutureWarning, OverflowError, RecursionError) as problem:
            raise PatternError(f"must be a regular expression of Python; {problem}") from problem
        if fuzzy := _FUZZY.search(text):
            raise PatternError(f"has {fuzzy[1]!r}; put a backslash before its bracket")

    @property
    def _compiled(self) -> Any:
        if self._regex is None:
            # Imported here: starting does not need it, and few scenarios have patterns.
            import regex  # type: ignore[import-untyped]

            self._regex = regex.compile(self.text, regex.VERSION0, cache_pattern=False)
        return self._regex

    def found_in(self, text: str, limit: float | None = None) -> bool:
        """Whether it matches anywhere in a text.

        Args:
            limit: of the search, in seconds; None: `REQUEST_LIMIT`.

        Raises:
            PatternGaveUpError: the search took too long.
        """
        return self._search(text, REQUEST_LIMIT if limit is None else limit) is not None

    def _search(self, text: str, limit: float) -> Any:
        try:
            return self._compiled.search(text, timeout=limit)
        except TimeoutError:
            raise self._gave_up(text, limit) from None

    def end_in(self, text: str) -> int | None:
        """Where its first match in a text ends; None where there is none.

        Raises:
            PatternGaveUpError: the search took longer than `REQUEST_LIMIT`.
        """
        match = self._search(text, REQUEST_LIMIT)
        return None if match is None else int(match.end())

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of its groups, `(?P<name>...)`."""
        return tuple(self._compiled.groupindex)

    def groups_in(self, text: str) -> dict[str, str]:
        """The texts of its named groups in the first match in a text; {} where it does not match.

        Raises:
            PatternGaveUpError: the search took longer than `REQUEST_LIMIT`.
        """
        match = self._search(text, REQUEST_LIMIT)
        groups = {} if match is None else match.groupdict()
        return {name: value for name, value in groups.items() if value is not None}

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where a text has it: the first group of each match, or all of the match if there is no
        group; not what is empty. It may take as long as `LIMIT`.

        Raises:
            PatternGaveUpError: the search took too long.
        """
        group = min(self._compiled.groups, 1)
        try:
            matches = self._compiled.finditer(text, timeout=LIMIT, concurrent=True)
            spans = [match.span(group) for match in matches]
        except TimeoutError:
            raise self._gave_up(text, LIMIT) from None
        return [(start, end) for start, end in spans if start < end]

    def replace_matches(self, text: str, by: str) -> str:
        """A text with each match replaced; what is empty stays.

        Raises:
            PatternGaveUpError: the search took longer than `REQUEST_LIMIT`.
        """
        try:
            replaced: str = self._compiled.sub(
                lambda match: by if match[0] else "", text, timeout=REQUEST_LIMIT
            )
        except TimeoutError:
            raise self._gave_up(text, REQUEST_LIMIT) from None
        return replaced

    def is_whole(self, text: str) -> bool:
        """Whether it matches a text from its beginning to its end. It may take as long as `LIMIT`.

        Raises:
            PatternGaveUpError: the search took too long.
        """
        try:
            return self._compiled.fullmatch(text, timeout=LIMIT, concurrent=True) is not None
        except TimeoutError:
            raise self._gave_up(text, LIMIT) from None

    def parting(self, text: str) -> tuple[str, int] | None:
        """Where a text does not go on as an expression does that begins with the text: the rest of
        the expression, and the place in the text. None for expressions that may begin anywhere.

        Raises:
            PatternGaveUpError: a search took longer than `REQUEST_LIMIT`.
        """
        whole = _FROM_BEGIN.fullmatch(self.text)
        if whole is None:
            return None
        inner = whole[1]
        ends = [0, *(found.end() for found in _UNIT.finditer(inner))]
        if "".join(found[0] for found in _UNIT.finditer(inner)) != inner:
            return None

        def end_of(count: int) -> int | None:
            return TimedPattern(rf"\A(?:{inner[: ends[count]]})").end_in(text)

        met = bisect_left(range(1, len(ends)), x=True, key=lambda count: end_of(count) is None)
        return inner[ends[met] :], end_of(met) or 0

    def _gave_up(self, text: str, limit: float) -> PatternGaveUpError:
        return PatternGaveUpError(
            f"mockllm gave up the regular expression {display(self.text)} after {limit:g} s, "
            f"in a text of {len(text)} characters: it tries too many ways to match. Write it "
            "without a repeat in a repeat, such as (a+)+.",
            code="pattern_gave_up",
        )


def _check_size(nodes: Any, length: int) -> None:
    if _written_out(nodes) > length + MOST_NODES:
        raise PatternError(
            "is a regular expression that would be too large; make its counted repeats smaller"
        )


def _written_out(part: Any) -> int:
    """The nodes of a part of a parsed pattern, each as often as its counted repeats demand it."""
    if not isinstance(part, (tuple, list, parser.SubPattern)):
        return 1
    if len(part) == 2 and any(part[0] is kind for kind in _REPEATS):
        least, most, body = part[1]
        if len(body) == 1 and body[0][0] in _CHARACTERS:
            return 1  # one node, however often
        return max(1, int(least if most is op.MAXREPEAT else most)) * _written_out(body)
    return 1 + sum(_written_out(inner) for inner in part)


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> TimedPattern:
    """The pattern with this text.

    Raises:
        PatternError: see there.
    """
    return TimedPattern(text)


# Paths into JSON values: `$.user`, `$.messages[*].name` or `$..email`
#
# The path to a value is written as its steps, each after U+001F, which is what the patterns search.

_STEP = re.compile(
    r"(?:(?P<deep>\.\.)|\.|(?=\[))"
    r"(?:(?P<name>[A-Za-z_][\w-]*)|(?P<any>\*)|\[(?:(?P<index>\d+)|(?P<all>\*)"
    r"|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\")\])"
)

EXAMPLES = "$.user, $.metadata['user id'], $.messages[*].name, $.input[0] and $..email"


def path_pattern(path: str) -> str | None:
    """A pattern that finds the values at a path and below it; None for no path that can be read."""
    at = 1
    steps = [r"\A"]
    while path[:1] == "$" and at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            break
        if step["deep"]:
            steps.append(r"(?:\x1f[^\x1f]*)*")
        name = step["name"] or step["index"] or step["single"] or step["double"]
        steps.append(r"\x1f[^\x1f]*" if name is None else r"\x1f" + re.escape(name))
        at = step.end()
    return None if at != len(path) or at == 1 else "".join(steps) + r"(?=\x1f|\Z)"
