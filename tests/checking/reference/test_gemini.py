"""The reference accumulator of Gemini, on chunks of real servers, written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from examples.accumulators import GeminiAccumulator
from mockllm.checking.outcome import NOT_KEPT, Call, Outcome, Usage
from mockllm.checking.probes import Delta
from tests.checking.reference.playing import basic_delta, by_events

PARIS = {"city": "Paris"}


def chunk(*parts: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **more}


def called(**fields: Any) -> dict[str, Any]:
    return {"functionCall": fields}


def partial_args(path: str, **fields: Any) -> dict[str, Any]:
    part = {"jsonPath": path, **fields}
    return chunk(called(partialArgs=[part], willContinue=True))


STOP = chunk({"text": ""}, finish="STOP")
A = called(name="get_weather", args=PARIS)

CALLS: dict[str, tuple[list[Any], list[tuple[str, Any, str]]]] = {
    "gem-stop-for-tools": ([chunk(A), STOP], [("get_weather", PARIS, "call_0")]),
    "one chunk": ([chunk(A, finish="STOP")], [("get_weather", PARIS, "call_0")]),
    "gem-args-absent": (
        [chunk(called(name="list_issues"), finish="STOP")],
        [("list_issues", {}, "call_0")],
    ),
    "gem-args-absent, null": (
        [chunk(called(name="list_issues", args=None), finish="STOP")],
        [("list_issues", {}, "call_0")],
    ),
    "gem-same-name-no-id": (
        [chunk(A, A, finish="STOP")],
        [("get_weather", PARIS, "call_0"), ("get_weather", PARIS, "call_1")],
    ),
    "with ids": (
        [chunk({"functionCall": {**A["functionCall"], "id": "x"}}), STOP],
        [("get_weather", PARIS, "x")],
    ),
    "gem-partial-args": (
        [
            chunk(called(name="get_weather", willContinue=True)),
            partial_args("$.city", stringValue="Par", willContinue=True),
            partial_args("$.city", stringValue="is"),
            chunk(called(), finish="STOP"),
        ],
        [("get_weather", PARIS, "call_0")],
    ),
    "gem-partial-args, of all kinds": (
        [
            chunk(called(name="f", willContinue=True)),
            partial_args("$.stops[0].city", stringValue="Rome"),
            partial_args("$.stops[1]['city']", nullValue="NULL_VALUE"),
            partial_args('$["a.b"][0][0]', numberValue=2),
            partial_args("$.on", boolValue=False),
            chunk(called(), finish="STOP"),
        ],
        [
            (
                "f",
                {"stops": [{"city": "Rome"}, {"city": None}], "a.b": [[2]], "on": False},
                "call_0",
            )
        ],
    ),
    "gem-partial-args, the last one with a piece": (
        [
            chunk(called(name="get_weather", willContinue=True)),
            chunk(called(partialArgs=[{"jsonPath": "$.city", "stringValue": "Paris"}])),
            chunk(A),
            STOP,
        ],
        [("get_weather", PARIS, "call_0"), ("get_weather", PARIS, "call_1")],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_kept_separate(name):
    """Whole or in fragments, calls surface in order and each once, each with a unique id."""
    chunks, calls = CALLS[name]
    run = by_events("gemini", chunks)
    right = tuple(Call(*call) for call in calls)
    assert run.outcome == Outcome(tool_calls=right, finish="STOP")
    assert run.calls == list(right)
    assert run.pending == 0


def test_a_missing_id_is_never_an_error():
    """Gemini sends calls without ids, so the policy does not apply."""
    outcome = by_events("gemini", [chunk(A), STOP], missing_id="error").outcome
    assert (len(outcome.tool_calls), outcome.errors) == (1, ())


MALFORMED = {
    "gem-args-string": [chunk(called(name="get_weather", args='{"city":"Paris"}'))],
    "a list": [chunk(called(name="get_weather", args=["Paris"]))],
    "no path": [
        chunk(called(name="get_weather", willContinue=True)),
        partial_args("city", stringValue="Paris"),
        chunk(called()),
    ],
    "a path through a value": [
        chunk(called(name="get_weather", willContinue=True)),
        partial_args("$.city", stringValue="Paris"),
        partial_args("$.city.name", stringValue="Paris"),
        chunk(called()),
    ],
}


@pytest.mark.parametrize("name", MALFORMED)
def test_arguments_that_are_no_object_are_an_error(name):
    """The call is dropped, and the next one is kept."""
    outcome = by_events(
        "gemini", [*MALFORMED[name], chunk(called(name="list_issues")), STOP]
    ).outcome
    assert [call.name for call in outcome.tool_calls] == ["list_issues"]
    assert [(e.kind, e.tool) for e in outcome.errors] == [("malformed_arguments", 0)]
    assert "get_weather" in outcome.errors[0].message


def test_a_fragmented_call_surfaces_at_its_last_fragment():
    """A call in fragments surfaces without `willContinue`; an end before that is an error."""
    chunks = [
        chunk(called(name="get_weather", willContinue=True)),
        partial_args("$.city", stringValue="Paris"),
    ]
    probe = GeminiAccumulator()
    assert [basic_delta(probe.feed(chunk)) for chunk in chunks] == [None, None]
    assert probe.pending() == 1
    surfaced = Delta(tool_calls=(Call("get_weather", PARIS, "call_0"),))
    assert basic_delta(probe.feed(chunk(called()))) == surfaced
    outcome = by_events("gemini", [*chunks, chunk(finish="MAX_TOKENS")]).outcome
    assert outcome.tool_calls == ()
    assert [trouble.kind for trouble in outcome.errors] == ["malformed_arguments"]


def test_thoughts_are_reasoning():
    """Parts with `thought` are reasoning, other parts are text, and empty text is no delta."""
    chunks = [chunk({"text": "Hmm", "thought": True}), chunk({"text": "Hi"}), STOP]
    run = by_events("gemini", chunks)
    assert run.outcome == Outcome("Hi", "Hmm", finish="STOP")
    assert run.deltas == [Delta(reasoning="Hmm"), Delta("Hi")]


@pytest.mark.parametrize(
    ("chunk", "finish"),
    [
        (
            {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]},
            "MAX_TOKENS",
        ),
        ({"candidates": [{"finishReason": "SAFETY", "index": 0}]}, "SAFETY"),
        ({"candidates": [{"content": None, "finishReason": "STOP"}]}, "STOP"),
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "PROHIBITED_CONTENT"),
    ],
)
def test_an_answer_may_be_a_finish_reason_alone(chunk, finish):
    """`gem-empty-candidate`: the answer is complete and empty."""
    assert by_events("gemini", [chunk]).outcome == Outcome(finish=finish)


@pytest.mark.parametrize("chunks", [[chunk({"text": "Hel"})], [chunk(A)], [{"candidates": []}]])
def test_a_missing_finish_reason_is_truncated(chunks):
    """`gem-no-finish`: the rest is reported as truncated."""
    outcome = by_events("gemini", chunks).outcome
    assert [trouble.kind for trouble in outcome.errors] == ["truncated"]
    assert outcome.finish is None


@pytest.mark.parametrize("wrap", [lambda error: error, lambda error: [error]])
def test_an_error_ends_the_answer(wrap):
    """An error ends the answer, as a chunk or in an array."""
    error = {"error": {"code": 503, "message": "boom", "status": "UNAVAILABLE"}}
    before = [chunk({"text": "Hel"}), chunk(called(name="f", willContinue=True))]
    run = by_events("gemini", [*before, wrap(error), chunk({"text": "lo"}), STOP])
    (trouble,) = run.outcome.errors
    assert run.outcome == Outcome("Hel", errors=(trouble,))
    assert (trouble.kind, trouble.message) == ("stream_error", "boom (503)")
    assert run.pending == 0


def test_the_last_usage_counts():
    """Every chunk has the sum so far; thoughts count as output, and prompts of tools as input."""
    counts = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 2,
        "candidatesTokenCount": 4,
        "thoughtsTokenCount": 3,
        "cachedContentTokenCount": 1,
    }
    first = chunk({"text": "Hi"}, usageMetadata={"promptTokenCount": 10})
    last = chunk(finish="STOP", usageMetadata=counts)
    assert by_events("gemini", [first, last]).outcome.usage == Usage(12, 7, 3, 1)
    assert by_events("gemini", [first, STOP]).outcome.usage == Usage(10, 0, 0, 0)


def test_other_candidates_are_not_the_answer():
    """Candidates with another index are ignored."""
    other = {"candidates": [{"index": 1, "content": {"parts": [{"text": "no"}]}}]}
    assert by_events("gemini", [other, chunk({"text": "Hi"}), STOP]).outcome.text == "Hi"


@pytest.mark.parametrize("value", [None, "x", [], [None], {"candidates": [None, {"content": 1}]}])
def test_a_malformed_chunk_is_ignored(value):
    """No value raises, and the answer around it is read."""
    assert by_events("gemini", [value, chunk({"text": "Hi"}), STOP]).outcome.text == "Hi"


def test_signatures_are_kept_wherever_they_are():
    """Signatures on a thought, a text, an empty text and a call are four opaque values."""
    chunks = [
        chunk({"text": "Hm", "thought": True, "thoughtSignature": "a"}),
        chunk({"text": "Hi", "thoughtSignature": "b"}, {**A, "thoughtSignature": "c"}),
        chunk({"text": "", "thoughtSignature": "d"}, finish="STOP"),
    ]
    full = by_events("gemini", chunks).full
    assert full.opaque == ("a", "b", "c", "d")
    assert (full.reasoning, full.text) == ("Hm", "Hi")


def test_calls_have_no_raw_arguments():
    """The service sends arguments as a value: there is no text to keep."""
    run = by_events("gemini", [chunk(A), STOP])
    (call,) = run.full.tool_calls
    assert (call.raw_arguments, run.tool) == (NOT_KEPT, [])


def test_id_and_model_are_in_every_chunk():
    """The first id and the first model count."""
    named = chunk({"text": "a"}, responseId="r", modelVersion="m")
    full = by_events("gemini", [chunk(A), named, STOP]).full
    assert (full.response_id, full.model, full.role) == ("r", "m", "assistant")


def test_a_malformed_call_may_make_the_answer_fail():
    """With `malformed="fail"` nothing after the call counts, also in its own chunk."""
    malformed = called(name="f", args="{")
    run = by_events("gemini", [chunk(malformed, A, {"text": "x"}, finish="STOP")], malformed="fail")
    (trouble,) = run.outcome.errors
    assert run.outcome == Outcome(errors=(trouble,))
    assert (trouble.kind, run.pending) == ("malformed_arguments", 0)
