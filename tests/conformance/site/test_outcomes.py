"""Expected and actual: what differs is marked, what was not judged is named, and a sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.conformance.results import CaseResult
from mockllm.conformance.site.case_views import outcome_rows, text_diff
from mockllm.conformance.site.columns import sentence
from tests.conformance.site.results import WRONG


def states(case: CaseResult) -> dict[str, str]:
    return {row.name: row.state for row in outcome_rows(case.expected, case.actual, case)}


def test_each_call_is_a_row_and_a_field_without_a_place_is_not_judged():
    """A client that has no role is not right about it."""
    assert states(WRONG) == {
        "tool call 1": "differs",
        "tool call 2": "differs",
        "finish reason": "same",
        "role": "unjudged",
    }


def test_a_value_that_is_correct_too_is_no_difference():
    """Only the fields that the differences name are marked."""
    case = replace(
        WRONG,
        differences=('text is "a", not "b"',),
        fields=("text",),
        expected={"text": "b", "finish": "stop"},
        actual={"text": "a", "finish": "end_turn"},
    )
    assert states(case) == {"text": "differs", "finish reason": "accepted"}


def test_what_is_missing_because_of_an_error_is_named_so():
    """The error is the mistake; the lost call follows from it."""
    case = replace(
        WRONG,
        verdict="rejected",
        differences=("reports an error: no index",),
        fields=("errors",),
        expected={"tool_calls": [{"name": "f", "arguments": {}}]},
        actual={"tool_calls": [], "errors": ["no index"]},
    )
    assert states(case) == {"tool call 1": "follows", "errors reported": "differs"}


def test_arguments_as_text_and_parsed_are_the_same():
    """Runners may send either form."""
    expected = {"tool_calls": [{"name": "f", "arguments": {"a": 1}, "id": "1"}]}
    actual = {"tool_calls": [{"name": "f", "arguments": '{"a":1}', "id": "1"}]}
    case = replace(WRONG, expected=expected, actual=actual)
    assert states(case) == {"tool call 1": "same"}


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_difference_holds_both_texts(one: str, other: str):
    """Joined, the runs are the texts."""
    left, right = text_diff(one, other)
    assert "".join(run.text for run in left) == one
    assert "".join(run.text for run in right) == other


def test_long_texts_are_compared_by_their_ends():
    """They would take minutes otherwise; what is the same is folded."""
    one, other = "a b " * 5000 + "x" + " c d" * 5000, "a b " * 5000 + "y" + " c d" * 5000
    left, right = text_diff(one, other)
    assert [run.text for run in left if run.kind == "missing"] == ["x"]
    assert [run.text for run in right if run.kind == "extra"] == ["y"]
    assert "".join(run.text for run in left) == one
    assert any(run.kind == "fold" for run in left)


SENTENCES = [
    (
        WRONG,
        '1 calls, not 2: get_weatherget_time({}) id "call_A1call_B2".',
    ),
    (
        replace(
            WRONG,
            differences=('text is "", not "Hello"',),
            expected={"text": "Hello"},
            actual={"text": ""},
        ),
        'Text is "", not "Hello".',
    ),
    (
        replace(
            WRONG,
            verdict="silent",
            differences=("no error is reported, although the stream is not complete; got x",),
            expected={},
            actual={"text": "Hel"},
        ),
        "No error is reported, although the stream is not complete; got x.",
    ),
    (
        replace(WRONG, verdict="crash", exception="KeyError: 'index' (a.py:3 in feed)"),
        "The client crashes where the stream can be read: KeyError: 'index' (a.py:3 in feed)",
    ),
    (
        replace(
            WRONG,
            differences=("usage: input is 24 tokens, not 12",),
            expected={},
            actual={},
        ),
        "Usage: input is 24 tokens, not 12.",
    ),
    (
        replace(WRONG, differences=('finish is missing, not "stop"',), expected={}, actual={}),
        'Finish is missing, not "stop".',
    ),
    (
        replace(
            WRONG,
            differences=('the arguments of f are {}, not {"a": 1}',),
            expected={"tool_calls": [{"name": "f", "arguments": {"a": 1}}]},
            actual={"tool_calls": [{"name": "f", "arguments": "{}"}]},
        ),
        'The arguments of f are {}, not {"a": 1}.',
    ),
    (
        CaseResult("chat/x", "plain", "not judged", reason="it shows in bytes only"),
        "This case was not judged: it shows in bytes only.",
    ),
    (
        CaseResult("chat/x", "errors", "right", reason="by the adapter: it reads `error`"),
        "The expected outcome, by the adapter: it reads `error`.",
    ),
    (
        CaseResult("chat/x", "plain", "adapter", reason="a.py raised it"),
        "The adapter failed, and not the client, so that nothing is known of the client.",
    ),
]


@pytest.mark.parametrize(("case", "text"), SENTENCES)
def test_one_sentence_says_what_happened(case: CaseResult, text: str):
    """It names what the client ends with, and what the stream has."""
    assert sentence(case) == text
