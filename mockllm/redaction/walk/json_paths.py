"""Paths in JSON, such as `$.user`, `$.messages[*].name` or `$..email`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mockllm.errors import UsageError

_STEP = re.compile(
    r"(?:(?P<deep>\.\.)|\.|(?=\[))"
    r"(?:(?P<name>[A-Za-z_][\w-]*)|(?P<any>\*)|\[(?:(?P<index>\d+)|(?P<all>\*)"
    r"|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\")\])"
)


def compiled_paths(paths: Iterable[str], where: str = "") -> re.Pattern[str] | None:
    """A pattern that finds the values below any of some paths; None without paths.

    It searches the path to a value, written as its steps, each after U+001F.

    Args:
        where: the file and key, or the option, for messages; "" for none.

    Raises:
        UsageError: a path that cannot be read.
    """
    patterns = [_pattern(path, where) for path in paths]
    return re.compile("|".join(patterns)) if patterns else None


def _pattern(path: str, where: str) -> str:
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
    if at != len(path) or at == 1:
        begin = f"{where}: " if where else ""
        raise UsageError(
            f"{begin}{path!r} is no path that is known here; such are $.user, "
            "$.metadata['user id'], $.messages[*].name, $.input[0] and $..email"
        )
    return "".join(steps) + r"(?=\x1f|\Z)"
