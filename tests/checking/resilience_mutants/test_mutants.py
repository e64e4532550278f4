"""The client of examples/resilient_client is accused of nothing, and each of its mutants under the
right name. `python -m tests.checking.resilience_mutants` writes the page about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import pytest

from mockllm.checking.resilience.cases import fault_cases
from mockllm.checking.rules import RESILIENCE
from tests.checking.resilience_mutants.declared import MUTANTS, Mutant
from tests.checking.resilience_mutants.loading import changed, spoken_apis
from tests.checking.resilience_mutants.page import PAGE
from tests.checking.resilience_mutants.playing import Client, Found, cases_of, clients

AGAIN = "python -m tests.checking.resilience_mutants"


SAMPLE = tuple(
    next(one for one in MUTANTS if one.rule == rule and one.sampled) for rule in RESILIENCE
)
"""A mutant of each rule; `make test-all` plays all of them."""
APIS = sorted(spoken_apis())[:2]
"""Enough beside the sample, since most of the client is the same for all APIs."""


def _played(
    apis: Iterable[str], mutants: Iterable[Mutant]
) -> tuple[dict[str, Found], dict[Mutant, Found]]:
    """What was found of the client, by API, and of mutants; all are played side by side."""
    with clients() as make:
        correct: dict[str, Client] = {api: make(None) for api in apis}
        wrong: dict[Mutant, Client] = {one: make(one) for one in mutants}
        for mutant, client in wrong.items():
            client.begin(cases_of(mutant))
        for api, client in correct.items():
            client.begin(fault_cases(api))
        for client in (*correct.values(), *wrong.values()):
            client.wait()
        return (
            {api: client.found() for api, client in correct.items()},
            {mutant: client.found() for mutant, client in wrong.items()},
        )


@pytest.mark.parametrize(
    ("apis", "mutants"),
    [
        pytest.param(APIS, SAMPLE, id="sample", marks=pytest.mark.slow),
        pytest.param(spoken_apis(), tuple(MUTANTS), id="all", marks=pytest.mark.heavy),
    ],
)
def test_mutants_break_their_rule_and_the_client_none(
    apis: Sequence[str], mutants: Sequence[Mutant]
) -> None:
    """Every rule is judged, and the client keeps it. A mutant breaks its rule, and no rule that its
    bug has nothing to do with."""
    right, wrong = _played(apis, mutants)
    for api, found in right.items():
        assert found.texts == {}, api
        assert found.right.keys() == RESILIENCE.keys(), api
    for mutant, found in wrong.items():
        assert mutant.rule in found.wrong, (mutant.name, found)
        assert found.wrong.keys() <= {mutant.rule, *mutant.also}, (mutant.name, found.texts)


def test_there_are_mutants_of_every_rule() -> None:
    """Each rule has a mutant that can be sampled, and there are more than forty in all."""
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) > 40
    assert Counter(mutant.rule for mutant in MUTANTS if mutant.sampled).keys() == RESILIENCE.keys()
    assert {rule for mutant in MUTANTS for rule in mutant.also} <= RESILIENCE.keys()


def test_every_mutant_is_a_program() -> None:
    """The texts that a mutant changes are there once, and what it makes of them is Python."""
    correct = changed(None)
    for mutant in MUTANTS:
        texts = changed(mutant)
        assert texts != correct
        for name, text in texts.items():
            if text != correct[name]:
                compile(text, f"{mutant.name}/{name}.py", "exec")


def test_the_page_lists_all_mutants() -> None:
    """docs/maintainers/resilience-mutants.md is about the mutants that there are."""
    text = PAGE.read_text()
    counted = re.search(
        r"^(\d+) mutants: (\d+) are found by the right rule, 0 ", text, re.MULTILINE
    )
    assert counted is not None, AGAIN
    assert int(counted[1]) == int(counted[2]) == len(MUTANTS), AGAIN
    rows = [line.split(" | ")[:2] for line in text.splitlines() if line.startswith("| `")]
    assert sorted(rows) == sorted([f"| `{mutant.rule}`", mutant.bug] for mutant in MUTANTS), AGAIN
