"""Each condition holds or fails with one exact message: what was expected, and what was found."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mockllm.core.request import Message, OfferedTool, Request
from mockllm.play.matching.conditions import (
    check_partial,
    check_text,
    judged_expectations,
    judged_match,
    model_holds,
    text_holds,
)
from mockllm.play.replay.loading import loads
from mockllm.scenario.model import Expect, Match, TextCondition
from tests.cases import for_all


@pytest.mark.parametrize(("expected", "actual"), [(1, True), (0, False), (True, 1), (False, 0)])
def test_a_boolean_is_no_number(expected: Any, actual: Any) -> None:
    """`true` does not match 1, although they are equal in Python."""
    message = f"body.a[0].b must be {expected!r}, got {actual!r}"
    assert check_partial("body", {"a": [{"b": expected}]}, {"a": [{"b": actual}]}) == message


@for_all("value", [True, False, 0, 1, 1.0, "a", None, [], {}, [1], {"a": [None]}])
def test_a_value_contains_itself(value: Any) -> None:
    """Equal values of one kind match."""
    assert check_partial("body", value, value) is None


@for_all(
    ("expected", "actual", "message"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, None),
        ({"a": 1}, {}, "body.a must be 1, but is not there"),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "body.a.b must be 1, got 2"),
        ({"a": 1}, [1], "body must be an object, got [1]"),
        ([1], {"a": 1}, "body must be a list, got {'a': 1}"),
        (["a"], "a", "body must be a list, got 'a'"),
        ([1, 2], [1], "body must have 2 items, got 1"),
        ([1, 2], [1, 3], "body[1] must be 2, got 3"),
        ([1], (1,), None),
        (1, 1.0, None),
        ("a", "A", "body must be 'a', got 'A'"),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, "body.b must be 2, got 3"),
    ],
)
def test_a_partial_body(expected: Any, actual: Any, message: str | None) -> None:
    """Objects may have more keys, lists as many items as expected; the message has the path."""
    assert check_partial("body", expected, actual) == message


def test_a_long_value_is_shortened_in_a_message() -> None:
    """A message is one line of readable length, and has the full length of the value."""
    problem = check_partial("body", "a", "x" * 200)
    assert problem == f"body must be 'a', got '{'x' * 79}… (202 characters)"


@for_all("alike", [61, 2100, 100_000])
def test_long_texts_are_shown_from_their_first_difference(alike: int) -> None:
    """Two prompts that begin alike differ somewhere; a message with two beginnings hides where."""
    beginning = "a" * alike
    shown = beginning[:20]
    message = f"must be '{shown}1' from character {alike - 19} on, got '{shown}2 more'"
    expected, actual = f"{beginning}1", f"{beginning}2 more"
    condition = TextCondition("equals", expected)
    assert check_text("the text", condition, actual) == f"the text {message}"
    assert check_partial("body", {"a": expected}, {"a": actual}) == f"body.a {message}"


def test_a_text_that_ends_early_is_shown_at_its_end() -> None:
    """Of one text that is the beginning of the other, the rest is what differs."""
    text = "b" * 100
    problem = check_text("the text", TextCondition("equals", text + "c"), text)
    assert problem == f"the text must be '{text[:20]}c' from character 81 on, got '{text[:20]}'"


@pytest.mark.parametrize(
    ("op", "value", "text", "message"),
    [
        ("contains", "b", "abc", None),
        ("contains", "d", "abc", "the text must contain 'd', got 'abc'"),
        ("equals", "abc", "abc", None),
        ("equals", "b", "abc", "the text must be 'b', got 'abc'"),
        ("regex", "^a.c$", "abc", None),
        ("regex", "b", "abc", None),
        ("regex", "^b", "abc", "the text must match the regex '^b', got 'abc'"),
    ],
)
def test_a_text_condition(op: Any, value: str, text: str, message: str | None) -> None:
    """Each kind of condition has a verb of its own; a regular expression may match anywhere."""
    condition = TextCondition(op, value)
    assert check_text("the text", condition, text) == message
    assert text_holds(condition, text) == (message is None)


def test_a_regular_expression_is_shown_from_where_the_text_parts() -> None:
    """One of a whole text, as recorders write them; two long beginnings say nothing."""
    text = "Write to the following address and tell them what came of the test of today: "
    regex = rf"\A(?:{re.escape(text)}\S+{re.escape('. Be (very) kind.')})\Z"
    problem = check_text("it", TextCondition("regex", regex), f"{text}a@b.example. Be (very) rude.")
    assert problem == (
        "it must match the regex '.example. Be (very) kind.' from character 81 on, "
        "got '.example. Be (very) rude.'"
    )
    for odd in (r"\A(?:a|b)\Z", r"\A(?:(a)+)\Z"):
        problem = check_text("it", TextCondition("regex", odd), text)
        assert problem is not None
        assert "must match the regex '\\\\A" in problem


def test_a_model_is_matched_by_a_glob() -> None:
    """`*` stands for anything; case counts."""
    assert model_holds("gpt-4*", "gpt-4o")
    assert not model_holds("gpt-4*", "GPT-4o")
    assert not model_holds("gpt-4", "gpt-4o")


def test_the_last_user_message() -> None:
    """Of several the last one counts; without one the text is empty."""
    messages = (Message("user", "a"), Message("user", "b"), Message("assistant", "c"))
    assert Request("chat", "m", {}, messages=messages).last_user.text == "b"
    assert Request("chat", "m", {}, messages=messages[2:]).last_user.text == ""


def check_match(*args: Any, **options: Any) -> list[str | None]:
    """The message for each condition of a `match`, None where it holds."""
    return [next(iter(one.problems), None) for one in judged_match(*args, **options)]


def check_expect(*args: Any) -> list[str]:
    """All messages for the conditions of a turn's `request`."""
    return [
        problem for expectation in judged_expectations(*args) for problem in expectation.problems
    ]


