"""`mockllm completion`: what a shell reads so that the tab key completes commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from mockllm.cli.terminal.output import echo

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes the tab key complete commands, options, files and names of scenarios.

    \b
    Examples:
      mockllm completion bash >> ~/.bashrc
      mockllm completion zsh >> ~/.zshrc
      mockllm completion fish > ~/.config/fish/completions/mockllm.fish
    """
    program = context.find_root()
    kind = get_completion_class(shell)
    assert kind is not None
    echo(kind(program.command, {}, "mockllm", "_MOCKLLM_COMPLETE").source().strip())
