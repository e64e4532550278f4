"""The command line. One module a command, imported when the command runs.

Here live the options and what a command prints; what it does is in the wings below. For others:
`main`, and the readers of options that the pytest plugin shares (`options.recording`).

An error of any command is one line on standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import mockllm
from mockllm.cli.options.config import advice, origin, read_config
from mockllm.cli.terminal.output import echo
from mockllm.core.errors import MockLLMError, NotStartedError, ScenarioError
from mockllm.core.text import did_you_mean

_FAILED = 2
_LONGEST_SUMMARY = 200
_INTERRUPTED = 130


_OF_OTHER_TOOLS = {
    "help": "mockllm --help lists the commands, and mockllm COMMAND --help describes one",
    "version": "the version is mockllm --version",
    "start": "a server is mockllm serve",
    "test": "a command with a server is mockllm run -- pytest",
    "replay": "recordings are played by mockllm serve DIR",
    "convert": "recordings of other tools are mockllm import, tests mockllm convert-tests",
}
"""The command to type in place of one that other programs have."""


class CommandLine(click.Group):
    """A group of commands, each imported when it runs.

    An error is one line on standard error, with exit code 2.

    Args:
        groups: by heading, where each command is, as `module:name`.
    """

    def __init__(
        self, *args: Any, groups: Mapping[str, Mapping[str, str]], **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self._groups = groups
        self._commands_at = {name: at for group in groups.values() for name, at in group.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._commands_at:
            return None
        module, _, name = self._commands_at[cmd_name].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self._commands_at:
            hint = _OF_OTHER_TOOLS.get(args[0]) or did_you_mean(args[0], self._commands_at, most=3)
            ctx.fail(f"there is no command {args[0]!r}{'; ' * bool(hint)}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands by groups, each with its whole first sentence, which click cuts."""
        for heading, names in self._groups.items():
            commands = ((name, self.get_command(ctx, name)) for name in names)
            rows = [
                (name, command.get_short_help_str(_LONGEST_SUMMARY))
                for name, command in commands
                if command is not None
            ]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs a command; an error is a line on standard error, and no traceback."""
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.Abort:
            if not standalone_mode:
                raise
            sys.exit(_INTERRUPTED)
        except (click.ClickException, MockLLMError, OSError) as error:
            if not standalone_mode:
                raise
            echo(f"mockllm: {_message(error)}", err=True)
            sys.exit(error.exit_code if isinstance(error, NotStartedError) else _FAILED)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


def _message(error: Exception) -> str:
    match error:
        case ScenarioError(problems=problems):
            for problem in problems:
                echo(str(problem), err=True)
            count = len(problems)
            return f"{count} problem{'s' * (count > 1)} in the scenarios"
        case click.BadParameter() if place := origin(error):
            return f"{place}: {' '.join(error.message.split())}"
        case click.NoSuchOption() if hint := advice(error):
            return hint
        case click.UsageError(ctx=context) if context is not None:
            return f"{_one_line(error)} (see {context.command_path} --help)"
        case click.ClickException():
            return _one_line(error)
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{name}: {reason}"
    return str(error)


def _one_line(error: click.ClickException) -> str:
    """The message of click, which lists choices on lines of their own."""
    return " ".join(error.format_message().split())


__all__ = ["main"]

_GROUPS = {
    "Begin": {
        "demo": "mockllm.cli.demo:demo",
        "init": "mockllm.cli.init:init",
        "docs": "mockllm.cli.docs:docs",
        "completion": "mockllm.cli.completion:completion",
    },
    "Serve and run": {
        "serve": "mockllm.cli.serve:serve",
        "run": "mockllm.cli.run:run",
        "agent": "mockllm.cli.agent:agent",
        "env": "mockllm.cli.env:env",
        "mcp": "mockllm.cli.mcp:mcp",
    },
    "Record": {
        "record": "mockllm.cli.serve:record",
        "import": "mockllm.cli.importing:import_",
        "convert-tests": "mockllm.cli.convert:convert_tests",
        "drift": "mockllm.cli.drift:drift",
        "scrub": "mockllm.cli.scrub:scrub",
        "export": "mockllm.cli.show:export",
    },
    "Check": {
        "check": "mockllm.cli.check:check",
        "check-gateway": "mockllm.cli.check:check_gateway",
        "report": "mockllm.cli.report:report",
        "validate": "mockllm.cli.validate:validate",
    },
    "Look up": {
        "list": "mockllm.cli.listing:list_",
        "show": "mockllm.cli.show:show",
        "schema": "mockllm.cli.validate:schema",
        "report-bug": "mockllm.cli.report_bug:report_bug",
    },
}


if "__distribution__" not in vars(mockllm):
    # Another project's `mockllm/__init__.py` ran, or none; ours would have looked for collisions.
    from mockllm.cli.terminal.installation import warn

    warn(stacklevel=2)


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from mockllm.cli.terminal.installation import findings, installed_version

    echo(f"mockllm, version {installed_version()}")
    problems = findings()
    for line in problems:
        echo(f"mockllm: {line}", err=True)
    context.exit(1 if problems else 0)


@click.group(
    "mockllm",
    cls=CommandLine,
    groups=_GROUPS,
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
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A file with options, a table for each command; default: mockllm.toml, if it exists.",
)
@click.pass_context
def main(context: click.Context, config: Path | None) -> None:
    """A mock server for LLM streams: scenarios in YAML, the real bytes of the real protocols.

    \b
    Begin here:
      mockllm demo                      see several APIs stream the same tool calls
      mockllm init scenarios            write a first scenario
      mockllm serve scenarios           serve it on http://127.0.0.1:8080
      mockllm run -- pytest             a server for the time that a command runs
      mockllm docs                      the pages of the documentation
    """
    read_config(context, config)
    if context.invoked_subcommand is None:
        echo(context.get_help())
