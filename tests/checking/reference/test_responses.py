"""The reference accumulator of the Responses API: text, usage, errors and the end."""

from __future__ import annotations

from typing import Any

import pytest

from examples.accumulators import ResponsesAccumulator
from mockllm.checking.outcome import Outcome, Usage
from mockllm.checking.probes import Delta
from tests.cases import for_all
from tests.checking.reference.items import (
    A1,
    CREATED,
    DELTAS,
    PARIS,
    added,
    arguments_delta,
    arguments_done,
    done,
    end,
    event,
    item,
    message,
    text_delta,
    text_done,
    text_event,
)
from tests.checking.reference.playing import by_events


def test_the_final_response_alone_is_enough():
    """A stream of the terminal event alone is a complete answer."""
    output = [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hmm"}]}]
    outcome = by_events("responses", [end(*output, message("Hi"), item(A1, PARIS), None)]).outcome
    assert outcome == Outcome("Hi", "Hmm", tool_calls=(A1,), finish="completed")


def test_a_null_output_keeps_the_text_of_the_events():
    """`resp-completed-output-empty`: the text is that of the events."""
    last = event("completed", response={"status": "completed", "output": None})
    assert by_events("responses", [text_delta("Hello"), last]).outcome == Outcome(
        "Hello", finish="completed"
    )


HELLO: dict[str, list[Any]] = {
    "plain": [
        added(message()),
        event("content_part.added", part={"type": "output_text", "text": ""}),
        text_delta("Hel"),
        text_delta("lo"),
        text_done("Hello"),
        event("content_part.done", part={"type": "output_text", "text": "Hello"}),
        done(message("Hello")),
    ],
    "resp-missing-openers": [text_delta("Hel"), text_delta("lo")],
    "resp-dup-done": [
        text_delta("Hel"),
        text_delta("lo"),
        *[text_done("Hello")] * 2,
        *[done(message("Hello"))] * 2,
    ],
    "resp-delta-after-done": [text_delta("Hel"), text_done("Hello"), text_delta("lo")],
    "resp-delta-after-done, another value": [text_delta("Bye"), text_done("Hello")],
    "done alone": [done(message("Hello"))],
    "an empty done": [text_delta("Hello"), text_done(""), done(message())],
    "resp-item-id-rotates": [
        added(message(id="a")),
        text_delta("Hel", id="b"),
        text_delta("lo", id="c"),
        text_done("Hello", id="d"),
        done(message("Hello", id="e")),
    ],
    "resp-output-index, shared": [
        added(message(id="a")),
        added(message(id="b")),
        text_delta("lo", id="b"),
        text_delta("Hel", id="a"),
        done(message("Hel", id="a")),
        done(message("lo", id="b")),
    ],
    "resp-interleaved": [text_delta("lo", 1, "b"), text_delta("Hel", 0, "a")],
    "resp-legacy-names": [text_delta("Hello"), text_event("text.delta", " there"), event("done")],
}


@for_all("name", HELLO)
def test_text_adds_up_in_the_order_of_items(name):
    """Text is joined in the order of items, whatever events surround it."""
    outcome = by_events("responses", [CREATED, *HELLO[name], end(message("Hello"))]).outcome
    assert outcome == Outcome("Hello", finish="completed")


REASONING: dict[str, list[Any]] = {
    "a summary": [
        text_event("reasoning_summary_text.delta", "H", 0, "r", summary_index=0),
        text_event("reasoning_summary_text.delta", "m", 0, "r", summary_index=1),
        text_event("reasoning_summary_text.done", "mm", 0, "r", summary_index=1),
    ],
    "raw": [text_event("reasoning_text.delta", "Hmm", 0, "r", content_index=0)],
    "resp-reasoning-ids": [
        added({"type": "reasoning", "id": "r", "summary": []}),
        text_event("reasoning_summary_text.delta", "Hm", 0, "r2", summary_index=0),
        text_event("reasoning_summary_text.delta", "m", 0, "r3", summary_index=0),
        text_delta("Hi", 0, "msg_1"),
    ],
    "a part's done": [
        event(
            "reasoning_summary_part.done",
            summary_index=0,
            output_index=0,
            part={"type": "summary_text", "text": "Hmm"},
        ),
        event("content_part.done", part={"type": "kit_part", "text": "no"}),
    ],
}


@pytest.mark.parametrize("name", REASONING)
def test_reasoning_adds_up(name):
    """Reasoning is joined by item and index, whatever the ids, and not mixed with text."""
    outcome = by_events("responses", [*REASONING[name], end()]).outcome
    assert (outcome.reasoning, outcome.errors) == ("Hmm", ())
    assert outcome.text == ("Hi" if "ids" in name else "")


def test_a_refusal_is_not_text():
    """A refusal is in `refusal`, and the text is empty."""
    events = [text_event("refusal.delta", "I can"), text_event("refusal.done", "I can't.")]
    assert by_events("responses", [*events, end()]).outcome == Outcome(
        refusal="I can't.", finish="completed"
    )


def test_a_final_value_adds_only_the_rest():
    """The delta of a final value is what its deltas lacked, and None if it repeats them."""
    probe = ResponsesAccumulator()
    events = (text_delta("Hel"), text_done("Hello"), done(message("Hello")))
    assert [probe.feed(each) for each in events] == [Delta("Hel"), Delta("lo"), None]


ERROR = {"code": "server_error", "message": "boom"}
ERRORS = {
    "nested": {"type": "error", "sequence_number": 2, "error": {"type": "x", **ERROR}},
    "flat": {"type": "error", "sequence_number": 2, **ERROR},
    "failed": event("failed", response={"status": "failed", "error": ERROR}),
    "in the response alone": event("completed", response={"error": ERROR}),
    "bare": {"error": ERROR},
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_ends_the_answer(name):
    """`resp-error-shape`: the text is kept, open calls are dropped, and later events add only
    their usage."""
    usage = {"input_tokens": 3, "output_tokens": 1}
    failed = event("failed", response={"status": "failed", "error": ERROR, "usage": usage})
    before = [CREATED, text_delta("Hel"), added(item(A1), 1), arguments_delta(PARIS, 1)]
    run = by_events("responses", [*before, ERRORS[name], text_delta("lo"), failed, end()])
    (trouble,) = run.outcome.errors
    assert run.outcome == Outcome("Hel", usage=Usage(3, 1), errors=(trouble,))
    assert (trouble.kind, trouble.message) == ("stream_error", "boom (server_error)")
    assert run.pending == 0


@pytest.mark.parametrize("length", range(5))
def test_a_missing_terminal_event_is_truncated(length):
    """`resp-no-terminal`: the rest is reported as truncated; calls that were done are kept."""
    events = [CREATED, added(item(A1)), *DELTAS, arguments_done(PARIS)]
    outcome = by_events("responses", [*events[: length + 1], event("done")]).outcome
    assert [trouble.kind for trouble in outcome.errors] == ["truncated"]
    assert outcome.tool_calls == ((A1,) if length == 4 else ())


def test_events_after_the_end_are_ignored():
    """`resp-after-completed`: text, items and errors after the end change nothing."""
    usage = {
        "input_tokens": 12,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 2},
    }
    last = [end(usage=usage), text_delta("!"), done(item(A1, PARIS)), {"type": "error"}]
    outcome = by_events("responses", [text_delta("Hello"), *last]).outcome
    assert outcome == Outcome("Hello", finish="completed", usage=Usage(12, 7, 2, 3))


@pytest.mark.parametrize(
    "value", [None, "x", [], {"type": 1}, event("output_item.done"), event("output_text.delta")]
)
def test_a_malformed_event_is_ignored(value):
    """No value raises, and the answer around it is read."""
    assert by_events("responses", [value, text_delta("Hi"), value, end()]).outcome == Outcome(
        "Hi", finish="completed"
    )
