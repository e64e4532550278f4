"""What messages about scenarios quote: values, and known names that resemble a mistyped one."""

from __future__ import annotations

import json
from collections.abc import Iterable

from mockllm.core.text import did_you_mean, shorten
from mockllm.scenario.reading.nodes import Mapping, Node, Sequence

_QUOTED = 60
"""How many characters of a value a message quotes."""


def display_node(node: Node) -> str:
    """A node as messages quote it: as written, shortened, in one line."""
    if isinstance(node, Sequence):
        return "a list"
    if isinstance(node, Mapping):
        return "a mapping"
    if node.plain:
        return excerpt(node.value) or "nothing"
    return _quoted(shorten(node.value, _QUOTED))


def excerpt(text: str, limit: int = _QUOTED) -> str:
    """A text as messages quote it: shortened, and as a JSON string where it is not printable."""
    text = shorten(text, limit)
    return text if text.isprintable() else _quoted(text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'split'?`, or "" where no known name is similar."""
    hint = did_you_mean(name.lower(), known)
    return f"; {hint}" if hint else ""
