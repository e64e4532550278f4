"""The kit finds every mutant, under the name of what is wrong with it and under no other."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import cache

import pytest

from mockllm.checking import INVARIANTS, Case, cases, examine
from mockllm.checking.cases.compile import case
from mockllm.checking.judging.running import Level
from mockllm.quirks.samples import TWO_CALLS
from mockllm.replay.loading import load
from mockllm.scenario.model import Api
from mockllm.scenario.shipped import shipped_scenarios
from tests.checking.mutants import MUTANTS, Mutant

# These take half of the time and show nothing that the others do not.
LONG: dict[Level, tuple[str, ...]] = {
    "payloads": ("long-text", "unicode"),
    "bytes": ("long-text", "unicode", "hundred-tools"),
}
VARIATIONS: dict[Level, int] = {"payloads": 4, "bytes": 2}

# A scenario cannot be written that calls a tool which it does not have; a model can.
UNOFFERED = replace(TWO_CALLS, name="unoffered", tools=TWO_CALLS.tools[:1])


@cache
def _cases(api: Api, level: Level) -> tuple[Case, ...]:
    scenarios = [each for each in load([shipped_scenarios()]) if each.name not in LONG[level]]
    found = cases(api, scenarios, variations=VARIATIONS[level], level=level)
    return (*found, case(UNOFFERED, api))


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mutant_is_found_under_its_name(mutant: Mutant) -> None:
    """What is broken is exactly what the mutant says it breaks."""
    found = _cases(mutant.api, mutant.level)
    report = examine(mutant.make, found, mutant.policy, level=mutant.level)
    told = "\n".join(str(failures[0]) for failures in report.broken().values())
    assert report.broken().keys() == mutant.breaks, told


def test_there_are_mutants_of_everything() -> None:
    """Every invariant of a streamed answer has one, and so has every protocol at both levels
    that it is fed at."""
    broken = {name for mutant in MUTANTS for name in mutant.breaks}
    # Bodies are read by another function of a client; test_examine has a wrong one.
    assert broken == INVARIANTS.keys() - {"stream-equals-body"}
    spoken = {(mutant.api, mutant.level) for mutant in MUTANTS}
    apis = {"chat", "responses", "anthropic", "gemini", "agui"}
    assert spoken == {(api, level) for api in apis for level in ("payloads", "bytes")}


def test_mutants_say_what_is_wrong_with_them() -> None:
    """Each has a sentence about its mistake, and a name of its own."""
    assert all(inspect.cleandoc(mutant.make.__doc__ or "").endswith(".") for mutant in MUTANTS)
    assert len({str(mutant) for mutant in MUTANTS}) == len(MUTANTS)
