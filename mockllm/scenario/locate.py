"""From a place in a document to its line and column, and to the way people write it.

A place is a sequence of steps, keys and indices: `("turns", 0, "reply", 1, "text")`, written
`turns[0].reply[1].text`. Only what has gone wrong is located, so reading pays nothing for it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from mockllm.scenario.nodes import Mapping, Mark, Node, Scalar, Sequence

__all__ = ["Place", "Steps", "find", "places", "written"]

Steps = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is written; `line` and `column` count from 1."""

    line: int
    column: int
    path: str


def written(steps: Steps) -> str:
    """A place as messages show it: `turns[0].reply[1].text`."""
    out: list[str] = []
    for step in steps:
        if isinstance(step, int):
            out.append(f"[{step}]")
        elif _BARE.match(step):
            out.append(f".{step}" if out else step)
        else:
            out.append(f"[{json.dumps(step, ensure_ascii=False)}]")
    return "".join(out)


def find(root: Node, steps: Steps) -> Place:
    """Where `steps` lead.

    Index 0 of what the author wrote without a list is that value itself. A step to a key that
    is not there ends the walk, and the place is that of the value reached; its path still
    tells all steps.
    """
    node: Node = root
    mark = root.mark
    path: list[str | int] = []
    for at, step in enumerate(steps):
        if step == 0 and isinstance(node, Mapping) and "0" not in node.entries:
            continue
        inner = _inner(node, step)
        if inner is None:
            path.extend(steps[at:])
            break
        path.append(step)
        node, mark = inner, inner.mark
    return Place(mark.line + 1, mark.column + 1, written(tuple(path)))


def _inner(node: Node, step: str | int) -> Node | None:
    if isinstance(node, Mapping) and isinstance(step, str):
        return node.entries.get(step)
    if isinstance(node, Sequence) and isinstance(step, int) and step < len(node.items):
        return node.items[step]
    return None


def places(root: Node) -> dict[int, Steps]:
    """The steps to every node of a document, by the node's identity.

    What aliases repeat has the place where it was written first.
    """
    found: dict[int, Steps] = {id(root): ()}
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Scalar):
            continue
        inner: list[tuple[str | int, Node]]
        inner = (
            list(node.entries.items()) if isinstance(node, Mapping) else list(enumerate(node.items))
        )
        here = found[id(node)]
        for step, child in inner:
            if id(child) not in found:
                found[id(child)] = (*here, step)
                waiting.append(child)
    return found


def place(found: dict[int, Steps], node: Node, mark: Mark) -> Place:
    """The place of `mark`, which belongs to `node`."""
    return Place(mark.line + 1, mark.column + 1, written(found.get(id(node), ())))
