"""`tools.kit_mutants`: which mistakes of accumulators the kit finds."""

from __future__ import annotations

import pytest

from examples.accumulators import REFERENCES, ChatAccumulator
from mockllm.checking import Policy
from mockllm.checking.cases.build import case
from mockllm.play.quirks.samples import CALL, TWO_CALLS
from mockllm.scenario.model import Api
from tests.checking.mutants import FAMILIES, MUTANTS, Mutant
from tests.checking.mutants.chat_arguments import FirstObjectOnly
from tests.checking.mutants.chat_calls import AppendsToLastCall
from tools.kit_mutants import Result, accused_references, result_of, table


def _mutant(make: type[ChatAccumulator]) -> Mutant:
    return next(mutant for mutant in MUTANTS if mutant.make is make)


def test_a_mutant_is_caught_where_a_case_shows_its_mistake() -> None:
    """A mutant that appends to the last call is caught where the fragments of calls alternate."""
    found = case(TWO_CALLS, "chat", quirk="chat-calls-interleaved")
    result = result_of(_mutant(AppendsToLastCall), [found])
    assert result.verdict == "caught"
    assert result.reported == {"arguments-concatenate"}
    assert result.rightly_named


def test_a_mutant_escapes_where_no_case_shows_its_mistake() -> None:
    """With a single call in the answer, there is no wrong call to append to."""
    result = result_of(_mutant(AppendsToLastCall), [case(CALL, "chat")])
    assert (result.verdict, result.detail) == (
        "escaped",
        "Its final outcome is right in every case.",
    )


def test_a_mutant_is_tolerated_where_the_kit_accepts_several_outcomes() -> None:
    """A client that ignores repeated arguments is accepted, and so is an error."""
    found = case(CALL, "chat", quirk="chat-args-repeated-at-end")
    assert result_of(_mutant(FirstObjectOnly), [found]).verdict == "tolerated"


@pytest.mark.parametrize("api", REFERENCES)
def test_the_correct_accumulator_is_not_accused(api: Api) -> None:
    """The correct accumulators pass what the mutants are judged by."""
    found = [case(CALL, api), case(TWO_CALLS, api)]
    assert list(accused_references(api, "payloads", found)) == []
    assert list(accused_references(api, "bytes", found)) == []


def test_the_table_counts_by_family_and_api() -> None:
    """Each cell has the numbers caught, tolerated and escaped."""
    chat = Mutant(ChatAccumulator, frozenset(), "chat", "payloads", Policy(), "usage")
    gemini = Mutant(ChatAccumulator, frozenset(), "gemini", "payloads", Policy(), "usage")
    results = [
        Result(chat, "caught", frozenset(), ""),
        Result(chat, "escaped", frozenset(), ""),
        Result(gemini, "tolerated", frozenset(), ""),
    ]
    head, _, row, *_ = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table(results).splitlines()
    )
    found = {name: cell for name, cell in zip(head, row, strict=True) if cell}
    assert found == {
        "family": "usage",
        "chat": "1 / 0 / 1",
        "gemini": "0 / 1 / 0",
        "all": "1 / 1 / 1",
    }


def test_every_mutant_has_a_family() -> None:
    """The families of all mutants are described."""
    assert {mutant.family for mutant in MUTANTS} <= FAMILIES.keys()
