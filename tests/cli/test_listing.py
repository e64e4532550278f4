"""`mockllm list`: a table of scenarios."""

import json

from mockllm.replay.loading import load


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
            "apis": ["chat", "responses", "anthropic", "gemini", "agui"],
            "turns": 1,
            "tools": [],
        }
    ]
