"""docs/mcp.md: its examples load, and its tables have every key."""

import re

import pytest

from mockllm.play.replay.loading import loads
from mockllm.scenario.mcp_model import MCP_FAULTS
from mockllm.scenario.reading.definitions import PROPERTIES
from tests.docs.pages import text_of

TEXT = text_of("mcp")


def test_the_examples_load_together():
    """A reader can paste them into one folder."""
    sources = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len(loads("---\n".join(sources))) == 4


@pytest.mark.parametrize(
    ("title", "definition"),
    [
        ("key of `mcp: NAME`", "mcp_server"),
        ("key", "mcp_entry"),
        ("key of an answer", "mcp_answer"),
    ],
)
def test_a_table_has_every_key(title, definition):
    """No more and no less than the schema."""
    table = re.search(rf"^\| {title} \|.*\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    first = [row.split("|")[1] for row in table[1].splitlines()[1:]]
    assert {key for cell in first for key in re.findall(r"`(\w+)`", cell)} == {
        *PROPERTIES[definition]
    }


def test_the_faults_of_mcp_are_listed():
    """The page has those that other answers do not have."""
    for name in MCP_FAULTS:
        assert f"| `{name}` |" in TEXT
