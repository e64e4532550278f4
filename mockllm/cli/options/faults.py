"""The options that break the answers of a server: `--fault`, `--fault-rate`, `--fault-seed`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from mockllm.errors import UsageError
from mockllm.replay.faults.fault_plan import NO_PLAN, FaultPlan, read_plan
from mockllm.scenario.durations import read_percent


def _share(value: str | float) -> float:
    if isinstance(value, float):
        return value
    try:
        return read_percent(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} must be {error}") from None


def fault_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of faults; the command gets `faults`, a `FaultPlan`."""

    @click.option(
        "--fault",
        "written",
        multiple=True,
        metavar="NAME[:KEY=VALUE,...]",
        help="What breaks on the way of answers, such as cut:after=3events; several in one "
        "answer are joined by ';'. May be repeated: one of them is drawn for each answer.",
    )
    @click.option(
        "--fault-rate",
        "rate",
        type=_share,
        metavar="PERCENT",
        help="How many answers have a fault, such as 10%; default: all.",
    )
    @click.option(
        "--fault-seed",
        "seed",
        metavar="TEXT",
        help="The same seed, session and order of requests give the same faults.",
    )
    @functools.wraps(command)
    def with_faults(
        *args: Any, written: tuple[str, ...], rate: float | None, seed: str | None, **options: Any
    ) -> Any:
        return command(*args, faults=_plan(written, rate, seed), **options)

    return with_faults


def _plan(written: tuple[str, ...], rate: float | None, seed: str | None) -> FaultPlan:
    if written:
        return read_plan(written, rate=1.0 if rate is None else rate, seed=seed or "0")
    if rate is not None or seed is not None:
        raise UsageError(
            "--fault-rate and --fault-seed need --fault, such as --fault cut:after=3events"
        )
    return NO_PLAN
