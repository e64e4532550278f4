"""The kit finds every mutant, and reports the invariants that it breaks and no others."""

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

# These take half of the time, and find no mutant that the others miss.
LONG: dict[Level, tuple[str, ...]] = {
    "payloads": ("long-text", "unicode"),
    "bytes": ("long-text", "unicode", "hundred-tools"),
}
VARIATIONS: dict[Level, int] = {"payloads": 4, "bytes": 2}

# The loader refuses a scenario that calls a tool which it does not offer; a model may do so.
UNOFFERED = replace(TWO_CALLS, name="unoffered", tools=TWO_CALLS.tools[:1])


@cache
def _cases(api: Api, level: Level) -> tuple[Case, ...]:
    scenarios = [each for each in load([shipped_scenarios()]) if each.name not in LONG[level]]
    found = cases(api, scenarios, variations=VARIATIONS[level], level=level)
    return (*found, case(UNOFFERED, api))


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_mutant_breaks_the_declared_invariants(mutant: Mutant) -> None:
    """The report has exactly the invariants that the mutant declares."""
    found = _cases(mutant.api, mutant.level)
    report = examine(mutant.make, found, mutant.policy, level=mutant.level)
    first_failures = "\n".join(str(failures[0]) for failures in report.broken().values())
    assert report.broken().keys() == mutant.breaks, first_failures


def test_every_invariant_and_protocol_has_mutants() -> None:
    """Every invariant of a streamed answer has a mutant, and so has every protocol at both
    levels."""
    broken = {name for mutant in MUTANTS for name in mutant.breaks}
    # Bodies are read by another function of a client: see test_examine.
    assert broken == INVARIANTS.keys() - {"stream-equals-body"}
    declared = {(mutant.api, mutant.level) for mutant in MUTANTS}
    apis = {"chat", "responses", "anthropic", "gemini", "agui"}
    assert declared == {(api, level) for api in apis for level in ("payloads", "bytes")}


def test_every_mutant_has_a_description_and_its_own_name() -> None:
    """Each has a docstring about its mistake and a unique name."""
    assert all(inspect.cleandoc(mutant.make.__doc__ or "").endswith(".") for mutant in MUTANTS)
    assert len({str(mutant) for mutant in MUTANTS}) == len(MUTANTS)
