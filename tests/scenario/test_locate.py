"""Places are found in a document, and written as people write them."""

from __future__ import annotations

import pytest

from mockllm.scenario.locate import Steps, find, place, places, written
from mockllm.scenario.nodes import Mapping, documents

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
def test_find(root: Mapping, steps: Steps, line: int, column: int, path: str) -> None:
    """Steps lead to a line and column; what is missing is where it would have been."""
    spot = find(root, steps)
    assert (spot.line, spot.column, spot.path) == (line, column, path)


def test_every_node_has_its_place(root: Mapping) -> None:
    """The way to a node and the way back are the same."""
    paths = places(root)
    turns = root.entries["turns"]
    assert paths[id(turns)] == ("turns",)
    assert find(root, paths[id(turns)]) == place(paths, turns, turns.mark)
    assert len(paths) == len(set(paths.values()))


def test_written() -> None:
    """Keys that are not plain names are in quotes."""
    assert written(("a", 0, "b-c", "d e", 1)) == 'a[0].b-c["d e"][1]'
    assert written(("é",)) == '["é"]'
