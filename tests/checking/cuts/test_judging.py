"""What is a report of a cut, and what is a call that was handed on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mockllm.checking import Call, Outcome
from mockllm.checking.cuts.judging import CutAnswer, judge_cut
from mockllm.checking.cuts.prefixes import cut_of, kit_samples_of, prefix_at, prefixes
from mockllm.checking.outcome import Trouble
from mockllm.conformance.cuts import cut_results
from mockllm.conformance.results import Client, Results
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all

CRASH = Trouble("KeyError: 'finish'", crash=True, raised="client.py:3 in close")
(CASE,) = (case for case in kit_samples_of("chat") if case.scenario.name == "cut-call")
CUT = cut_of(prefixes(CASE, "payloads")[-1])


def judged(rule, *, partial=False, handed_on=(), absent=(), **outcome):
    reached = replace(Outcome.of(**outcome), partial=partial)
    answer = CutAnswer(reached, tuple(handed_on), absent=frozenset(absent))
    return judge_cut(rule, CUT, answer)


@pytest.mark.parametrize(
    "outcome",
    [
        {"errors": ["cut"]},
        {"errors": [ValueError("cut")]},
        {"errors": [CRASH, "cut"]},
        {"partial": True},
        {"errors": ["cut"], "finish": "interrupted"},
        {"errors": ["cut"], "text": ""},
    ],
)
def test_reports(outcome):
    """An error of any kind, or the mark of an answer that is not complete."""
    assert judged("cut-reported", **outcome) == ""


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ({}, "no error is reported; the client has finish missing"),
        ({"text": "Hel", "finish": "stop"}, 'the client has text "Hel", finish "stop"'),
        ({"errors": [CRASH]}, "breaks instead of reporting the cut: KeyError: 'finish' (client.py"),
        ({"errors": ["cut"], "finish": "stop"}, 'finish is "stop", although none was sent'),
        ({"errors": ["cut"], "finish": "tool_calls"}, "although none was sent"),
        ({"errors": ["cut"], "text": "\ufffd"}, "which was never sent"),
    ],
)
def test_no_reports(outcome, reason):
    """The sentence says what the client has instead."""
    assert reason in judged("cut-reported", **outcome)


ORDER = Call("order", {"city": "Paris", "count": 12}, "call_A1")


@for_all(
    ("outcome", "wrong"),
    [
        ({}, False),
        ({"errors": ["cut"]}, False),
        # Whole by chance: only the finish reason ends a call of Chat Completions.
        ({"errors": ["cut"], "tool_calls": [ORDER]}, True),
        ({"tool_calls": [ORDER]}, True),
        ({"errors": ["cut"], "tool_calls": [("call_A1", "order", {})]}, True),
        ({"errors": ["cut"], "tool_calls": [("call_A1", "order", {"city": "Pa"})]}, True),
        # Kept as text for the record, beside the error.
        ({"errors": ["cut"], "tool_calls": [("call_A1", "order", '{"city":"Pa')]}, False),
        ({"tool_calls": [("call_A1", "order", '{"city":"Pa')]}, True),
        ({"errors": ["cut"], "handed_on": [ORDER]}, True),
        ({"errors": ["cut"], "handed_on": [ORDER], "tool_calls": [ORDER]}, True),
        ({"partial": True, "tool_calls": [ORDER]}, False),
        ({"absent": ["tool_calls"]}, False),
    ],
)
def test_calls(outcome, wrong):
    """A call may be handed on after its end only."""
    assert bool(judged("cut-call-not-executed", **outcome)) == wrong


def test_values_of_any_type():
    """A client may return anything; nothing raises."""
    strange = Outcome(text=7, tool_calls="call", errors=None, finish=[])
    whole_size = sum(map(len, CASE.chunks))
    whole = prefix_at(CASE, whole_size)
    prefix = prefixes(CASE, "payloads")[-1]
    right = CutAnswer(CASE.expected)
    run = Results(Client("strange"), "chat", "payloads", "", "")
    results = cut_results(run, [(whole, right), (prefix, CutAnswer(strange))])
    assert [case.failed for case in results.cases] == [True, False]
    counts = f"after {cut_of(prefix).events} events, {cut_of(prefix).size} of {whole_size} bytes: "
    assert (
        results.cases[0]
        .differences[0]
        .startswith(f"1 of 1 prefixes fool the client; the shortest ends {counts}")
    )
    assert not cut_results(run, [(whole, CutAnswer(strange))]).cases


def test_a_connection_that_is_closed_is_named():
    """Over HTTP a stream ends at one place in two ways."""
    whole = prefix_at(CASE, sum(map(len, CASE.chunks)), "http")
    closed = next(one for one in prefixes(CASE, "http") if cut_of(one).ending == "close")
    run = Results(Client("silent"), "chat", "http", "", "")
    answers = [(whole, CutAnswer(CASE.expected)), (closed, CutAnswer(Outcome.of(finish="stop")))]
    (first, *_) = [case for case in cut_results(run, answers).cases if case.failed]
    assert "+close:" in first.case
    assert first.differences[0].endswith(", and the connection is closed")


@pytest.mark.parametrize("api", sorted(PROTOCOLS))
def test_what_is_complete_in_content_is_accepted_either_way(api):
    """Whether the end marker is missing, a client may report that or not."""
    for case in kit_samples_of(api):
        body = b"".join(case.chunks)
        # Without its last line ends, too, the last event is there.
        for size in range(len(body.rstrip(b"\r\n")), len(body) + 1):
            prefix = cut_of(prefix_at(case, size))
            assert prefix.content_complete
            for answer in (CutAnswer(Outcome()), CutAnswer(Outcome.of(errors=["cut"]))):
                assert judge_cut("cut-reported", prefix, answer) == ""
