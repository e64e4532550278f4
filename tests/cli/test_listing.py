"""`mockllm list`: a table of scenarios."""

import json

from mockllm.cli.terminal.table import fit
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


def test_a_kind_is_listed(mockllm):
    """`list` has a word for what is listed; without one, scenarios are."""
    assert mockllm("list", "quirks").stdout.startswith("NAME")
    assert mockllm("list", "profiles", "gpt-4o").stdout.startswith("gpt-4o: ")
    assert "litellm" in mockllm("list", "presets").stdout
    assert "litellm" in json.loads(mockllm("list", "presets", "--json").stdout)
    result = mockllm("list", "presets", "x")
    assert (result.exit_code, "'x'" in result.stderr) == (2, True)
    assert "is for `mockllm list quirks`" in mockllm("list", "--api", "chat").stderr


def test_the_word_for_scenarios_is_a_folder_where_there_is_one(mockllm, folder, monkeypatch):
    """Without a folder of this name, those that come with mockllm are listed."""
    monkeypatch.chdir(folder.parent)
    assert "secret-numbers" in mockllm("list", "scenarios").stdout
    assert "hello" in mockllm("list", "scenarios", folder).stdout
    folder.rename("quirks")
    assert "hello" in mockllm("list", "./quirks").stdout
    assert "hello" in mockllm("list", "--scenarios", "quirks").stdout
    (folder.parent / "quirks").rename("scenarios")
    assert "secret-numbers" not in mockllm("list", "scenarios").stdout
