"""The command line. A module for each command, imported when it is asked for."""

from __future__ import annotations

import click

from mockllm import __version__
from mockllm.cli.commandline import CommandLine

__all__ = ["main"]

_COMMANDS = {
    "demo": "mockllm.cli.demo:demo",
    "env": "mockllm.cli.env:env",
    "export": "mockllm.cli.exporting:export",
    "import": "mockllm.cli.importing:import_",
    "init": "mockllm.cli.init:init",
    "list": "mockllm.cli.listing:list_scenarios",
    "quirks": "mockllm.cli.quirks:quirks",
    "record": "mockllm.cli.record:record",
    "run": "mockllm.cli.run:run",
    "schema": "mockllm.cli.validate:schema",
    "scrub": "mockllm.cli.scrub:scrub",
    "serve": "mockllm.cli.serve:serve",
    "show": "mockllm.cli.show:show",
    "validate": "mockllm.cli.validate:validate",
}


@click.group(
    "mockllm",
    cls=CommandLine,
    commands_at=_COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, "-V", "--version", prog_name="mockllm")
@click.pass_context
def main(context: click.Context) -> None:
    """A mock server for LLM streams: scenarios in YAML, the real bytes of the real protocols.

    \b
    Begin here:
      mockllm demo                      see five APIs stream the same tool calls
      mockllm init scenarios            write a first scenario
      mockllm serve scenarios           serve it on http://127.0.0.1:8080
      mockllm run -- pytest             a server for the time that a command runs
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
