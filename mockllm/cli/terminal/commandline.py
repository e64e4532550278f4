"""What all commands share: they are imported when named, and fail with one line."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from mockllm.errors import MockLLMError, ScenarioError

_FAILED = 2
_INTERRUPTED = 130


class CommandLine(click.Group):
    """A group of commands, each imported when it runs.

    An error is one line on standard error, with exit code 2.

    Args:
        commands_at: where each command is, as `module:name`.
    """

    def __init__(self, *args: Any, commands_at: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._commands_at = commands_at

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._commands_at:
            return None
        module, _, name = self._commands_at[cmd_name].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

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
            click.echo(f"mockllm: {_message(error)}", err=True)
            sys.exit(_FAILED)
        if not standalone_mode:
            return code
        sys.exit(code if isinstance(code, int) else 0)


def _message(error: Exception) -> str:
    match error:
        case ScenarioError(problems=problems):
            for problem in problems:
                click.echo(str(problem), err=True)
            count = len(problems)
            return f"{count} problem{'s' * (count > 1)} in the scenarios"
        case click.UsageError(ctx=context) if context is not None:
            return f"{error.format_message()} (see {context.command_path} --help)"
        case click.ClickException():
            return error.format_message()
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{name}: {reason}"
    return str(error)
