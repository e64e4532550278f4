"""The scenarios of the kit: answers that each client meets, also where the user has no scenario.

One file an API, and `common.yaml` for what all APIs can express; `weather.yaml` and `save.yaml` are
the tools that many of them include. docs/maintainers/coverage.md shows what each scenario plays.
It reads the files of this package, and those of other packages that have scenarios.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from mockllm.checking.rules import table
from mockllm.play.replay.loading import loads
from mockllm.scenario.model import Api, Scenario


@cache
def kit_scenarios(api: Api) -> tuple[Scenario, ...]:
    """The kit's scenarios that play over an API: the common ones, then its own."""
    return tuple(
        scenario
        for name in ("common", api)
        for scenario in _scenarios(f"{name}.yaml")
        if scenario.plays_over(api)
    )


def _scenarios(name: str) -> tuple[Scenario, ...]:
    """The scenarios of a file of this package; none where an API has no file of its own."""
    return scenarios_of_file(__name__, name) if (files(__name__) / name).is_file() else ()


@cache
def scenarios_of_file(package: str, name: str) -> tuple[Scenario, ...]:
    """The scenarios of a file of a package, which may include files beside it."""
    folder = files(package)
    text = (folder / name).read_text(encoding="utf-8")
    return loads(text, name, lambda other: (folder / other).read_bytes())


@cache
def answers_of(package: str) -> Mapping[str, Scenario]:
    """The scenarios of the `answers.yaml` of a package, by name."""
    return {scenario.name: scenario for scenario in scenarios_of_file(package, "answers.yaml")}


@cache
def tested_invariants() -> Mapping[str, str]:
    """The invariant that a scenario of the kit tests, by the name of the scenario."""
    names = table("material/invariants.yaml")
    return {name: invariant for invariant, tested in names.items() for name in tested}
