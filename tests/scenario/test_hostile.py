"""Hostile files are refused before their values are built (`test_bounds` tests time and memory)."""

from __future__ import annotations

import pytest

from mockllm.core.errors import ScenarioError
from mockllm.play.replay.loading import loads
from mockllm.scenario.reading.nodes import documents
from tests.scenario.test_bounds import HOSTILE, LAUGHS, PARSERS

TOO_MANY = "aliases repeat more than 250,000 values in one document"
FAST = ["laughs", "mappings", "ladder", "lists", "dashes", "indents"]


def problems(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        loads(text)
    return [problem.message for problem in caught.value.problems]


@pytest.mark.parametrize("name", FAST)
def test_a_hostile_file_is_refused(name: str) -> None:
    """Aliases that grow without bound ("billion laughs") and nesting without bound are one problem
    each."""
    text, message = HOSTILE[name]
    assert problems(text) == [message]


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.__name__)
@pytest.mark.parametrize("name", ["laughs", "ladder"])
def test_either_parser_refuses_an_alias_bomb(name: str, parser: type) -> None:
    """The bounds hold with PyYAML's parser in C and with the one in Python."""
    text, message = HOSTILE[name]
    with pytest.raises(ScenarioError) as caught:
        list(documents(text, "x", parser))
    assert [problem.message for problem in caught.value.problems] == [message]


@pytest.mark.parametrize(("levels", "refused"), [(1, False), (4, False), (6, True), (9, True)])
def test_a_value_counts_again_for_each_alias(levels: int, refused: bool) -> None:
    """Each level of the bomb repeats the one before nine times: four levels have 6,561 values,
    which is nonsense in a scenario but within the bound, and six have 531,441."""
    lines = LAUGHS.splitlines(keepends=True)
    text = f"scenario: a\nturns:\n  - &a [lol]\n{''.join(lines[:levels])}"
    assert (TOO_MANY in problems(text)) == refused
