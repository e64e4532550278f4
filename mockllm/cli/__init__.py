"""The command line. One module a command, imported when the command runs."""

from __future__ import annotations

import click

import mockllm
from mockllm.cli.terminal.commandline import CommandLine

__all__ = ["main"]

_COMMANDS = {
    "check": "mockllm.cli.check:check",
    "convert-tests": "mockllm.cli.convert:convert_tests",
    "demo": "mockllm.cli.demo:demo",
    "env": "mockllm.cli.env:env",
    "export": "mockllm.cli.show:export",
    "import": "mockllm.cli.importing:import_",
    "init": "mockllm.cli.init:init",
    "list": "mockllm.cli.listing:list_scenarios",
    "quirks": "mockllm.cli.quirks:quirks",
    "record": "mockllm.cli.record:record",
    "report": "mockllm.cli.report:report",
    "run": "mockllm.cli.run:run",
    "schema": "mockllm.cli.validate:schema",
    "scrub": "mockllm.cli.scrub:scrub",
    "serve": "mockllm.cli.serve:serve",
    "show": "mockllm.cli.show:show",
    "validate": "mockllm.cli.validate:validate",
}


if "__distribution__" not in vars(mockllm):
    # Another project's `mockllm/__init__.py` ran, or none; ours would have looked for collisions.
    from mockllm.cli.terminal.installation import warn

    warn(stacklevel=2)


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from mockllm.cli.terminal.installation import findings, installed_version

    click.echo(f"mockllm, version {installed_version()}")
    problems = findings()
    for line in problems:
        click.echo(f"mockllm: {line}", err=True)
    context.exit(1 if problems else 0)


@click.group(
    "mockllm",
    cls=CommandLine,
    commands_at=_COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)
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
