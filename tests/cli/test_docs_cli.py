"""The page on the command line: every example on it is understood, every option is there."""

import re
import shlex
from pathlib import Path

import click
import pytest

from mockllm.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
EXAMPLES = [line for block in BLOCKS for line in block.splitlines()]
COMMANDS = sorted(main.list_commands(click.Context(main)))


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_are_understood(mockllm, example, tmp_path, monkeypatch):
    """Each line is a command with options that it has."""
    monkeypatch.chdir(tmp_path)
    mockllm("init", "scenarios")
    Path("request.json").write_text("{}")
    program, name, *arguments = shlex.split(example)
    assert program == "mockllm"
    command = main.get_command(click.Context(main), name)
    assert command is not None
    with command.make_context(name, arguments) as context:
        assert not context.args


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example(command):
    """No command is left out."""
    assert any(example.split()[1] == command for example in EXAMPLES)


def test_every_option_of_serve_is_told():
    """The table of options is complete."""
    command = main.get_command(click.Context(main), "serve")
    assert command is not None
    options = [name for one in command.params for name in one.opts if name.startswith("--")]
    assert [name for name in options if f"`{name}" not in TEXT] == []
