"""Each mistake about cut streams is found under its rule, and no correct client is accused."""

from __future__ import annotations

from functools import partial

import pytest

from examples.accumulators import REFERENCES
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking.rules import CUT_RULES
from mockllm.conformance.cuts import check_cuts, examine_cuts, planned_cuts
from mockllm.conformance.reports.terminal import broken_rule_lines, worst_first
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import CALLING
from tests.cases import for_all
from tests.checking.cuts.clients import (
    CORRECT,
    MUTANTS,
    AlwaysFails,
    BrokenBytes,
    Client,
    Early,
    Empty,
    NoCalls,
    Repaired,
    Silent,
    WholeByChance,
)

APIS = tuple(REFERENCES)

CUT_BEHIND_CALLS = tuple(api for api in CALLING if api != "live")
"""Over Live a turn ends with the message that has its calls."""

WITHOUT_CUT_CALLS = {"gemini", "live", "ollama", *(set(APIS) - set(CALLING))}
"""The APIs that send each call as a whole, or none at all: none can be cut."""


def wrong(results, rule):
    """The lines of the mistakes under a rule, the shortest prefix first."""
    return worst_first(case for case in results.rules.get(rule, ()) if case.failed)


def broken(results):
    return {rule for rule in CUT_RULES if wrong(results, rule)}


def place(case):
    return case.case.partition("@")[2].partition(":")[0]


def sample(case):
    return case.case.partition("@")[0].partition("/")[2]


@pytest.mark.parametrize("api", APIS)
def test_the_reference_for_payloads_passes(api):
    """No prefix fools the reference accumulator, and every prefix is judged."""
    results = check_cuts(REFERENCES[api], api=api)
    assert {case.verdict for case in results.cases} == {"right"}
    calls = set() if api in CUT_BEHIND_CALLS else {"cut-call-not-executed"}
    assert set(results.rules) == set(CUT_RULES) - calls


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
def test_the_reference_for_bytes_passes(api):
    """The same for bytes, at places of all kinds."""
    results = check_cuts(partial(ReferenceBytes, api), api=api, level="bytes")
    assert {case.verdict for case in results.cases} == {"right"}
    places = {"before-first-event", "between-events", "inside-event", "inside-character"}
    if PROTOCOLS[api].usual.name != "eventstream":  # whose frames have no line ends
        places.add("before-blank-line")
    assert set(map(place, results.cases)) == places


@for_all("api", APIS)
@for_all("mutant", MUTANTS)
def test_a_mistake_breaks_its_rule_and_no_other(mutant, api):
    """The rules that a mistake breaks are exactly those that it is about."""
    expected = MUTANTS[mutant]
    if api in WITHOUT_CUT_CALLS:
        expected = expected - {"cut-call-not-executed"}
    assert broken(examine_cuts(partial(mutant, api), api=api)) == expected


@for_all("api", APIS)
@for_all("client", CORRECT)
def test_a_correct_client_is_not_accused(client, api):
    """Where good designs differ, none is wrong."""
    assert broken(examine_cuts(partial(client, api), api=api)) == set()


@pytest.mark.parametrize("api", CUT_BEHIND_CALLS)
def test_a_client_without_calls_is_not_judged_by_them(api):
    """A client that hands on no call of a whole stream does nothing right by handing on none."""
    lines = examine_cuts(partial(NoCalls, api), api=api).rules["cut-call-not-executed"]
    assert {line.verdict for line in lines} == {"not judged"}
    assert all("does not hand on the calls of the whole stream" in line.reason for line in lines)


def test_a_client_that_always_fails_is_not_judged():
    """An error for every stream is no report of a cut."""
    results = examine_cuts(partial(AlwaysFails, "chat"), api="chat")
    assert {case.verdict for case in results.cases} == {"not judged"}
    assert sum(bool(case.rules) for case in planned_cuts("chat", "payloads")) == 47
    with pytest.raises(AssertionError, match="the client fails at the whole stream, too"):
        check_cuts(partial(AlwaysFails, "chat"), api="chat")


# Bytes


