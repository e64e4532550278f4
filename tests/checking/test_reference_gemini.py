"""The reference accumulator of Gemini, on the chunks of real servers by hand."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.checking.outcome import Call, Outcome, Usage
from mockllm.checking.probes import Delta
from mockllm.checking.reference import GeminiAccumulator
from tests.checking.reference_playing import by_events

PARIS = {"city": "Paris"}


def said(*parts: Any, finish: str | None = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **more}


def called(**fields: Any) -> dict[str, Any]:
    return {"functionCall": fields}


def piece(path: str, **fields: Any) -> dict[str, Any]:
    part = {"jsonPath": path, **fields}
    return said(called(partialArgs=[part], willContinue=True))


STOP = said({"text": ""}, finish="STOP")
A = called(name="get_weather", args=PARIS)

CALLS: dict[str, tuple[list[Any], list[tuple[str, Any, str]]]] = {
    "gem-stop-for-tools": ([said(A), STOP], [("get_weather", PARIS, "call_0")]),
    "one chunk": ([said(A, finish="STOP")], [("get_weather", PARIS, "call_0")]),
    "gem-args-absent": (
        [said(called(name="list_issues"), finish="STOP")],
        [("list_issues", {}, "call_0")],
    ),
    "gem-args-absent, null": (
        [said(called(name="list_issues", args=None), finish="STOP")],
        [("list_issues", {}, "call_0")],
    ),
    "gem-same-name-no-id": (
        [said(A, A, finish="STOP")],
        [("get_weather", PARIS, "call_0"), ("get_weather", PARIS, "call_1")],
    ),
    "with ids": (
        [said({"functionCall": {**A["functionCall"], "id": "x"}}), STOP],
        [("get_weather", PARIS, "x")],
    ),
    "gem-partial-args": (
        [
            said(called(name="get_weather", willContinue=True)),
            piece("$.city", stringValue="Par", willContinue=True),
            piece("$.city", stringValue="is"),
            said(called(), finish="STOP"),
        ],
        [("get_weather", PARIS, "call_0")],
    ),
    "gem-partial-args, of all kinds": (
        [
            said(called(name="f", willContinue=True)),
            piece("$.stops[0].city", stringValue="Rome"),
            piece("$.stops[1]['city']", nullValue="NULL_VALUE"),
            piece('$["a.b"][0][0]', numberValue=2),
            piece("$.on", boolValue=False),
            said(called(), finish="STOP"),
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
            said(called(name="get_weather", willContinue=True)),
            said(called(partialArgs=[{"jsonPath": "$.city", "stringValue": "Paris"}])),
            said(A),
            STOP,
        ],
        [("get_weather", PARIS, "call_0"), ("get_weather", PARIS, "call_1")],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_told_apart(name):
    """Whole or in pieces, calls come out in order and each once, with an id of its own."""
    chunks, calls = CALLS[name]
    record = by_events("gemini", chunks)
    right = tuple(Call(*call) for call in calls)
    assert record.outcome == Outcome(tool_calls=right, finish="STOP")
    assert record.calls == list(right)
    assert record.pending == 0


def test_a_missing_id_is_never_an_error():
    """It is how this API sends calls."""
    outcome = by_events("gemini", [said(A), STOP], missing_id="error").outcome
    assert (len(outcome.tool_calls), outcome.errors) == (1, ())


MALFORMED = {
    "gem-args-string": [said(called(name="get_weather", args='{"city":"Paris"}'))],
    "a list": [said(called(name="get_weather", args=["Paris"]))],
    "no path": [
        said(called(name="get_weather", willContinue=True)),
        piece("city", stringValue="Paris"),
        said(called()),
    ],
    "a path through a value": [
        said(called(name="get_weather", willContinue=True)),
        piece("$.city", stringValue="Paris"),
        piece("$.city.name", stringValue="Paris"),
        said(called()),
    ],
}


@pytest.mark.parametrize("name", MALFORMED)
def test_arguments_that_are_no_object_are_an_error(name):
    """Such a call is left out, and the next is not."""
    outcome = by_events(
        "gemini", [*MALFORMED[name], said(called(name="list_issues")), STOP]
    ).outcome
    assert [call.name for call in outcome.tool_calls] == ["list_issues"]
    assert [(e.kind, e.tool) for e in outcome.errors] == [("malformed_arguments", 0)]
    assert "get_weather" in outcome.errors[0].message


def test_a_call_in_pieces_surfaces_when_it_says_so():
    """And not when its arguments look complete; an end before that cuts it."""
    chunks = [
        said(called(name="get_weather", willContinue=True)),
        piece("$.city", stringValue="Paris"),
    ]
    probe = GeminiAccumulator()
    assert [probe.feed(chunk) for chunk in chunks] == [None, None]
    assert probe.pending() == 1
    assert probe.feed(said(called())) == Delta(tool_calls=(Call("get_weather", PARIS, "call_0"),))
    outcome = by_events("gemini", [*chunks, said(finish="MAX_TOKENS")]).outcome
    assert outcome.tool_calls == ()
    assert [trouble.kind for trouble in outcome.errors] == ["malformed_arguments"]


def test_thoughts_are_reasoning():
    """And what is no thought is text; empty text is nothing."""
    chunks = [said({"text": "Hmm", "thought": True}), said({"text": "Hi"}), STOP]
    record = by_events("gemini", chunks)
    assert record.outcome == Outcome("Hi", "Hmm", finish="STOP")
    assert record.deltas == [Delta(reasoning="Hmm"), Delta("Hi")]


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
def test_an_answer_may_be_nothing_but_a_reason(chunk, finish):
    """`gem-empty-candidate`: it is complete, and empty."""
    assert by_events("gemini", [chunk]).outcome == Outcome(finish=finish)


@pytest.mark.parametrize("chunks", [[said({"text": "Hel"})], [said(A)], [{"candidates": []}]])
def test_no_reason_is_no_end(chunks):
    """`gem-no-finish`: what there is is told as cut."""
    outcome = by_events("gemini", chunks).outcome
    assert [trouble.kind for trouble in outcome.errors] == ["truncated"]
    assert outcome.finish is None


@pytest.mark.parametrize("wrap", [lambda error: error, lambda error: [error]])
def test_an_error_ends_the_answer(wrap):
    """As a chunk, or in an array as where the whole stream is one."""
    error = {"error": {"code": 503, "message": "boom", "status": "UNAVAILABLE"}}
    before = [said({"text": "Hel"}), said(called(name="f", willContinue=True))]
    record = by_events("gemini", [*before, wrap(error), said({"text": "lo"}), STOP])
    (trouble,) = record.outcome.errors
    assert record.outcome == Outcome("Hel", errors=(trouble,))
    assert (trouble.kind, trouble.message) == ("stream_error", "boom (503)")
    assert record.pending == 0


def test_usage_is_the_last_one_told():
    """Every chunk has the sum so far; thoughts count as output, and prompts of tools as input."""
    told = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 2,
        "candidatesTokenCount": 4,
        "thoughtsTokenCount": 3,
        "cachedContentTokenCount": 1,
    }
    first = said({"text": "Hi"}, usageMetadata={"promptTokenCount": 10})
    last = said(finish="STOP", usageMetadata=told)
    assert by_events("gemini", [first, last]).outcome.usage == Usage(12, 7, 3, 1)
    assert by_events("gemini", [first, STOP]).outcome.usage == Usage(10, 0, 0, 0)


def test_other_candidates_are_not_the_answer():
    """One was asked for."""
    other = {"candidates": [{"index": 1, "content": {"parts": [{"text": "no"}]}}]}
    assert by_events("gemini", [other, said({"text": "Hi"}), STOP]).outcome.text == "Hi"


@pytest.mark.parametrize("value", [None, "x", [], [None], {"candidates": [None, {"content": 1}]}])
def test_what_is_no_chunk_says_nothing(value):
    """No value breaks the accumulator."""
    assert by_events("gemini", [value, said({"text": "Hi"}), STOP]).outcome.text == "Hi"
