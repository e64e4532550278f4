"""The scenarios of the kit: answers that each client meets, also where the user has no scenario.

One file an API, and `common.yaml` for what all APIs can express. docs/maintainers/coverage.md shows
what each scenario plays. It reads the files of this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from mockllm.checking.rules import table
from mockllm.replay.loading import loads
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


@cache
def _scenarios(name: str) -> tuple[Scenario, ...]:
    """The scenarios of a file of this package; none where an API has no file of its own."""
    file = files(__name__) / name
    return loads(file.read_text(encoding="utf-8"), name) if file.is_file() else ()


@cache
def tested_invariants() -> Mapping[str, str]:
    """The invariant that a scenario of the kit tests, by the name of the scenario."""
    names = table("material/invariants.yaml")
    return {name: invariant for invariant, tested in names.items() for name in tested}
