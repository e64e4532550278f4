"""`mockllm.toml`: a table for each command, with a key for each of its options.

The values go through the types and callbacks of the options. Some keys have no option: they are
for the file only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from mockllm.cli.options.headings import long_name
from mockllm.core.errors import UsageError
from mockllm.core.text import did_you_mean

_Command = TypeVar("_Command", bound=Any)
_META = "mockllm.config"
_FILE = Path("mockllm.toml")
_SECRETS = "redact"
"""The table about secrets, which `mockllm.record.redaction.rules` reads."""


class FileKey(click.Option):
    """A key of the file that is no option of the command line."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """The parser of the command line does not know it."""

    def get_help_record(self, ctx: click.Context) -> None:
        """The help of the command line does not list it."""


def file_key(*names: str, **settings: Any) -> Callable[[_Command], _Command]:
    """A decorator that adds a key of `mockllm.toml`, with the arguments of `click.option`."""
    return click.option(*names, cls=FileKey, hidden=True, **settings)


def config_file() -> Path | None:
    """The file of the running command: the one that `--config` names, or `mockllm.toml` in the
    current folder; None if there is none."""
    context = click.get_current_context(silent=True)
    named: Path | None = None if context is None else context.meta.get(_META)
    return named or (_FILE if _FILE.is_file() else None)


def read_config(context: click.Context, named: Path | None) -> None:
    """Takes the defaults of the command that is invoked from its table.

    Args:
        context: of the group of commands.
        named: the file that `--config` names.

    Raises:
        UsageError: the file cannot be read, or has a table or key that nothing reads.
    """
    if named is not None:
        context.meta[_META] = named
    group, name, file = context.command, context.invoked_subcommand, config_file()
    if file is None or name is None:
        return
    assert isinstance(group, click.Group)
    tables = _tables(file)
    _refuse_unknown(tables, (*group.list_commands(context), _SECRETS), f"{file}", "table")
    command = group.get_command(context, name)
    if command is not None and name in tables:
        where = f"{file}: [{name}]"
        context.default_map = {name: _defaults(command, tables[name], where)}


def _tables(file: Path) -> dict[str, dict[str, Any]]:
    import tomllib

    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} must be a TOML file: {error}") from error
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise UsageError(f"{file}: `{name}` must be a table, [{name}]")
    return tables


def _defaults(command: click.Command, table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The values of a table by the names of the parameters."""
    keys = {long_name(option): option for option in command.params if long_name(option)}
    _refuse_unknown(table, keys, where, "key")
    return {
        str(keys[key].name): _value(keys[key], value, f"{where} {key}")
        for key, value in table.items()
    }


def _value(option: click.Parameter, value: Any, where: str) -> Any:
    """A value as the type of an option reads it: a bool, a text, or texts."""
    if isinstance(option, click.Option) and option.is_flag:
        if not isinstance(value, bool):
            raise UsageError(f"{where} must be true or false, got {value!r}")
        return value
    if option.multiple and isinstance(value, list):
        return [_text(item, where) for item in value]
    return [_text(value, where)] if option.multiple else _text(value, where)


def _text(value: Any, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UsageError(f"{where} must be a string or a number, got {value!r}")
    return str(value)


def _refuse_unknown(
    table: Mapping[str, Any], known: Mapping[str, Any] | tuple[str, ...], where: str, kind: str
) -> None:
    for name in table:
        if name not in known:
            hint = did_you_mean(name, known)
            names = f"there are {', '.join(known)}"
            raise UsageError(f"{where}: there is no {kind} {name!r}; {hint or names}")


def origin(error: click.BadParameter) -> str:
    """The file, table and key of a value that an option refuses; "" for one that no file has."""
    context, option = error.ctx, error.param
    if context is None or option is None or option.name is None:
        return ""
    if context.get_parameter_source(option.name) is not ParameterSource.DEFAULT_MAP:
        return ""
    return f"{context.meta.get(_META) or _FILE}: [{context.info_name}] {long_name(option)}"


_OF_OTHER_TOOLS = {
    "watch": "--reload",
    "delay": "--latency",
    "fixtures": "--scenarios",
    "replay-speed": "--speed",
    "chaos": "--fault",
}
"""Options of other servers, and what they are here."""


def advice(error: click.NoSuchOption) -> str:
    """Advice for an option that is a key of the file, or of another server; "" for any other."""
    if error.ctx is None:
        return ""
    meant = _OF_OTHER_TOOLS.get(error.option_name.removeprefix("--"))
    if meant and any(meant in option.opts for option in error.ctx.command.params):
        return f"No such option '{error.option_name}'. Did you mean '{meant}'?"
    name = error.option_name.removeprefix("--").removeprefix("no-")
    for option in error.ctx.command.params:
        if isinstance(option, FileKey) and long_name(option) == name:
            value = "true or false" if option.is_flag else option.metavar or "VALUE"
            key = f"[{error.ctx.info_name}] {name} = {value}"
            return f"{error.option_name} is no option, but a key of mockllm.toml: {key}"
    return ""
