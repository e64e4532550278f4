"""Values are located in a document, and their paths formatted as people write them."""

from __future__ import annotations

import pytest

from mockllm.scenario.reading.nodes import (
    KeyPath,
    Mapping,
    documents,
    format_path,
    locate_node,
    locate_path,
    node_paths,
)

TEXT = """\
scenario: a
turns:
  - reply:
      - text: one
      - text: two
    request: {results: {call.1: x}}
  - reply: {text: three}
    when: {api: chat, finish: stop}
"""


@pytest.fixture
def root() -> Mapping:
    """The tree of the text above."""
    (document,) = documents(TEXT, "x")
    assert isinstance(document.root, Mapping)
    return document.root


@pytest.mark.parametrize(
    ("steps", "line", "column", "path"),
    [
        ((), 1, 1, ""),
        (("scenario",), 1, 11, "scenario"),
        (("turns", 0, "reply", 1, "text"), 5, 15, "turns[0].reply[1].text"),
        (("turns", 0, "request", "results", "call.1"), 6, 33, 'turns[0].request.results["call.1"]'),
        (("turns", 1, "reply", 0, "text"), 7, 19, "turns[1].reply.text"),
        (("turns", 1, "when", 0, "finish"), 8, 31, "turns[1].when.finish"),
        (("turns", 0, "finish"), 3, 5, "turns[0].finish"),
        (("turns", 9, "reply"), 3, 3, "turns[9].reply"),
    ],
)
def test_locate_path(root: Mapping, steps: KeyPath, line: int, column: int, path: str) -> None:
    """A path gives a line and column; an absent value has those of its parent."""
    location = locate_path(root, steps)
    assert (location.line, location.column, location.path) == (line, column, path)


def test_every_node_has_its_path(root: Mapping) -> None:
    """The location of a node is the location of its path."""
    paths = node_paths(root)
    turns = root.entries["turns"]
    assert paths[id(turns)] == ("turns",)
    assert locate_path(root, paths[id(turns)]) == locate_node(paths, turns, turns.mark)
    assert len(paths) == len(set(paths.values()))


def test_format_path() -> None:
    """Keys that are not plain names are in quotes."""
    assert format_path(("a", 0, "b-c", "d e", 1)) == 'a[0].b-c["d e"][1]'
    assert format_path(("é",)) == '["é"]'
