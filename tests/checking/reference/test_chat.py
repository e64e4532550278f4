"""The reference accumulator of Chat Completions: text, usage, errors and the end."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.checking.outcome import Outcome, Usage
from mockllm.checking.probes import Delta
from tests.cases import for_all
from tests.checking.reference.chunks import PARIS, STOP, TOOLS, a1, called, chunk
from tests.checking.reference.playing import by_events

HELLO: dict[str, list[Any]] = {
    "plain": [chunk({"content": "Hel"}), chunk({"content": "lo"}), STOP],
    "chat-finish-with-last-delta": [chunk({"content": "Hel"}), chunk({"content": "lo"}, "stop")],
    "chat-finish-key-absent": [
        {"choices": [{"index": 0, "delta": {"content": "Hel"}}]},
        chunk({"content": "lo"}, ""),
        STOP,
    ],
    "chat-finish-twice": [chunk({"content": "Hello"}), STOP, chunk({}, "length")],
    "chat-delta-after-finish": [chunk({"content": "Hel"}), STOP, chunk({"content": "lo"})],
    "chat-role-every-chunk": [
        chunk({"role": "assistant", "content": "Hel"}),
        chunk({"role": "assistant", "content": "lo"}),
        STOP,
    ],
    "chat-role-null-empty-never": [
        chunk({"role": None, "content": "Hel"}),
        chunk({"role": "", "content": "lo"}),
        STOP,
    ],
    "chat-tool-calls-null": [
        chunk({"content": "Hel", "tool_calls": None}),
        chunk({"content": "lo", "tool_calls": []}),
        STOP,
    ],
    "chat-delta-null": [
        chunk({"content": "Hello"}),
        {"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]},
    ],
    "chat-delta-null, absent": [
        chunk({"content": "Hello"}),
        {"choices": [{"index": 0, "finish_reason": "stop"}]},
    ],
    "chat-first-choices-empty": [
        {"choices": [], "id": "", "object": "", "prompt_filter_results": [{}]},
        chunk({"content": "Hello"}),
        STOP,
    ],
    "chat-object-empty": [
        chunk({"content": "Hello"}),
        {"choices": [{"content_filter_offsets": {}, "index": 0}], "object": "", "id": ""},
        STOP,
    ],
    "chat-content-parts": [
        chunk({"content": [{"type": "text", "text": "Hel"}]}),
        chunk({"content": [{"type": "text", "text": "lo"}]}),
        STOP,
    ],
    "chat-chunk-id-changes": [
        chunk({"content": "Hel"}, id="c1"),
        chunk({"content": "lo"}, id="c2"),
        {**STOP, "id": "c3"},
    ],
    "chat-n-choices": [
        {"choices": [{"index": 1, "delta": {"content": "Bye"}}]},
        chunk({"content": "Hello"}),
        {"choices": [{"index": 1, "delta": {}, "finish_reason": "length"}]},
        STOP,
    ],
}


@for_all("name", HELLO)
def test_text_adds_up(name):
    """The text is Hello and the finish reason `stop`, whatever surrounds them."""
    run = by_events("chat", HELLO[name])
    assert run.outcome == Outcome("Hello", finish="stop")
    assert run.text == "Hello"


@pytest.mark.parametrize("reason", ["end_turn", "eos", "guardrail_intervened"])
def test_an_undocumented_finish_reason_ends_the_answer(reason):
    """`chat-finish-foreign-value`: the value is kept verbatim."""
    assert by_events("chat", [chunk({"content": "Hi"}, reason)]).outcome == Outcome(
        "Hi", finish=reason
    )


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "Hmm"},
        {"reasoning": "Hmm"},
        {"reasoning": "Hmm", "reasoning_details": [{"type": "reasoning.text", "text": "Hmm"}]},
        {"reasoning": "Hmm", "reasoning_content": "Hmm"},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "Hmm"}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hmm"}]}]},
    ],
)
def test_reasoning_is_read_once_from_any_field(delta):
    """`chat-reasoning-fields`: two fields with the same text are read once."""
    run = by_events("chat", [chunk(delta), STOP])
    assert run.outcome == Outcome(reasoning="Hmm", finish="stop")
    assert run.deltas == [Delta(reasoning="Hmm")]


FULL = {
    "prompt_tokens": 12,
    "completion_tokens": 7,
    "prompt_tokens_details": {"cached_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
FIRST = {"prompt_tokens": 12, "completion_tokens": 1}
USAGE: dict[str, list[Any]] = {
    "usage-empty-choices": [STOP, {"choices": [], "usage": FULL}],
    "usage-no-choices": [STOP, {"usage": FULL}],
    "usage-no-choices, null": [STOP, {"choices": None, "usage": FULL}],
    "usage-in-finish-chunk": [chunk({}, "stop", usage=FULL)],
    "usage-cumulative": [chunk({}, usage=FIRST), chunk({}, "stop", usage=FULL)],
    "usage-wiped-by-trailing-chunk": [
        STOP,
        {"choices": [], "usage": FULL},
        {"choices": []},
        {"choices": [], "usage": None},
    ],
    "chat-finish-twice": [STOP, chunk({}, "stop", usage=FULL)],
    "Groq": [chunk({}, "stop", x_groq={"usage": FULL})],
}


@pytest.mark.parametrize("name", USAGE)
def test_the_last_usage_counts(name):
    """Wherever the usage is sent, and whatever chunk follows it, the outcome has it."""
    outcome = by_events("chat", USAGE[name]).outcome
    assert outcome == Outcome(finish="stop", usage=Usage(12, 7, 2, 3))


ERRORS = {
    "err-in-stream": {"error": {"message": "boom", "code": 502}},
    "err-in-stream, words": {"error": "boom (502)"},
    "err-with-choices": chunk({"content": ""}, "error", error={"message": "boom", "code": 502}),
    "err-event-line": ({"error": {"message": "boom", "code": 502}}, "error"),
    "err-event-line, bare": ({"message": "boom", "code": 502}, "error"),
    "err-object-error": {"object": "error", "message": "boom", "code": 502},
    "two deep": {"error": {"error": {"message": "boom", "code": 502}}},
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_ends_the_answer(name):
    """The text so far is kept, open calls are dropped, and later chunks are ignored."""
    before = [chunk({"content": "Hel"}), called(a1(PARIS))]
    run = by_events("chat", [*before, ERRORS[name], chunk({"content": "lo"}), TOOLS])
    (trouble,) = run.outcome.errors
    assert run.outcome == Outcome("Hel", errors=(trouble,))
    assert (trouble.kind, trouble.message) == ("stream_error", "boom (502)")
    assert run.pending == 0


def test_a_missing_finish_reason_is_truncated():
    """`chat-finish-never`: the rest is reported as truncated, and no call surfaces."""
    outcome = by_events("chat", [chunk({"content": "Hel"}), called(a1(PARIS))]).outcome
    assert [trouble.kind for trouble in outcome.errors] == ["truncated"]
    assert (outcome.text, outcome.tool_calls, outcome.finish) == ("Hel", (), None)


@pytest.mark.parametrize("value", [None, "x", 1, [], {"choices": "x"}, {"choices": [None, 1]}])
def test_a_malformed_chunk_is_ignored(value):
    """No value raises, and the answer around it is read."""
    assert by_events("chat", [value, chunk({"content": "Hi"}, "stop")]).outcome.text == "Hi"
