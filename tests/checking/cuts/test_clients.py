"""Each mistake about cut streams is found under its rule, and no correct client is accused."""

from __future__ import annotations

from functools import partial

import pytest

from examples.accumulators import REFERENCES
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking.cuts import CUT_RULES, check_cuts, cut_text, examine_cuts
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

WHOLE_CALLS = {"gemini"}
"""The APIs that send each call as a whole: none can be cut."""


def broken(report):
    return {rule for rule in CUT_RULES if report.shortest(rule) is not None}


@pytest.mark.parametrize("api", APIS)
def test_the_reference_for_payloads_passes(api):
    """No prefix fools the reference accumulator, and every prefix is judged."""
    report = check_cuts(REFERENCES[api], api=api)
    assert not report.not_judged
    assert all(sum(row.judged for row in report.of(rule)) for rule in CUT_RULES)


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
def test_the_reference_for_bytes_passes(api):
    """The same for bytes, at places of all kinds."""
    report = check_cuts(partial(ReferenceBytes, api), api=api, level="bytes")
    assert not report.not_judged
    assert {row.place for row in report.rows} == {
        "before-first-event",
        "between-events",
        "inside-event",
        "inside-character",
        "before-blank-line",
    }


@for_all("api", APIS)
@for_all("mutant", MUTANTS)
def test_a_mistake_breaks_its_rule_and_no_other(mutant, api):
    """The rules that a mistake breaks are exactly those that it is about."""
    expected = MUTANTS[mutant]
    if api in WHOLE_CALLS:
        expected = expected - {"cut-call-not-executed"}
    assert broken(examine_cuts(partial(mutant, api), api=api)) == expected


@for_all("api", APIS)
@for_all("client", CORRECT)
def test_a_correct_client_is_not_accused(client, api):
    """Where good designs differ, none is wrong."""
    assert broken(examine_cuts(partial(client, api), api=api)) == set()


@pytest.mark.parametrize("api", APIS)
def test_a_client_without_calls_is_not_judged_by_them(api):
    """A client that hands on no call of a whole stream does nothing right by handing on none."""
    report = examine_cuts(partial(NoCalls, api), api=api)
    rows = report.of("cut-call-not-executed")
    assert rows
    assert not any(row.judged for row in rows)
    assert "does not hand on the calls of the whole stream" in cut_text(report)


def test_a_client_that_always_fails_is_not_judged():
    """An error for every stream is no report of a cut."""
    report = examine_cuts(partial(AlwaysFails, "chat"), api="chat")
    assert not report.judged
    assert report.played == 47
    with pytest.raises(AssertionError, match="the client fails at the whole stream, too"):
        check_cuts(partial(AlwaysFails, "chat"), api="chat")


# Bytes


def places(report, rule):
    return {row.place for row in report.of(rule) if row.wrong}


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
    assert "UnicodeDecodeError" in report.shortest("cut-reported").description


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
    report = check_cuts(partial(BrokenBytes, api, "discards"), api=api, level="bytes")
    assert report.good


# The shortest prefix


def test_the_shortest_prefix_that_is_executed():
    """Arguments that parse before the end of their call, since a space is to follow."""
    shortest = examine_cuts(partial(WholeByChance, "chat"), api="chat").shortest(
        "cut-call-not-executed"
    )
    assert shortest.cut.whole.scenario.name == "cut-call-spaced"
    assert shortest.cut.events == 2
    assert "Paris" in shortest.cut.last_event
    assert 'order({"city": "Paris"})' in shortest.description


def test_a_repaired_call_is_shown_with_its_arguments():
    """The report shows the last event, and what the client made of it."""
    text = cut_text(examine_cuts(partial(Repaired, "chat"), api="chat"))
    assert "last event:" in text
    assert "a call is handed on whose end was not sent" in text


def test_one_of_twelve():
    """`"count":1` of `"count":12` is the most dangerous repair; it is among what is found."""
    report = examine_cuts(partial(Repaired, "chat"), api="chat")
    found = [row for row in report.of("cut-call-not-executed") if row.wrong]
    assert {row.case.scenario.name for row in found} >= {
        "cut-call",
        "cut-call-spaced",
        "cut-number",
        "cut-placeholder",
    }


def test_the_empty_stream_is_shown_last():
    """A client that reports no cut is shown by a prefix with an event."""
    report = examine_cuts(partial(Silent, "chat"), api="chat")
    assert report.shortest("cut-reported").cut.events > 0
    rows = [row for row in report.of("cut-reported") if row.place == "before-first-event"]
    assert all(row.wrong for row in rows)


def test_a_call_that_was_handed_on_early_counts():
    """A call is executed when it is handed on, whatever the outcome has in the end."""
    report = examine_cuts(partial(Early, "chat"), api="chat")
    assert report.shortest("cut-call-not-executed") is not None
    assert not report.shortest("cut-call-not-executed").answer.outcome.tool_calls


def test_an_empty_call_is_found_at_its_first_event():
    """Empty arguments beside an error are a call that would run."""
    shortest = examine_cuts(partial(Empty, "anthropic"), api="anthropic").shortest(
        "cut-call-not-executed"
    )
    assert "order({})" in shortest.description


def test_the_same_client_gives_the_same_report():
    """Nothing is drawn at random."""
    one, other = (cut_text(examine_cuts(partial(Client, "agui"), api="agui")) for _ in range(2))
    assert one == other
