"""Where a value of a document is written: its line and column, and its path as messages show it.

A path is a tuple of keys and indices: `("turns", 0, "reply", 1, "text")`, shown as
`turns[0].reply[1].text`. Readers do not track paths: only what a problem is about is located.
"""

from __future__ import annotations

import json
import re

from mockllm.core.record import record
from mockllm.scenario.reading.nodes import Mapping, Mark, Node, Scalar, Sequence

KeyPath = tuple[str | int, ...]
"""Keys and indices from the root of a document to a value."""

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


@record
class SourceLocation:
    """Where a value is written: line and column from 1, and its path as `format_path` gives it."""

    line: int
    column: int
    path: str


def format_path(path: KeyPath) -> str:
    """A path as messages show it: `turns[0].reply[1].text`."""
    out: list[str] = []
    for step in path:
        if isinstance(step, int):
            out.append(f"[{step}]")
        elif _BARE.match(step):
            out.append(f".{step}" if out else step)
        else:
            out.append(f"[{json.dumps(step, ensure_ascii=False)}]")
    return "".join(out)


def locate_path(root: Node, path: KeyPath) -> SourceLocation:
    """The location of the value at a path.

    Index 0 of a value that is written without its list is that value itself. Where a key is
    absent, line and column are those of the last value that is there; the path is whole.
    """
    node: Node = root
    mark = root.mark
    reached: list[str | int] = []
    for depth, step in enumerate(path):
        if step == 0 and isinstance(node, Mapping) and "0" not in node.entries:
            continue
        child = _child(node, step)
        if child is None:
            reached.extend(path[depth:])
            break
        reached.append(step)
        node, mark = child, child.mark
    return SourceLocation(mark.line + 1, mark.column + 1, format_path(tuple(reached)))


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(node, Mapping) and isinstance(step, str):
        return node.entries.get(step)
    if isinstance(node, Sequence) and isinstance(step, int) and step < len(node.items):
        return node.items[step]
    return None


def node_paths(root: Node) -> dict[int, KeyPath]:
    """The path to every node of a document, by the node's `id`.

    A node that aliases repeat has the path at which it is written first.
    """
    paths: dict[int, KeyPath] = {id(root): ()}
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Scalar):
            continue
        children: list[tuple[str | int, Node]]
        children = (
            list(node.entries.items()) if isinstance(node, Mapping) else list(enumerate(node.items))
        )
        path = paths[id(node)]
        for step, child in children:
            if id(child) not in paths:
                paths[id(child)] = (*path, step)
                waiting.append(child)
    return paths


def locate_node(paths: dict[int, KeyPath], node: Node, mark: Mark) -> SourceLocation:
    """The location of a mark inside a node."""
    path = format_path(paths.get(id(node), ()))
    return SourceLocation(mark.line + 1, mark.column + 1, path)
