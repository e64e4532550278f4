"""`mockllm list`: a table of scenarios."""

import json

from mockllm.cli.listing import fit
from mockllm.play.replay.loading import load
from mockllm.wire.protocols import PROTOCOLS


def test_a_row_for_each_scenario(mockllm, folder):
    """The table has name, APIs, turns, tools and description."""
    (folder / "two.yaml").write_text(
        "scenario: two\napis: [chat]\ntools: [{name: a}, {name: b}, {name: c}]\n"
        "turns: [{reply: {text: x}}, {reply: {text: y}}]\n"
    )
    result = mockllm("list", folder)
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["NAME", "APIS", "TURNS", "TOOLS", "DESCRIPTION"],
        ["hello", "all", "1", "-", "Says", "hello."],
        ["two", "chat", "2", "a,b", "+1"],
    ]


def test_without_a_path_the_shipped_scenarios_are_listed(mockllm, shipped):
    """`mockllm list` without a path lists the shipped scenarios."""
    result = mockllm("list")
    rows = result.stdout.splitlines()[1:]
    assert [row.split()[0] for row in rows] == [scenario.name for scenario in load([shipped])]


def test_json(mockllm, folder):
    """`--json` prints a list of objects, one for each scenario."""
    assert json.loads(mockllm("list", "--json", folder).stdout) == [
        {
            "name": "hello",
            "description": "Says hello.",
            "route": None,
            "apis": list(PROTOCOLS),
            "turns": 1,
            "tools": [],
        }
    ]


def test_a_long_row_ends_in_an_ellipsis():
    """What a terminal has no room for is marked; wide characters take two columns."""
    assert fit("abcdef", 6) == "abcdef"
    assert fit("abcdefg", 6) == "abcde…"
    assert fit("abcd  efgh", 6) == "abcd…"
    assert fit("天気予報です", 7) == "天気予…"
    assert fit("天気予", 6) == "天気予"
