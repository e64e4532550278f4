"""What messages about scenarios quote: values, and known names that resemble a mistyped one."""

from __future__ import annotations

import json
from collections.abc import Iterable

from mockllm.core.text import shorten
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


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most similar to a mistyped one; None where none is similar."""
    if len(name) > _QUOTED:
        return None
    close = similar(name.lower(), known)
    return close[0] if close else None


def similar(name: str, known: Iterable[str]) -> list[str]:
    """The known name that is most similar, if one is."""
    # Imported here: only mistakes need it, and starting a server does not.
    from difflib import get_close_matches

    return get_close_matches(name, known, 1)


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'split'?`, or "" where no known name is similar."""
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near else ""