def match_of(text: str) -> Match:
    (scenario,) = loads(f"scenario: a\nmatch: {text}\nturns: [{{reply: {{text: x}}}}]")
    assert scenario.match is not None
    return scenario.match


EVERYTHING = (
    "{user: hello, model: gpt-*, system: {equals: poet}, tools: [a, b], "
    "headers: {x-team: red, x-other: blue}, body: {stream: true}}"
)


def test_each_condition_of_a_match_has_a_message() -> None:
    """All conditions of a `match` are checked, in a fixed order."""
    request = Request(
        "chat",
        "claude",
        {"stream": 1},
        messages=(Message("user", "bye"),),
        system="a poet",
        tools=(OfferedTool("c"), OfferedTool("d")),
    )
    assert list(
        check_match(
            match_of(EVERYTHING), request, {"x-team": "green"}, message=Message("user", "bye")
        )
    ) == [
        "match.user: the last user message must contain 'hello', got 'bye'",
        "match.model: the model must match 'gpt-*', got 'claude'",
        "match.system: the system prompt must be 'poet', got 'a poet'",
        "match.tools: the tool 'a' must be offered; offered: c, d",
        "match.tools: the tool 'b' must be offered; offered: c, d",
        "match.headers: the header 'x-team' must contain 'red', got 'green'",
        "match.headers: the header 'x-other' must be sent, but is not there",
        "match.body: body.stream must be True, got 1",
    ]


def test_each_condition_of_a_match_may_hold() -> None:
    """A condition that holds has the result None."""
    request = Request(
        "chat",
        "gpt-4o",
        {"stream": True, "more": 1},
        messages=(Message("user", "hello there"),),
        system="poet",
        tools=(OfferedTool("a"), OfferedTool("b")),
    )
    headers = {"x-team": "red", "x-other": "blue"}
    assert (
        list(
            check_match(
                match_of(EVERYTHING), request, headers, message=Message("user", "hello there")
            )
        )
        == [None] * 8
    )


def test_the_user_message_that_is_checked() -> None:
    """The caller gives the message, or None where it has checked the condition itself."""
    request = Request("chat", "m", {}, messages=(Message("user", "hello"),))
    match = match_of("{user: hello}")
    assert check_match(match, request, {}, message=Message("user", "hello")) == [None]
    assert list(check_match(match, request, {})) == []
    assert list(check_match(match, request, {}, message=Message("user", "bye"))) == [
        "match.user: the last user message must contain 'hello', got 'bye'"
    ]


def test_no_tools_are_offered() -> None:
    """A request without tools is described as one that offers none."""
    (problem,) = check_match(match_of("{tools: [a]}"), Request("chat", "m", {}), {})
    assert problem == "match.tools: the tool 'a' must be offered; offered: none"


def expect_of(text: str) -> Expect:
    turn = f"turns: [{{request: {text}, reply: {{text: x}}}}]"
    calls = "turns: [{reply: [{tool: f, id: call_1}, {tool: g, id: call_2}]}, "
    (scenario,) = loads(f"scenario: a\n{turn.replace('turns: [', calls)}")
    found = scenario.turns[1].request
    assert found is not None
    return found


CALLS = (("f", "call_1"), ("g", "call_2"))


def problems(text: str, request: Request) -> list[str]:
    return check_expect(expect_of(text), request, request.messages, CALLS)


