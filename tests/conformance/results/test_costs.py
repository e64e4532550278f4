"""What a mistake costs, and what a case is about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mockllm.checking import Call, Case, Outcome, Policy, Trouble, Usage, case
from mockllm.checking.cases.scenarios import Variation
from mockllm.checking.judging.compare import judge
from mockllm.conformance.clients.costs import cost_of, group_of, uncounted_verdict
from mockllm.play.quirks import QUIRKS
from mockllm.play.quirks.base import TOPICS
from mockllm.play.quirks.samples import CALL, TEXT, TWO_SAME
from tests.cases import for_all


def cost(one: Case, got: Outcome) -> str | None:
    judgement = judge(one, got, Policy())
    return cost_of(one, got, judgement, judgement.differences)


def call(name: str = "get_weather", id: str = "call_A1", **arguments: Any) -> Call:
    return Call(name, arguments, id)


PLAIN = case(CALL, "chat")
RIGHT = PLAIN.expected


@for_all(
    ("changes", "expected"),
    [
        ({}, None),
        ({"tool_calls": (call(city="Rome"),)}, "wrong call"),
        ({"tool_calls": (call("get_weatherget_weather", city="Paris"),)}, "wrong call"),
        ({"tool_calls": (call(city="Paris"), call(city="Paris"))}, "wrong call"),
        ({"tool_calls": (Call("get_weather", '{"city":"Pa', "call_A1"),)}, "data lost"),
        ({"tool_calls": ()}, "data lost"),
        ({"tool_calls": 5}, "data lost"),
        ({"text": "get_weather"}, "data lost"),
        ({"opaque": ("sig",)}, "data lost"),
        ({"tool_calls": (call(id="call_B", city="Paris"),)}, "wrong metadata"),
        ({"finish": "length"}, "wrong metadata"),
        ({"usage": Usage(1, 2)}, "wrong metadata"),
        ({"role": "assistantassistant"}, "wrong metadata"),
        ({"errors": (Trouble("cannot read it"),)}, "loud failure"),
        ({"errors": (Trouble("KeyError: 'x'", crash=True),)}, "loud failure"),
        (
            {"errors": (Trouble("KeyError", crash=True),), "tool_calls": (call(city="Rome"),)},
            "loud failure",
        ),
        ({"errors": (Trouble("invalid call"),), "tool_calls": ()}, "loud failure"),
        ({"usage": None, "tool_calls": (call(city="Rome"),)}, "wrong call"),
    ],
)
def test_cost_of_a_mistake_in_a_correct_stream(
    changes: dict[str, Any], expected: str | None
) -> None:
    """The worst of all differences counts; an exception keeps everything else from the user."""
    assert cost(PLAIN, replace(RIGHT, **changes)) == expected


def test_calls_in_another_order_are_wrong_metadata() -> None:
    """Each of them is a call of the model."""
    two = case(TWO_SAME, "chat")
    got = replace(two.expected, tool_calls=two.expected.tool_calls[::-1])
    assert cost(two, got) == "wrong metadata"


def test_an_error_that_is_not_reported() -> None:
    """A call of a stream that broke off would be executed; without one, the error is lost."""
    with_call = case(CALL, "chat", quirk="sse-cut:eof")
    assert cost(with_call, replace(RIGHT, finish=None)) == "wrong call"
    without = case(TEXT, "chat", quirk="sse-cut:eof")
    assert cost(without, Outcome(text="Hel")) == "data lost"
    broken = Call("get_weather", '{"city":"Pa', "call_A1")
    assert cost(with_call, replace(RIGHT, finish=None, tool_calls=(broken,))) == "data lost"


def test_groups() -> None:
    """A quirk's topic; else `plain`, or `cuts` for another cut of the same answer."""
    assert group_of(PLAIN) == "plain"
    assert group_of(case(CALL, "chat", Variation(split=(1,)))) == "cuts"
    varied = case(CALL, "chat", Variation(split=(1,)), "chat-index-missing")
    assert group_of(varied) == "index"
    assert {
        group_of(case(q.sample_of(q.variants[0]), q.apis[0], quirk=q.name))
        for q in QUIRKS.values()
        if q.variants[0].changes(q.apis[0])
    } <= set(TOPICS)


@for_all(
    ("quirk", "lost", "refused"),
    [
        ("", None, None),
        ("sse-comments:inside", None, None),
        ("chat-index-missing", None, "non-strict"),
        ("chat-role-null-empty-never:never", None, None),
        ("chat-role-null-empty-never:null", None, "non-strict"),
        ("chat-index-reversed", "informational", "informational"),
        ("err-json-200", "informational", "informational"),
        ("sse-empty-data", None, "non-strict"),
        ("anth-ping:bare", "informational", "informational"),
        ("anth-ping:first", None, None),
    ],
)
def test_what_no_source_shows_counts_nowhere_and_what_is_invalid_may_be_refused(
    quirk: str, lost: str | None, refused: str | None
) -> None:
    """A loud failure on an invalid stream is non-strict; without a source, nothing counts."""
    verdicts = [uncounted_verdict(quirk, "data lost"), uncounted_verdict(quirk, "loud failure")]
    assert [found and found[0] for found in verdicts] == [lost, refused]
