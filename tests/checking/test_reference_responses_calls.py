"""The reference accumulator of the Responses API: how servers identify calls."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.probes import Delta
from mockllm.checking.reference import ResponsesAccumulator
from tests.checking.reference_items import (
    A1,
    B2,
    CET,
    CITY,
    CREATED,
    DELTAS,
    PARIS,
    TZ,
    Z0,
    added,
    done,
    end,
    event,
    hel,
    item,
    part,
    whole,
)
from tests.checking.reference_playing import by_events

CALLS: dict[str, tuple[list[Any], list[Call]]] = {
    "plain": ([added(item(A1)), *DELTAS, whole(PARIS), done(item(A1, PARIS))], [A1]),
    "resp-args-done-only": ([added(item(A1)), whole(PARIS), done(item(A1, PARIS))], [A1]),
    "resp-args-done-only, of the item": ([added(item(A1)), done(item(A1, PARIS))], [A1]),
    "resp-args-done-only, an empty one first": (
        [added(item(A1)), whole(""), done(item(A1, PARIS))],
        [A1],
    ),
    "resp-zero-arg": ([added(item(Z0)), done(item(Z0))], [Z0]),
    "resp-zero-arg, empty": ([added(item(Z0)), part(""), whole(""), done(item(Z0))], [Z0]),
    "resp-zero-arg, no done": ([added(item(Z0))], [Z0]),
    "resp-args-in-added": ([added(item(A1, PARIS)), done(item(A1, PARIS))], [A1]),
    "resp-args-in-added, and in deltas": (
        [added(item(A1, PARIS)), part(PARIS), whole(PARIS), done(item(A1, PARIS))],
        [A1],
    ),
    "resp-args-in-added, alone": ([added(item(A1, PARIS)), done(item(A1))], [A1]),
    "resp-item-id-rotates": (
        [
            added(item(A1, id="fc_1")),
            part(CITY[0], id="fc_2"),
            part(CITY[1], id="fc_3"),
            whole(PARIS, id="fc_4"),
            done(item(A1, PARIS, id="fc_5")),
        ],
        [A1],
    ),
    "resp-item-id-null": (
        [
            added(item(A1, id=None)),
            *(part(each, id=None) for each in CITY),
            whole(PARIS, id=None),
            done(item(A1, PARIS, id=None)),
        ],
        [A1],
    ),
    "resp-output-index, shared": (
        [
            added(item(A1)),
            added(item(B2, id="fc_B")),
            part(PARIS),
            part(CET, id="fc_B"),
            whole(PARIS),
            whole(CET, id="fc_B"),
            done(item(A1, PARIS)),
            done(item(B2, CET, id="fc_B")),
        ],
        [A1, B2],
    ),
    "resp-output-index, reversed": (
        [
            added(item(B2), 1),
            whole(CET, 1),
            done(item(B2, CET), 1),
            added(item(A1), 0),
            whole(PARIS, 0),
            done(item(A1, PARIS), 0),
        ],
        [A1, B2],
    ),
    "resp-output-index, gaps": (
        [
            added(item(A1), 0),
            done(item(A1, PARIS), 0),
            added(item(B2, id="fc_B"), 3),
            done(item(B2, CET, id="fc_B"), 3),
        ],
        [A1, B2],
    ),
    "resp-interleaved": (
        [
            added(item(A1), 0),
            added(item(B2, id="fc_B"), 1),
            part(CITY[0]),
            part(TZ[0], 1, "fc_B"),
            part(CITY[1]),
            part(TZ[1], 1, "fc_B"),
            whole(PARIS),
            whole(CET, 1, "fc_B"),
        ],
        [A1, B2],
    ),
    "resp-dup-done": (
        [added(item(A1)), *DELTAS, whole(PARIS), whole(PARIS), *[done(item(A1, PARIS))] * 2],
        [A1],
    ),
    "resp-delta-after-done": (
        [added(item(A1)), whole(PARIS), *DELTAS, done(item(A1, PARIS))],
        [A1],
    ),
    "resp-delta-after-done, another value": ([added(item(A1)), part("{"), whole(PARIS)], [A1]),
    "resp-missing-openers": ([*DELTAS, whole(PARIS), done(item(A1, PARIS))], [A1]),
    "resp-required-missing": (
        [added({k: v for k, v in item(A1).items() if k != "arguments"}), *DELTAS, whole(PARIS)],
        [A1],
    ),
    "resp-keepalive": (
        [
            {"type": "keepalive", "sequence_number": 3},
            added(item(A1)),
            event("kit_unknown.event"),
            added({"type": "kit_item", "id": "k"}, 1),
            whole(PARIS),
            done({"type": "kit_item"}, 1),
        ],
        [A1],
    ),
    "deltas alone": ([added(item(A1)), *DELTAS], [A1]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_told_apart(name):
    """However a server identifies its items, calls come out whole, in order, and each once."""
    events, calls = CALLS[name]
    record = by_events("responses", [CREATED, *events, end()])
    assert record.outcome == Outcome(tool_calls=tuple(calls), finish="completed")
    assert sorted(map(repr, record.calls)) == sorted(map(repr, calls))
    assert record.pending == 0


@pytest.mark.parametrize("output", [[], [item(A1, PARIS)], [item(A1, PARIS, id="fc_9")]])
@pytest.mark.parametrize("events", [[added(item(A1)), whole(PARIS)], [done(item(A1, PARIS))]])
def test_the_final_response_repeats_calls(events, output):
    """`resp-completed-output-empty`: whether it does or not, each comes out once."""
    outcome = by_events("responses", [CREATED, *events, end(*output)]).outcome
    assert outcome == Outcome(tool_calls=(A1,), finish="completed")


def test_a_call_surfaces_when_its_arguments_are_done():
    """Not when the deltas parse; and not again when its item is done."""
    probe = ResponsesAccumulator()
    for each in (CREATED, added(item(A1)), *DELTAS, added(item(B2), 1)):
        assert probe.feed(each) is None
    assert (probe.pending(), probe.outcome().tool_calls) == (2, ())
    assert probe.feed(whole(PARIS)) == Delta(tool_calls=(A1,))
    assert probe.feed(done(item(A1, PARIS))) is None
    assert (probe.pending(), probe.outcome().tool_calls) == (1, (A1,))


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter"])
def test_an_incomplete_answer_is_complete_as_a_stream(reason):
    """`resp-incomplete`: the text counts, the call that was cut does not."""
    cut = item(A1, '{"city":"Pa', status="incomplete")
    events = [hel("Hel"), added(item(A1), 1), part('{"city":"Pa', 1), done(cut, 1)]
    last = end(cut, status="incomplete", incomplete_details={"reason": reason})
    outcome = by_events("responses", [*events, last]).outcome
    (trouble,) = outcome.errors
    assert outcome == Outcome("Hel", finish=reason, errors=(trouble,))
    assert (trouble.kind, "get_weather" in trouble.message) == ("malformed_arguments", True)


def test_a_call_that_was_cut_before_its_arguments_is_no_call_without_any():
    """The limit struck: nobody knows what they were to be."""
    outcome = by_events("responses", [added(item(A1)), end(status="incomplete")]).outcome
    assert (outcome.tool_calls, len(outcome.errors)) == ((), 1)
