"""The kit finds the mutants, and reports the invariants that those of the first modules break."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import groupby

import pytest

from mockllm.checking import INVARIANTS, Case, Report, cases, examine
from mockllm.checking.cases.compile import case
from mockllm.checking.judging.running import Level
from mockllm.protocols import PROTOCOLS
from mockllm.quirks.samples import TWO_CALLS
from mockllm.replay.loading import load
from mockllm.scenario.model import Api
from mockllm.scenario.shipped import shipped_scenarios
from tests.checking.mutants import MUTANTS, Mutant
from tests.checking.mutants.declared import ESCAPED, TOLERATED
from tests.checking.mutants.declared import EXACT as EXACT_MODULES

# These take half of the time, and find no mutant that the others miss.
LONG: dict[Level, tuple[str, ...]] = {
    "payloads": ("long-text", "unicode"),
    "bytes": ("long-text", "unicode", "hundred-tools"),
}
VARIATIONS: dict[Level, int] = {"payloads": 4, "bytes": 1}

# The loader refuses a scenario that calls a tool which it does not offer; a model may do so.
UNOFFERED = replace(TWO_CALLS, name="unoffered", tools=TWO_CALLS.tools[:1])


@cache
def _cases(api: Api, level: Level) -> tuple[Case, ...]:
    scenarios = [each for each in load([shipped_scenarios()]) if each.name not in LONG[level]]
    found = cases(api, scenarios, variations=VARIATIONS[level], level=level)
    return (*found, case(UNOFFERED, api))


APIS = tuple(PROTOCOLS)
_PORTION = 64

EXACT = [mutant for mutant in MUTANTS if mutant.exact]
LISTED = ESCAPED | TOLERATED
NAMES = {str(mutant): mutant for mutant in MUTANTS}


def _digest(mutant: Mutant) -> str:
    return sha256(str(mutant).encode()).hexdigest()


def _sample() -> list[Mutant]:
    """Every sixth mutant of each family that is not exact, always the same ones."""
    every = sorted(MUTANTS, key=lambda mutant: (mutant.family, _digest(mutant)))
    families = groupby((one for one in every if not one.exact), lambda one: one.family)
    return [mutant for _, family in families for mutant in list(family)[::6]]


@pytest.mark.heavy
@pytest.mark.parametrize("api", APIS)
def test_mutants_break_the_declared_invariants(api: Api) -> None:
    """The report has exactly the invariants that a mutant declares."""
    wrong = {}
    for mutant in EXACT:
        if mutant.api == api:
            broken = _report(mutant).broken()
            if broken.keys() != mutant.breaks:
                wrong[str(mutant)] = [str(failures[0]) for failures in broken.values()]
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
def test_the_mutants_of_the_sample_are_caught(api: Api) -> None:
    """The kit accuses each mutant that is not listed as escaped or tolerated."""
    sample = [one for one in _sample() if one.api == api and str(one) not in LISTED]
    assert [str(mutant) for mutant in sample if not _is_caught(mutant)] == []


@pytest.mark.heavy
def test_the_listed_mutants_are_not_caught() -> None:
    """A mutant that the kit catches leaves `ESCAPED` and `TOLERATED` in declared.py."""
    assert [name for name in LISTED if not _report(NAMES[name]).good] == []


def _is_caught(mutant: Mutant) -> bool:
    """Whether the kit accuses a mutant. Most are accused in one of the first portions of cases."""
    played = _cases(mutant.api, mutant.level)
    portions = (played[at : at + _PORTION] for at in range(0, len(played), _PORTION))
    return any(
        not examine(mutant.make, portion, mutant.policy, level=mutant.level).good
        for portion in portions
    )


def _report(mutant: Mutant) -> Report:
    found = _cases(mutant.api, mutant.level)
    return examine(mutant.make, found, mutant.policy, level=mutant.level)


def test_listed_mutants_are_declared_with_a_reason() -> None:
    """Each name in the lists is that of a mutant, in one list, with a sentence."""
    assert NAMES.keys() >= LISTED.keys()
    assert not ESCAPED.keys() & TOLERATED.keys()
    assert all(reason.endswith(".") for reason in LISTED.values())


def test_the_modules_of_exact_mutants_exist() -> None:
    """Every module that is listed has mutants, which the exact test runs."""
    found = {mutant.make.__module__.rpartition(".")[2] for mutant in EXACT}
    assert found == set(EXACT_MODULES)


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
