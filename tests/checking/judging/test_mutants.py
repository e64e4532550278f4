"""The kit finds the mutants, each by the case that its row names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import pytest

from mockllm.checking import INVARIANTS, CaseSpec, Report, case_specs, examine
from mockllm.checking.cases.case import Level
from mockllm.play.quirks.samples import TWO_CALLS
from mockllm.play.replay.loading import load, shipped_scenarios
from mockllm.scenario.model import Api
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import OVER_HTTP
from tests.checking.mutants import MUTANTS, Mutant
from tests.checking.mutants.altered import forget_streams

# These take much of the time, and find no mutant that the others miss.
LONG: dict[Level, tuple[str, ...]] = {
    "payloads": ("long-text",),
    "bytes": ("long-text", "unicode", "hundred-tools"),
}
VARIATIONS: dict[Level, int] = {"payloads": 4, "bytes": 1}

# The loader refuses a scenario that calls a tool which it does not offer; a model may do so.
UNOFFERED = replace(TWO_CALLS, name="unoffered", tools=TWO_CALLS.tools[:1])

APIS = tuple(PROTOCOLS)


@cache
def _specs(api: Api, level: Level) -> dict[str, CaseSpec]:
    scenarios = [each for each in load([shipped_scenarios()]) if each.name not in LONG[level]]
    specs = case_specs(api, scenarios, variations=VARIATIONS[level], level=level)
    unoffered = CaseSpec(f"{api}/{UNOFFERED.name}", UNOFFERED, api)
    return {spec.name: spec for spec in (*specs, unoffered)}


def _report(mutant: Mutant, names: Iterable[str] = ()) -> Report:
    """The report on some cases, or on all."""
    forget_streams()
    specs = _specs(mutant.api, mutant.level)
    played = [specs[name].compile() for name in names or specs]
    return examine(mutant.make, played, mutant.policy, level=mutant.level)


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
def test_each_mutant_is_found_by_its_case(api: Api) -> None:
    """The kit accuses each mutant in the case, or the cases, that its row names."""
    missed = {}
    for mutant in MUTANTS:
        if mutant.api == api and not mutant.excuse and _report(mutant, mutant.found_by).good:
            failures = _report(mutant).failures
            missed[str(mutant)] = f"not {mutant.found_by}, but {failures[:1] or 'nothing'} finds it"
    assert not missed


@pytest.mark.heavy
@pytest.mark.parametrize("api", APIS)
def test_mutants_break_the_declared_invariants(api: Api) -> None:
    """Over all cases, the report has exactly the invariants that a row calls `breaks only`."""
    wrong = {}
    for mutant in MUTANTS:
        if mutant.api == api and mutant.exact:
            broken = _report(mutant).broken()
            if broken.keys() != mutant.breaks:
                wrong[str(mutant)] = [str(failures[0]) for failures in broken.values()]
    assert not wrong


@pytest.mark.heavy
def test_the_excused_mutants_are_not_caught() -> None:
    """A mutant that a case catches has no excuse in its row."""
    assert [str(mutant) for mutant in MUTANTS if mutant.excuse and not _report(mutant).good] == []


def test_a_mutant_is_found_by_a_case_or_excused() -> None:
    """Each row has one of the two; an excuse is a sentence."""
    assert all(bool(mutant.found_by) != bool(mutant.excuse) for mutant in MUTANTS)
    assert all(mutant.excuse.endswith(".") for mutant in MUTANTS if mutant.excuse)


def test_every_invariant_and_protocol_has_mutants() -> None:
    """Every invariant of a streamed answer has a mutant, and so has every protocol at both levels;
    those of WebSockets have messages alone."""
    broken = {name for mutant in MUTANTS for name in mutant.breaks}
    # Bodies are read by another function of a client: see test_examine.
    assert broken == INVARIANTS.keys() - {"stream-equals-body"}
    declared = {(mutant.api, mutant.level) for mutant in MUTANTS}
    levels = {(api, "payloads") for api in APIS} | {(api, "bytes") for api in OVER_HTTP}
    assert declared == levels


def test_every_mutant_has_a_description_and_its_own_name() -> None:
    """Each has a sentence about its mistake and a unique name."""
    assert all(mutant.mistake.endswith(".") for mutant in MUTANTS)
    assert len({str(mutant) for mutant in MUTANTS}) == len(MUTANTS)
