"""The reference accumulator of the Responses API: how servers identify calls."""

from __future__ import annotations

from typing import Any

import pytest

from examples.accumulators import ResponsesAccumulator
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.probes import Delta
from tests.cases import for_all
from tests.checking.reference.items import (
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
    arguments_delta,
    arguments_done,
    done,
    end,
    event,
    item,
    text_delta,
)
from tests.checking.reference.playing import basic, basic_delta, by_events

CALLS: dict[str, tuple[list[Any], list[Call]]] = {
    "plain": ([added(item(A1)), *DELTAS, arguments_done(PARIS), done(item(A1, PARIS))], [A1]),
    "resp-args-done-only": ([added(item(A1)), arguments_done(PARIS), done(item(A1, PARIS))], [A1]),
    "resp-args-done-only, of the item": ([added(item(A1)), done(item(A1, PARIS))], [A1]),
    "resp-args-done-only, an empty one first": (
        [added(item(A1)), arguments_done(""), done(item(A1, PARIS))],
        [A1],
    ),
    "resp-zero-arg": ([added(item(Z0)), done(item(Z0))], [Z0]),
    "resp-zero-arg, empty": (
        [added(item(Z0)), arguments_delta(""), arguments_done(""), done(item(Z0))],
        [Z0],
    ),
    "resp-zero-arg, no done": ([added(item(Z0))], [Z0]),
    "resp-args-in-added": ([added(item(A1, PARIS)), done(item(A1, PARIS))], [A1]),
    "resp-args-in-added, and in deltas": (
        [
            added(item(A1, PARIS)),
            arguments_delta(PARIS),
            arguments_done(PARIS),
            done(item(A1, PARIS)),
        ],
        [A1],
    ),
    "resp-args-in-added, alone": ([added(item(A1, PARIS)), done(item(A1))], [A1]),
    "resp-item-id-rotates": (
        [
            added(item(A1, id="fc_1")),
            arguments_delta(CITY[0], id="fc_2"),
            arguments_delta(CITY[1], id="fc_3"),
            arguments_done(PARIS, id="fc_4"),
            done(item(A1, PARIS, id="fc_5")),
        ],
        [A1],
    ),
    "resp-item-id-null": (
        [
            added(item(A1, id=None)),
            *(arguments_delta(each, id=None) for each in CITY),
            arguments_done(PARIS, id=None),
            done(item(A1, PARIS, id=None)),
        ],
        [A1],
    ),
    "resp-output-index, shared": (
        [
            added(item(A1)),
            added(item(B2, id="fc_B")),
            arguments_delta(PARIS),
            arguments_delta(CET, id="fc_B"),
            arguments_done(PARIS),
            arguments_done(CET, id="fc_B"),
            done(item(A1, PARIS)),
            done(item(B2, CET, id="fc_B")),
        ],
        [A1, B2],
    ),
    "resp-output-index, reversed": (
        [
            added(item(B2), 1),
            arguments_done(CET, 1),
            done(item(B2, CET), 1),
            added(item(A1), 0),
            arguments_done(PARIS, 0),
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
            arguments_delta(CITY[0]),
            arguments_delta(TZ[0], 1, "fc_B"),
            arguments_delta(CITY[1]),
            arguments_delta(TZ[1], 1, "fc_B"),
            arguments_done(PARIS),
            arguments_done(CET, 1, "fc_B"),
        ],
        [A1, B2],
    ),
    "resp-dup-done": (
        [
            added(item(A1)),
            *DELTAS,
            arguments_done(PARIS),
            arguments_done(PARIS),
            *[done(item(A1, PARIS))] * 2,
        ],
        [A1],
    ),
    "resp-delta-after-done": (
        [added(item(A1)), arguments_done(PARIS), *DELTAS, done(item(A1, PARIS))],
        [A1],
    ),
    "resp-delta-after-done, another value": (
        [added(item(A1)), arguments_delta("{"), arguments_done(PARIS)],
        [A1],
    ),
    "resp-missing-openers": ([*DELTAS, arguments_done(PARIS), done(item(A1, PARIS))], [A1]),
    "resp-required-missing": (
        [
            added({k: v for k, v in item(A1).items() if k != "arguments"}),
            *DELTAS,
            arguments_done(PARIS),
        ],
        [A1],
    ),
    "resp-keepalive": (
        [
            {"type": "keepalive", "sequence_number": 3},
            added(item(A1)),
            event("kit_unknown.event"),
            added({"type": "kit_item", "id": "k"}, 1),
            arguments_done(PARIS),
            done({"type": "kit_item"}, 1),
        ],
        [A1],
    ),
    "deltas alone": ([added(item(A1)), *DELTAS], [A1]),
}


@for_all("name", CALLS)
def test_calls_are_kept_separate(name):
    """However a server identifies its items, calls surface complete, in order, and each once."""
    events, calls = CALLS[name]
    run = by_events("responses", [CREATED, *events, end()])
    assert run.outcome == Outcome(tool_calls=tuple(calls), finish="completed")
    assert sorted(map(repr, run.calls)) == sorted(map(repr, calls))
    assert run.pending == 0


@pytest.mark.parametrize("output", [[], [item(A1, PARIS)], [item(A1, PARIS, id="fc_9")]])
@pytest.mark.parametrize(
    "events", [[added(item(A1)), arguments_done(PARIS)], [done(item(A1, PARIS))]]
)
def test_calls_of_the_final_response_are_not_repeated(events, output):
    """`resp-completed-output-empty`: each call surfaces once, whether the output has it or not."""
    outcome = by_events("responses", [CREATED, *events, end(*output)]).outcome
    assert outcome == Outcome(tool_calls=(A1,), finish="completed")


def test_a_call_surfaces_when_its_arguments_are_done():
    """A call surfaces neither when its deltas parse nor a second time with its item."""
    probe = ResponsesAccumulator()
    for each in (CREATED, added(item(A1)), *DELTAS, added(item(B2), 1)):
        assert basic_delta(probe.feed(each)) is None
    assert (probe.pending(), basic(probe.outcome()).tool_calls) == (2, ())
    assert basic_delta(probe.feed(arguments_done(PARIS))) == Delta(tool_calls=(A1,))
    assert basic_delta(probe.feed(done(item(A1, PARIS)))) is None
    assert (probe.pending(), basic(probe.outcome()).tool_calls) == (1, (A1,))


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter"])
def test_an_incomplete_answer_is_complete_as_a_stream(reason):
    """`resp-incomplete`: the text is kept, and the call that was cut is an error."""
    cut = item(A1, '{"city":"Pa', status="incomplete")
    events = [
        text_delta("Hel"),
        added(item(A1), 1),
        arguments_delta('{"city":"Pa', 1),
        done(cut, 1),
    ]
    last = end(cut, status="incomplete", incomplete_details={"reason": reason})
    outcome = by_events("responses", [*events, last]).outcome
    (trouble,) = outcome.errors
    assert outcome == Outcome("Hel", finish=reason, errors=(trouble,))
    assert (trouble.kind, "get_weather" in trouble.message) == ("malformed_arguments", True)


def test_a_call_without_its_arguments_is_not_a_call_with_none():
    """A call that the limit cut before its arguments is an error, not a call with `{}`."""
    outcome = by_events("responses", [added(item(A1)), end(status="incomplete")]).outcome
    assert (outcome.tool_calls, len(outcome.errors)) == ((), 1)
