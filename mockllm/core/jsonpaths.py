"""Paths into JSON values that users write, such as `$.user`, `$.messages[*].name` or `$..email`.

The path to a value is written as its steps, each after U+001F, which is what the patterns search.
"""

from __future__ import annotations

import re

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
