"""The reference accumulator of the Responses API: words, usage, errors and the end."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.checking.outcome import Outcome, Usage
from mockllm.checking.probes import Delta
from mockllm.checking.reference import ResponsesAccumulator
from tests.checking.reference_items import (
    A1,
    CREATED,
    DELTAS,
    PARIS,
    added,
    done,
    end,
    event,
    hel,
    item,
    message,
    part,
    text_done,
    whole,
    words,
)
from tests.checking.reference_playing import by_events


def test_the_final_response_may_be_all_there_is():
    """A server that sends nothing else is complete, too."""
    output = [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hmm"}]}]
    outcome = by_events("responses", [end(*output, message("Hi"), item(A1, PARIS), None)]).outcome
    assert outcome == Outcome("Hi", "Hmm", tool_calls=(A1,), finish="completed")


def test_null_for_an_output_is_none():
    """`resp-completed-output-empty`: the text is that of the events."""
    last = event("completed", response={"status": "completed", "output": None})
    assert by_events("responses", [hel("Hello"), last]).outcome == Outcome(
        "Hello", finish="completed"
    )


HELLO: dict[str, list[Any]] = {
    "plain": [
        added(message()),
        event("content_part.added", part={"type": "output_text", "text": ""}),
        hel("Hel"),
        hel("lo"),
        text_done("Hello"),
        event("content_part.done", part={"type": "output_text", "text": "Hello"}),
        done(message("Hello")),
    ],
    "resp-missing-openers": [hel("Hel"), hel("lo")],
    "resp-dup-done": [
        hel("Hel"),
        hel("lo"),
        *[text_done("Hello")] * 2,
        *[done(message("Hello"))] * 2,
    ],
    "resp-delta-after-done": [hel("Hel"), text_done("Hello"), hel("lo")],
    "resp-delta-after-done, another value": [hel("Bye"), text_done("Hello")],
    "done alone": [done(message("Hello"))],
    "an empty done": [hel("Hello"), text_done(""), done(message())],
    "resp-item-id-rotates": [
        added(message(id="a")),
        hel("Hel", id="b"),
        hel("lo", id="c"),
        text_done("Hello", id="d"),
        done(message("Hello", id="e")),
    ],
    "resp-output-index, shared": [
        added(message(id="a")),
        added(message(id="b")),
        hel("lo", id="b"),
        hel("Hel", id="a"),
        done(message("Hel", id="a")),
        done(message("lo", id="b")),
    ],
    "resp-interleaved": [hel("lo", 1, "b"), hel("Hel", 0, "a")],
    "resp-legacy-names": [hel("Hello"), words("text.delta", " there"), event("done")],
}


@pytest.mark.parametrize("name", HELLO)
def test_text_adds_up_in_the_order_of_items(name):
    """Whatever surrounds it, the text is Hello."""
    outcome = by_events("responses", [CREATED, *HELLO[name], end(message("Hello"))]).outcome
    assert outcome == Outcome("Hello", finish="completed")


REASONING: dict[str, list[Any]] = {
    "a summary": [
        words("reasoning_summary_text.delta", "H", 0, "r", summary_index=0),
        words("reasoning_summary_text.delta", "m", 0, "r", summary_index=1),
        words("reasoning_summary_text.done", "mm", 0, "r", summary_index=1),
    ],
    "raw": [words("reasoning_text.delta", "Hmm", 0, "r", content_index=0)],
    "resp-reasoning-ids": [
        added({"type": "reasoning", "id": "r", "summary": []}),
        words("reasoning_summary_text.delta", "Hm", 0, "r2", summary_index=0),
        words("reasoning_summary_text.delta", "m", 0, "r3", summary_index=0),
        hel("Hi", 0, "msg_1"),
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
    """By item and index, whatever the ids are; and apart from text at the same index."""
    outcome = by_events("responses", [*REASONING[name], end()]).outcome
    assert (outcome.reasoning, outcome.errors) == ("Hmm", ())
    assert outcome.text == ("Hi" if "ids" in name else "")


def test_a_refusal_is_no_text():
    """It has a channel of its own."""
    events = [words("refusal.delta", "I can"), words("refusal.done", "I can't.")]
    assert by_events("responses", [*events, end()]).outcome == Outcome(
        refusal="I can't.", finish="completed"
    )


def test_what_a_final_value_adds_is_handed_on():
    """And what it repeats is not."""
    probe = ResponsesAccumulator()
    told = (hel("Hel"), text_done("Hello"), done(message("Hello")))
    assert [probe.feed(each) for each in told] == [Delta("Hel"), Delta("lo"), None]


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
    """`resp-error-shape`: the text stays, calls that wait do not, and of what follows only the
    usage counts."""
    usage = {"input_tokens": 3, "output_tokens": 1}
    failed = event("failed", response={"status": "failed", "error": ERROR, "usage": usage})
    before = [CREATED, hel("Hel"), added(item(A1), 1), part(PARIS, 1)]
    record = by_events("responses", [*before, ERRORS[name], hel("lo"), failed, end()])
    (trouble,) = record.outcome.errors
    assert record.outcome == Outcome("Hel", usage=Usage(3, 1), errors=(trouble,))
    assert (trouble.kind, trouble.message) == ("stream_error", "boom (server_error)")
    assert record.pending == 0


@pytest.mark.parametrize("length", range(5))
def test_no_terminal_event_is_no_end(length):
    """`resp-no-terminal`: what there is is told as cut; calls that were done are whole."""
    events = [CREATED, added(item(A1)), *DELTAS, whole(PARIS)]
    outcome = by_events("responses", [*events[: length + 1], event("done")]).outcome
    assert [trouble.kind for trouble in outcome.errors] == ["truncated"]
    assert outcome.tool_calls == ((A1,) if length == 4 else ())


def test_nothing_counts_behind_the_end():
    """`resp-after-completed`: it is passed over."""
    usage = {
        "input_tokens": 12,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 2},
    }
    last = [end(usage=usage), hel("!"), done(item(A1, PARIS)), {"type": "error"}]
    outcome = by_events("responses", [hel("Hello"), *last]).outcome
    assert outcome == Outcome("Hello", finish="completed", usage=Usage(12, 7, 2, 3))


@pytest.mark.parametrize(
    "value", [None, "x", [], {"type": 1}, event("output_item.done"), event("output_text.delta")]
)
def test_what_is_no_event_says_nothing(value):
    """No value breaks the accumulator."""
    assert by_events("responses", [value, hel("Hi"), value, end()]).outcome == Outcome(
        "Hi", finish="completed"
    )
