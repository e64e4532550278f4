"""`mockllm validate` and `mockllm schema`: what is wrong with files, and what may be in them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mockllm.cli.options.parameters import path_arguments, read_scenarios
from mockllm.cli.terminal.output import echo
from mockllm.core import documentation
from mockllm.core.errors import Problem, ScenarioError
from mockllm.core.text import quantity
from mockllm.scenario.model import Scenario
from mockllm.scenario.precedence import orders

if TYPE_CHECKING:
    from mockllm.record.recording.store.ages import MaxAge


def _max_age(_: click.Context, __: click.Parameter, value: str | None) -> MaxAge | None:
    if value is None:
        return None
    from mockllm.record.recording.store.ages import read_max_age

    try:
        return read_max_age(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@path_arguments("PATH...")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of the problems.")
@click.option(
    "--losses", is_flag=True, help="Report what turns lose over protocols that cannot express it."
)
@click.option(
    "--max-age",
    callback=_max_age,
    metavar="AGE[:error]",
    help="Warn of recordings that are older than 30d (days) or 4w (weeks); with :error they are "
    "problems.",
)
@click.pass_context
def validate(
    context: click.Context,
    paths: tuple[Path, ...],
    as_json: bool,
    losses: bool,
    max_age: MaxAge | None,
) -> None:
    """Report every problem of scenario files and folders.

    Each has file, line and column, its path in the document, and what to do. The exit code is
    0 where all is well, and 1 where it is not. Losses are no problems: `apis` in a scenario
    leaves out the protocols that it is not meant for. Nor are recordings that are too old, unless
    --max-age says so; lines on standard error warn of them, of those without a date, and of texts
    that look like a template and are none. Where a message may meet two scenarios, a line says
    which of them answers.

    \b
    Examples:
      mockllm validate scenarios/
      mockllm validate --json scenarios/ | jq -r '.[].message'
      mockllm validate --losses scenarios/
      mockllm validate --max-age 30d:error scenarios/recorded
    """
    if not paths:
        raise click.UsageError("name the files or folders to validate")
    scenarios: tuple[Scenario, ...] = ()
    problems: tuple[Problem, ...] = ()
    try:
        scenarios = read_scenarios(paths, lambda flaw: echo(f"warning: {flaw}", err=True))
        problems = (*_broken_tapes(scenarios), *_too_old(scenarios, max_age))
    except ScenarioError as error:
        problems = error.problems
    if as_json:
        echo(json.dumps([asdict(problem) for problem in problems], indent=2))
    else:
        for problem in problems:
            echo(str(problem))
        for line in (
            () if problems else (*orders(scenarios), *(_losses(scenarios) if losses else ()))
        ):
            echo(line)
        echo(_summary(scenarios, problems))
    context.exit(1 if problems else 0)


def _broken_tapes(scenarios: tuple[Scenario, ...]) -> Iterator[Problem]:
    """Problems in the first lines of the tapes; the rest of a tape is read when it plays."""
    taped = [
        (turn.recorded, bool(scenario.socket))
        for scenario in scenarios
        for turn in scenario.turns
        if turn.recorded is not None
    ]
    if not taped:
        return
    from mockllm.play.replay.compilation.tape_player import check

    for recorded, of_socket in taped:
        try:
            check(recorded, of_socket=of_socket)
        except OSError as error:
            file = recorded.path or recorded.file
            yield Problem(file, 1, 1, "", f"cannot be read: {error.strerror}")
        except ScenarioError as error:
            yield from error.problems


def _too_old(scenarios: tuple[Scenario, ...], most: MaxAge | None) -> Iterator[Problem]:
    """The recordings that are too old, if that is an error; else warns of them."""
    if most is None:
        return
    from mockllm.record.recording.store.ages import ages

    found = ages(scenarios, most, time.time())
    for file, sentence in found.too_old:
        if most.is_error:
            yield Problem(file, 1, 1, "", sentence)
        else:
            echo(f"warning: {file}: {sentence}", err=True)
    if found.undated:
        count = quantity(len(found.undated), "recording")
        echo(f"warning: no date is known of {count}: {found.undated[0]}", err=True)


def _losses(scenarios: tuple[Scenario, ...]) -> Iterator[str]:
    from mockllm.play.replay.losses import find_losses
    from mockllm.wire.protocols import PROTOCOLS

    for scenario in scenarios:
        yield from map(str, find_losses(scenario, PROTOCOLS))


def _summary(scenarios: tuple[Scenario, ...], problems: tuple[Problem, ...]) -> str:
    if problems:
        files = len({problem.file for problem in problems})
        return f"{quantity(len(problems), 'problem')} in {quantity(files, 'file')}"
    return f"{quantity(len(scenarios), 'scenario')}, no problems"


@click.command()
def schema() -> None:
    """Print the JSON Schema of the scenario language.

    An editor that uses yaml-language-server completes keys and shows their meaning once a
    scenario begins with the line that names the schema.

    \b
    Examples:
      mockllm schema > scenarios/scenario.schema.json
      # yaml-language-server: $schema=scenario.schema.json
    """
    import mockllm.scenario
    from mockllm.wire.protocols import PROTOCOLS

    file = Path(mockllm.scenario.__file__).with_name("schema.json")
    language = json.loads(file.read_bytes())
    # Editors read the file as well; it has the protocols that come with mockllm.
    language["$defs"]["api"]["enum"] = list(PROTOCOLS)
    if documentation.SITE:
        language["$id"] = f"{documentation.SITE}/scenario.schema.json"
    echo(json.dumps(language, indent=2))
