"""The page on the scenario language: every complete example on it loads."""

import re
from pathlib import Path

import pytest

from mockllm.errors import ScenarioError
from mockllm.replay.loading import loads
from mockllm.tapes.load import load_tape

PAGE = Path(__file__).parents[1] / "docs" / "scenarios.md"
TEXT = PAGE.read_text(encoding="utf-8")
FENCES = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(info):
    """The blocks of one kind, with the line of the page on which each begins."""
    return [
        pytest.param(found[2], id=f"line {TEXT.count(chr(10), 0, found.start()) + 1}")
        for found in FENCES.finditer(TEXT)
        if found[1] == info
    ]


@pytest.mark.parametrize("source", blocks("yaml"))
def test_every_example_loads(source):
    """A reader can paste any complete example into a file and serve it."""
    assert loads(source)


def test_there_are_examples():
    """The fences are found: many complete examples, and no kind of block that goes unchecked."""
    assert len(blocks("yaml")) >= 15
    assert {found[1] for found in FENCES.finditer(TEXT)} <= {
        "yaml",
        "yaml fragment",
        "text",
        "jsonl",
    }


def test_examples_load_together():
    """No two examples are at odds, so all of them may stand in one file."""
    sources = [block.values[0] for block in blocks("yaml")]
    scenarios = loads("---\n".join(sources))
    assert len(scenarios) == sum(source.count("scenario: ") for source in sources)


def test_the_sample_errors_are_real():
    """The page shows the very words that the loader says about the broken example."""
    broken = next(b.values[0] for b in blocks("yaml fragment") if "splt" in b.values[0])
    (shown,) = (block.values[0] for block in blocks("text"))
    with pytest.raises(ScenarioError) as caught:
        loads(broken, "greet.yaml")
    assert shown.rstrip("\n") == str(caught.value)


def test_the_sample_tape_is_one():
    """The page shows a tape that can be played."""
    (shown,) = (block.values[0] for block in blocks("jsonl"))
    assert [piece.at for piece in load_tape(shown.encode(), "greeting.1.jsonl").pieces] == [
        412003,
        431877,
    ]
