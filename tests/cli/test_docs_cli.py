"""docs/cli.md, cli-serving.md: every example parses, every option of `serve` is documented."""

import re
import shlex
from pathlib import Path

import click
import pytest

from mockllm.cli import main
from mockllm.cli.options.config import FileKey
from tests.cases import for_all
from tests.docs.pages import text_of

TEXT = text_of("cli", "cli-serving", "cli-recordings", "options")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
EXAMPLES = [line for block in BLOCKS for line in block.splitlines()]
COMMANDS = sorted(main.list_commands(click.Context(main)))


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_parse(mockllm, example, tmp_path, monkeypatch):
    """Each example parses as a command with its options."""
    monkeypatch.chdir(tmp_path)
    mockllm("init", "scenarios")
    Path("request.json").write_text("{}")
    for folder in ("tests/fixtures/vcr", "tests/cassettes"):
        Path(folder).mkdir(parents=True)
    for file in ("traffic.har", "answer.sse", "fixtures.json"):
        Path(file).touch()
    Path("mockllm-results").mkdir()
    Path("mockllm-results/my-client-chat.json").touch()
    program, name, *arguments = shlex.split(example)
    assert program == "mockllm"
    command = main.get_command(click.Context(main), name)
    assert command is not None
    with command.make_context(name, arguments) as context:
        assert not context.args


@for_all("command", COMMANDS)
def test_every_command_has_an_example(command):
    """Every command has an example on the page."""
    assert any(example.split()[1] == command for example in EXAMPLES)


def test_every_option_of_serve_is_documented():
    """The page names every option of `serve`, and every key of the file without its dashes."""
    command = main.get_command(click.Context(main), "serve")
    assert command is not None
    options = [
        name.removeprefix("--") if isinstance(param, FileKey) else name
        for param in command.params
        for name in param.opts
        if name.startswith("--")
    ]
    assert [name for name in options if f"`{name}" not in TEXT] == []