def places(results, rule):
    return set(map(place, wrong(results, rule)))


@pytest.mark.slow
@pytest.mark.parametrize("api", ["chat", "gemini", "agui"])
def test_an_unfinished_event_that_counts_as_the_end(api):
    """It shows inside events only, and inside characters."""
    report = examine_cuts(partial(BrokenBytes, api, "ignores"), api=api, level="bytes")
    found = places(report, "cut-reported")
    assert {"inside-event", "inside-character"} <= found
    assert "between-events" not in found


@pytest.mark.slow
@pytest.mark.parametrize("api", ["chat", "gemini"])
def test_an_exception_inside_a_character(api):
    """`UnicodeDecodeError` is no report of a cut; it shows inside characters only."""
    report = examine_cuts(partial(BrokenBytes, api, "strict"), api=api, level="bytes")
    assert places(report, "cut-reported") == {"inside-character"}
    assert "UnicodeDecodeError" in wrong(report, "cut-reported")[0].differences[1]


@pytest.mark.slow
@pytest.mark.parametrize("api", ["chat", "gemini"])
def test_half_a_character_as_text(api):
    """Text that was never sent, such as U+FFFD, is found."""
    report = examine_cuts(partial(BrokenBytes, api, "half"), api=api, level="bytes")
    assert "inside-character" in places(report, "cut-reported")


@pytest.mark.slow
@pytest.mark.parametrize("api", ["chat", "gemini", "agui"])
def test_an_event_without_its_blank_line_may_be_discarded(api):
    """The specification discards it, the reference uses it: both are right."""
    results = check_cuts(partial(BrokenBytes, api, "discards"), api=api, level="bytes")
    assert not any(case.failed for case in results.cases)


# The shortest prefix


def test_the_shortest_prefix_that_is_executed():
    """Arguments that parse before the end of their call, since a space is to follow."""
    results = examine_cuts(partial(WholeByChance, "chat"), api="chat")
    lines = {sample(line): line for line in wrong(results, "cut-call-not-executed")}
    where, mistake, last = lines["cut-call-spaced"].differences
    assert "the shortest ends after 2 events, " in where
    assert 'order({"city": "Paris"})' in mistake
    assert "Paris" in last


def test_a_repaired_call_is_shown_with_its_arguments():
    """The report shows the last event, and what the client made of it."""
    results = examine_cuts(partial(Repaired, "chat"), api="chat")
    text = "\n".join(broken_rule_lines("cut-call-not-executed", results))
    assert "last event:" in text
    assert "a call is handed on whose end was not sent" in text


def test_one_of_twelve():
    """`"count":1` of `"count":12` is the most dangerous repair; it is among what is found."""
    report = examine_cuts(partial(Repaired, "chat"), api="chat")
    assert set(map(sample, wrong(report, "cut-call-not-executed"))) >= {
        "cut-call",
        "cut-call-spaced",
        "cut-number",
        "cut-placeholder",
    }


def test_the_empty_stream_is_shown_last():
    """A client that reports no cut is shown by a prefix with an event."""
    report = examine_cuts(partial(Silent, "chat"), api="chat")
    assert wrong(report, "cut-reported")[0].stream.writes
    empty = [case for case in report.cases if place(case) == "before-first-event"]
    assert all(case.failed and not case.stream.writes for case in empty)


def test_a_call_that_was_handed_on_early_counts():
    """A call is executed when it is handed on, whatever the outcome has in the end."""
    report = examine_cuts(partial(Early, "chat"), api="chat")
    assert wrong(report, "cut-call-not-executed")[0].actual["tool_calls"] == []


def test_an_empty_call_is_found_at_its_first_event():
    """Empty arguments beside an error are a call that would run."""
    results = examine_cuts(partial(Empty, "anthropic"), api="anthropic")
    assert "order({})" in wrong(results, "cut-call-not-executed")[0].differences[1]


def test_the_same_client_gives_the_same_report():
    """Nothing is drawn at random."""
    one, other = (examine_cuts(partial(Client, "agui"), api="agui") for _ in range(2))
    assert one == other
