"""Words for messages: values as they are quoted, and the names that a typo may have meant."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable

from mockllm.scenario.nodes import Mapping, Node, Sequence

__all__ = ["nearest", "shorten", "shown", "suggestion"]

_SHOWN = 60
"""Characters of a value that a message quotes."""


def shown(node: Node) -> str:
    """A node as messages quote it: as written, but not at any length."""
    if isinstance(node, Sequence):
        return "a list"
    if isinstance(node, Mapping):
        return "a mapping"
    if node.plain:
        return shorten(node.value) or "nothing"
    return _quoted(_cut(node.value, _SHOWN))


def shorten(text: str, length: int = _SHOWN) -> str:
    """A text as messages quote it: not at any length, in one line."""
    text = _cut(text, length)
    return text if text.isprintable() else _quoted(text)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + "…"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a mistyped one is likely to mean, if any is near."""
    if len(name) > _SHOWN:
        return None
    close = difflib.get_close_matches(name.lower(), known, 1)
    return close[0] if close else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'split'?`, or nothing where no known name is near."""
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near else ""
