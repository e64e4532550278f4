"""References inside a JSON Schema: to a place (`#/$defs/a`) or to an `$anchor`."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from mockllm.errors import MockLLMError


class UnsatisfiableError(MockLLMError):
    """No value was found for the schema."""


def resolve(reference: Any, root: Any) -> Any:
    """The schema that a reference leads to."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise UnsatisfiableError(f"the reference {reference!r} points outside of the schema")
    if reference != "#" and not reference.startswith("#/"):
        return _anchored(reference, root)
    node = root
    for step in unquote(reference[1:]).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        try:
            node = node[int(name)] if isinstance(node, list) else node[name]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise UnsatisfiableError(f"the reference {reference!r} leads nowhere") from error
    if not isinstance(node, (dict, bool)):
        raise UnsatisfiableError(f"the reference {reference!r} leads to no schema")
    return node


def _anchored(reference: str, root: Any) -> Any:
    """The schema with an `$anchor`."""
    rest = [root]
    while rest:
        node = rest.pop()
        if isinstance(node, dict):
            if node.get("$anchor") == reference[1:]:
                return node
            rest += node.values()
        elif isinstance(node, list):
            rest += node
    raise UnsatisfiableError(f"the reference {reference!r} leads nowhere")
