"""The command line has few options; what few need is a key of `mockllm.toml`."""

import re
from pathlib import Path

import click

from mockllm.cli import main
from mockllm.cli.options.config import FileKey
from mockllm.cli.options.headings import long_name

PAGE = Path(__file__).parents[2] / "docs" / "options.md"
MOST, MOST_OF_SERVE = 102, 35
"""How many distinct options there may be, and how many `serve` may have."""


def _commands():
    context = click.Context(main)
    return {name: main.get_command(context, name) for name in main.list_commands(context)}


def _options(command):
    options = (p for p in command.params if isinstance(p, click.Option))
    return {long_name(option) for option in options if not isinstance(option, FileKey)}


def test_there_are_few_options():
    """A new option takes the place of another one, or is a key of the file."""
    of_commands = {name: _options(command) for name, command in _commands().items()}
    assert len(of_commands["serve"]) <= MOST_OF_SERVE
    assert len(set().union(_options(main), *of_commands.values())) <= MOST


def test_every_key_of_the_file_is_on_the_page():
    """docs/options.md lists the keys that have no option, each with its commands."""
    keys = {
        (long_name(option), name)
        for name, command in _commands().items()
        for option in command.params
        if isinstance(option, FileKey)
    }
    table = PAGE.read_text().partition("| key | of | meaning |")[2].partition("\n\n")[0]
    rows = (line.split(" | ") for line in table.splitlines() if line.startswith("| `"))
    words = ((re.findall(r"`([\w-]+)`", row[0]), re.findall(r"`([\w-]+)`", row[1])) for row in rows)
    assert {(key, name) for found, names in words for key in found for name in names} == keys


def test_serve_lists_its_options_under_headings(mockllm):
    """The headings are in the order of use."""
    text = mockllm("serve", "--help").stdout
    headings = ("Answers", "Times", "Faults", "Recording", "Interception", "Many processes")
    assert [name for name in re.findall(r"^(\w.*):$", text, re.MULTILINE) if name in headings] == [
        *headings
    ]
