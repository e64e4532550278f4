"""The regular expressions that a user gives."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mockllm.errors import UsageError

__all__ = ["compiled_patterns"]


def compiled_patterns(patterns: Iterable[str], where: str = "") -> tuple[re.Pattern[str], ...]:
    """The expressions, compiled.

    Args:
        where: the file and key, or the option, for messages; "" for none.

    Raises:
        UsageError: one is no expression, or finds nothing.
    """
    found = []
    begin = f"{where}: " if where else ""
    for pattern in patterns:
        try:
            found.append(re.compile(pattern))
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(
                f"{begin}{pattern!r} is no regular expression of Python: {error}"
            ) from error
        if found[-1].fullmatch("") is not None:
            raise UsageError(
                f"{begin}{pattern!r} matches the empty text too; a secret has a character"
            )
    return tuple(found)
