"""The reference accumulator of Chat Completions: words, usage, errors and the end."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.checking.outcome import Outcome, Usage
from mockllm.checking.probes import Delta
from tests.checking.reference_chunks import PARIS, STOP, TOOLS, a1, called, said
from tests.checking.reference_playing import by_events

HELLO: dict[str, list[Any]] = {
    "plain": [said({"content": "Hel"}), said({"content": "lo"}), STOP],
    "chat-finish-with-last-delta": [said({"content": "Hel"}), said({"content": "lo"}, "stop")],
    "chat-finish-key-absent": [
        {"choices": [{"index": 0, "delta": {"content": "Hel"}}]},
        said({"content": "lo"}, ""),
        STOP,
    ],
    "chat-finish-twice": [said({"content": "Hello"}), STOP, said({}, "length")],
    "chat-delta-after-finish": [said({"content": "Hel"}), STOP, said({"content": "lo"})],
    "chat-role-every-chunk": [
        said({"role": "assistant", "content": "Hel"}),
        said({"role": "assistant", "content": "lo"}),
        STOP,
    ],
    "chat-role-null-empty-never": [
        said({"role": None, "content": "Hel"}),
        said({"role": "", "content": "lo"}),
        STOP,
    ],
    "chat-tool-calls-null": [
        said({"content": "Hel", "tool_calls": None}),
        said({"content": "lo", "tool_calls": []}),
        STOP,
    ],
    "chat-delta-null": [
        said({"content": "Hello"}),
        {"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]},
    ],
    "chat-delta-null, absent": [
        said({"content": "Hello"}),
        {"choices": [{"index": 0, "finish_reason": "stop"}]},
    ],
    "chat-first-choices-empty": [
        {"choices": [], "id": "", "object": "", "prompt_filter_results": [{}]},
        said({"content": "Hello"}),
        STOP,
    ],
    "chat-object-empty": [
        said({"content": "Hello"}),
        {"choices": [{"content_filter_offsets": {}, "index": 0}], "object": "", "id": ""},
        STOP,
    ],
    "chat-content-parts": [
        said({"content": [{"type": "text", "text": "Hel"}]}),
        said({"content": [{"type": "text", "text": "lo"}]}),
        STOP,
    ],
    "chat-chunk-id-changes": [
        said({"content": "Hel"}, id="c1"),
        said({"content": "lo"}, id="c2"),
        {**STOP, "id": "c3"},
    ],
    "chat-n-choices": [
        {"choices": [{"index": 1, "delta": {"content": "Bye"}}]},
        said({"content": "Hello"}),
        {"choices": [{"index": 1, "delta": {}, "finish_reason": "length"}]},
        STOP,
    ],
}


@pytest.mark.parametrize("name", HELLO)
def test_text_adds_up(name):
    """Whatever surrounds it, the text is Hello and ends in `stop`."""
    record = by_events("chat", HELLO[name])
    assert record.outcome == Outcome("Hello", finish="stop")
    assert record.text == "Hello"


@pytest.mark.parametrize("word", ["end_turn", "eos", "guardrail_intervened"])
def test_a_foreign_word_ends_the_answer(word):
    """`chat-finish-foreign-value`: it is kept as it is."""
    assert by_events("chat", [said({"content": "Hi"}, word)]).outcome == Outcome("Hi", finish=word)


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
def test_reasoning_is_taken_once_from_wherever_it_is(delta):
    """`chat-reasoning-fields`: two fields that say the same are one reasoning."""
    record = by_events("chat", [said(delta), STOP])
    assert record.outcome == Outcome(reasoning="Hmm", finish="stop")
    assert record.deltas == [Delta(reasoning="Hmm")]


TOLD = {
    "prompt_tokens": 12,
    "completion_tokens": 7,
    "prompt_tokens_details": {"cached_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
LESS = {"prompt_tokens": 12, "completion_tokens": 1}
USAGE: dict[str, list[Any]] = {
    "usage-empty-choices": [STOP, {"choices": [], "usage": TOLD}],
    "usage-no-choices": [STOP, {"usage": TOLD}],
    "usage-no-choices, null": [STOP, {"choices": None, "usage": TOLD}],
    "usage-in-finish-chunk": [said({}, "stop", usage=TOLD)],
    "usage-cumulative": [said({}, usage=LESS), said({}, "stop", usage=TOLD)],
    "usage-wiped-by-trailing-chunk": [
        STOP,
        {"choices": [], "usage": TOLD},
        {"choices": []},
        {"choices": [], "usage": None},
    ],
    "chat-finish-twice": [STOP, said({}, "stop", usage=TOLD)],
    "Groq": [said({}, "stop", x_groq={"usage": TOLD})],
}


@pytest.mark.parametrize("name", USAGE)
def test_usage_is_the_last_one_told(name):
    """Wherever it comes, and whatever comes behind it."""
    outcome = by_events("chat", USAGE[name]).outcome
    assert outcome == Outcome(finish="stop", usage=Usage(12, 7, 2, 3))


ERRORS = {
    "err-in-stream": {"error": {"message": "boom", "code": 502}},
    "err-in-stream, words": {"error": "boom (502)"},
    "err-with-choices": said({"content": ""}, "error", error={"message": "boom", "code": 502}),
    "err-event-line": ({"error": {"message": "boom", "code": 502}}, "error"),
    "err-event-line, bare": ({"message": "boom", "code": 502}, "error"),
    "err-object-error": {"object": "error", "message": "boom", "code": 502},
    "two deep": {"error": {"error": {"message": "boom", "code": 502}}},
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_ends_the_answer(name):
    """The text so far stays; calls are given up, and what follows is not looked at."""
    before = [said({"content": "Hel"}), called(a1(PARIS))]
    record = by_events("chat", [*before, ERRORS[name], said({"content": "lo"}), TOOLS])
    (trouble,) = record.outcome.errors
    assert record.outcome == Outcome("Hel", errors=(trouble,))
    assert (trouble.kind, trouble.message) == ("stream_error", "boom (502)")
    assert record.pending == 0


def test_no_finish_reason_is_no_end():
    """`chat-finish-never`: what there is is told as cut, and no call comes out."""
    outcome = by_events("chat", [said({"content": "Hel"}), called(a1(PARIS))]).outcome
    assert [trouble.kind for trouble in outcome.errors] == ["truncated"]
    assert (outcome.text, outcome.tool_calls, outcome.finish) == ("Hel", (), None)


@pytest.mark.parametrize("value", [None, "x", 1, [], {"choices": "x"}, {"choices": [None, 1]}])
def test_what_is_no_chunk_says_nothing(value):
    """No value breaks the accumulator."""
    assert by_events("chat", [value, said({"content": "Hi"}, "stop")]).outcome.text == "Hi"
