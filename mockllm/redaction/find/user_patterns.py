"""The regular expressions that a user gives."""

from __future__ import annotations

from collections.abc import Iterable

from mockllm.core.patterns import PatternError, PatternGaveUpError, TimedPattern, compiled
from mockllm.errors import UsageError, WireError


class UserPattern:
    """A regular expression for secrets. No search takes longer than some seconds."""

    __slots__ = ("_pattern",)

    def __init__(self, pattern: TimedPattern) -> None:
        self._pattern = pattern

    def finds(self, text: str) -> bool:
        """Whether it matches anywhere in a text.

        Raises:
            WireError: see `spans`.
        """
        try:
            return self._pattern.found_in(text)
        except PatternGaveUpError as error:
            raise _unknown(error) from None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where it finds something: the first group of each match, or the match if it has none.

        Raises:
            WireError: the search took too long, so that it is not known what is secret.
        """
        try:
            return self._pattern.spans(text)
        except PatternGaveUpError as error:
            raise _unknown(error) from None

    def is_whole(self, text: str) -> bool:
        """Whether it matches a text in full.

        Raises:
            WireError: see `spans`.
        """
        try:
            return self._pattern.is_whole(text)
        except PatternGaveUpError as error:
            raise _unknown(error) from None


def _unknown(error: PatternGaveUpError) -> WireError:
    return WireError(f"it is not known which secrets it has: {error}")


def compiled_patterns(patterns: Iterable[str], where: str = "") -> tuple[UserPattern, ...]:
    """The expressions, compiled.

    Args:
        where: the file and key, or the option, for messages; "" for none.

    Raises:
        UsageError: one is no expression, or finds nothing, or compiles to too much.
    """
    found = []
    begin = f"{where}: " if where else ""
    for text in patterns:
        try:
            pattern = compiled(text)
        except PatternError as error:
            raise UsageError(f"{begin}{text!r} {error}") from error
        if pattern.is_whole(""):
            raise UsageError(
                f"{begin}{text!r} matches the empty text too; a secret has a character"
            )
        found.append(UserPattern(pattern))
    return tuple(found)