def test_each_condition_of_a_turn_has_a_message() -> None:
    """All conditions of `request:` are checked; those that hold give no message."""
    text = (
        "{offers: [a, b], tool_choice: required, user: hello, body: {n: 1}, "
        "results: {call_1: {contains: rain}, call_2: {error: true}}, "
        "schema: {properties: {n: {type: integer}, m: {const: 1}}}}"
    )
    request = Request(
        "chat",
        "m",
        {"n": "one", "m": 2},
        messages=(Message("tool", "sun", call_id="call_1"), Message("user", "bye")),
        tools=(OfferedTool("b"),),
    )
    assert problems(text, request) == [
        "request.results: the result of call 'call_1' must contain 'rain', got 'sun'",
        "request.results: the result of call 'call_2' must be sent, but is not there; "
        "results were sent for: call_1",
        "request.offers: the tool 'a' must be offered; offered: b",
        "request.tool_choice must be 'required', got 'auto'",
        "request.user: the last user message must contain 'hello', got 'bye'",
        "request.body: body.n must be 1, got 'one'",
        "request.schema: $.m: 1 was expected",
        "request.schema: $.n: 'one' is not of type 'integer'",
    ]


def test_a_violated_schema_quotes_no_whole_value() -> None:
    """The message about a long value keeps its place, and what is wrong with it."""
    request = Request("chat", "m", {"n": "x" * 100_000}, messages=(Message("user", "hi"),))
    (problem,) = problems("{schema: {properties: {n: {type: integer}}}}", request)
    assert problem.startswith("request.schema: $.n: 'xxx")
    assert problem.endswith("xxx' is not of type 'integer'")
    assert len(problem) <= 400


def test_each_condition_of_a_turn_may_hold() -> None:
    """A request that meets all conditions has no problem."""
    text = (
        "{offers: [a], tool_choice: required, user: hello, body: {n: 1}, "
        "results: {call_1: rain, call_2: {error: true}}, schema: {required: [n]}}"
    )
    request = Request(
        "chat",
        "m",
        {"n": 1},
        messages=(
            Message("tool", "rain", call_id="call_1"),
            Message("tool", "", call_id="call_2", error=True),
            Message("user", "hello"),
        ),
        tools=(OfferedTool("a"),),
        tool_choice="required",
    )
    assert problems(text, request) == []


def test_a_result_that_must_report_an_error() -> None:
    """The flag of the API reports it; without one the text has to mention an error."""
    text = "{results: {call_1: {error: true}}}"

    def sent(text_: str, *, error: bool = False) -> Request:
        message = Message("tool", text_, call_id="call_1", error=error)
        return Request("chat", "m", {}, messages=(message,))

    assert problems(text, sent("fine", error=True)) == []
    assert problems(text, sent("ERROR 500")) == []
    assert problems(text, sent("fine")) == [
        "request.results: the result of call 'call_1' must report an error, got 'fine'"
    ]


def test_no_results_were_sent() -> None:
    """The message states that there are none."""
    (problem,) = problems("{results: {call_1: rain}}", Request("chat", "m", {}))
    assert problem == (
        "request.results: the result of call 'call_1' must be sent, but is not there; "
        "results were sent for: none"
    )


def test_results_without_ids_belong_to_calls_by_name() -> None:
    """Gemini has no ids: a result belongs to the first call of its name without a result."""
    expect = expect_of("{results: {call_1: rain, call_2: sun}}")
    calls = (("f", "call_1"), ("f", "call_2"), ("g", "call_3"))

    def check(*texts: str) -> list[str]:
        since = [Message("user", "x"), *(Message("tool", text, name="f") for text in texts)]
        return check_expect(expect, Request("gemini", "m", {}), since, calls)

    assert check("rain", "sun") == []
    assert check("sun", "rain") == [
        "request.results: the result of call 'call_1' must contain 'rain', got 'sun'",
        "request.results: the result of call 'call_2' must contain 'sun', got 'rain'",
    ]
    assert check("rain") == [
        "request.results: the result of call 'call_2' must be sent, but is not there; "
        "results were sent for: call_1"
    ]


def test_results_with_and_without_ids_together() -> None:
    """A result with an id uses up its call; one without goes to the next call of its name."""
    expect = expect_of("{results: {call_1: rain, call_2: sun}}")
    since = [Message("tool", "rain", call_id="call_1"), Message("tool", "sun", name="f")]
    calls = (("f", "call_1"), ("f", "call_2"))
    assert check_expect(expect, Request("gemini", "m", {}), since, calls) == []


def test_a_result_that_belongs_to_no_call() -> None:
    """Its name is that of no call, and it has no id: it meets no condition."""
    expect = expect_of("{results: {call_1: rain}}")
    since = [Message("tool", "rain", name="unknown")]
    (problem,) = check_expect(expect, Request("gemini", "m", {}), since, CALLS)
    assert problem.startswith("request.results: the result of call 'call_1' must be sent, but")
