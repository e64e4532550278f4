"""`mockllm list`: scenarios, quirks, profiles and presets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from click.core import ParameterSource

from mockllm.cli.options.parameters import (
    API,
    EXISTING,
    join_paths,
    json_option,
    named_option,
    read_scenarios,
)
from mockllm.cli.terminal.output import echo
from mockllm.cli.terminal.table import print_table
from mockllm.core.errors import UsageError
from mockllm.core.text import did_you_mean
from mockllm.scenario.model import Api, Scenario
from mockllm.wire.protocols import PROTOCOLS

_HEAD = ("NAME", "APIS", "TURNS", "TOOLS", "DESCRIPTION")
_TOOLS_SHOWN = 2


_KINDS = ("scenarios", "quirks", "profiles", "presets")


def _existing(name: str) -> Path:
    if name == "faults" and not Path(name).exists():
        raise UsageError("faults stand in `mockllm docs fault-kinds`")
    hint = did_you_mean(name, _KINDS)
    try:
        return Path(EXISTING.convert(name, None, None))
    except click.BadParameter as error:
        if hint and not error.message.endswith("?"):
            raise click.BadParameter(f"{error.message} {hint.capitalize()}") from None
        raise


@click.command("list")
@click.argument("words", nargs=-1, metavar="[scenarios|quirks|profiles|presets] [PATH|NAME]...")
@named_option()
@click.option("--api", type=API, help="With quirks: only those met in this API.")
@json_option
@click.pass_context
def list_(
    context: click.Context,
    words: tuple[str, ...],
    named: tuple[Path, ...],
    api: Api | None,
    as_json: bool,
) -> None:
    """List scenarios, quirks of real servers, latency profiles, or presets of gateways.

    Scenarios are those of PATH; without it, those that come with mockllm. A folder `scenarios`
    that is there is a PATH; other folders of these names are written ./quirks. With NAME, a quirk
    is described in full: where it was seen, who stumbled over it, what is right, and what it
    changes in the bytes of its sample. `serve --quirk`, `show --quirk`, `wire.quirks` in a scenario
    and the request header `x-mockllm-quirk` play it. `serve --profile` has the profiles, and
    `check-gateway --preset` the presets.

    \b
    Examples:
      mockllm list
      mockllm list scenarios/ --json | jq -r '.[].name'
      mockllm list quirks --api anthropic
      mockllm list quirks chat-index-missing
      mockllm list profiles
    """
    has_kind = words[:1] and words[0] in _KINDS and not _is_folder_of_scenarios(words[0])
    kind, *names = words if has_kind else ("scenarios", *words)
    if api is not None and kind != "quirks":
        raise UsageError("--api is for `mockllm list quirks`")
    if kind != "scenarios" and context.get_parameter_source("named") is ParameterSource.COMMANDLINE:
        raise UsageError(f"--scenarios is for `mockllm list scenarios`, not for {kind}")
    if kind == "scenarios":
        paths = tuple(_existing(name) for name in names)
        _print_scenarios(join_paths(paths, named), as_json)
    elif kind == "quirks":
        from mockllm.cli.quirks import print_quirks

        print_quirks(names, api, as_json)
    elif kind == "profiles":
        _print_profiles(names, as_json)
    else:
        _print_presets(names, as_json)


def _is_folder_of_scenarios(word: str) -> bool:
    return word == "scenarios" and Path(word).is_dir()


def _print_presets(names: Sequence[str], as_json: bool) -> None:
    from mockllm.conformance.gateways.presets import preset_lines, presets

    if names:
        raise UsageError(f"presets are listed all at once, got {names[0]!r}")
    if as_json:
        echo(json.dumps(presets(), indent=2, ensure_ascii=False, default=str))
        return
    for line in preset_lines():
        echo(line)


def _print_profiles(names: Sequence[str], as_json: bool) -> None:
    """Prints the latency of real services, and where each figure was measured."""
    from mockllm.play.replay.latency.profiles import profile as find
    from mockllm.play.replay.latency.profiles import profiles

    listed = [*map(find, names)] or list(profiles().values())
    if as_json:
        echo(json.dumps([*map(asdict, listed)], indent=2))
        return
    for number, profile in enumerate(listed):
        echo(f"{'' if not number else chr(10)}{profile.name}: {profile.title}")
        for figure in profile.figures:
            echo(f"  {figure.key}={figure.value}: {figure.measured}")
        echo(f"  {profile.source} ({profile.date})")


def _print_scenarios(paths: tuple[Path, ...], as_json: bool) -> None:
    scenarios = read_scenarios(paths)
    if as_json:
        from mockllm.serve.server.control.control_routes import scenario_summary

        listed = [scenario_summary(scenario) for scenario in scenarios]
        echo(json.dumps(listed, indent=2, ensure_ascii=False))
        return
    print_table([_HEAD, *map(_row, scenarios)])


def _row(scenario: Scenario) -> tuple[str, ...]:
    apis = "all" if set(scenario.apis or PROTOCOLS) == set(PROTOCOLS) else ",".join(scenario.apis)
    if scenario.route is not None:
        apis = str(scenario.route)
    if scenario.server is not None:
        apis = f"/mcp/{scenario.server.name}"
    return (
        scenario.name,
        apis,
        str(len(scenario.turns)),
        _tools([tool.name for tool in (scenario.server or scenario).tools]),
        scenario.description,
    )


def _tools(names: list[str]) -> str:
    if len(names) <= _TOOLS_SHOWN:
        return ",".join(names) or "-"
    return f"{','.join(names[:_TOOLS_SHOWN])} +{len(names) - _TOOLS_SHOWN}"
