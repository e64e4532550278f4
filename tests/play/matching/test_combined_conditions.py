"""`any`, `all` and `not`: on texts, on a whole `match` and on a whole `request`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import NoMatchError
from mockllm.core.request import CallEcho, Message, OfferedTool, Request
from mockllm.play.matching.conditions import (
    check_text,
    first_problem,
    judged_expectations,
    judged_match,
    judged_message,
    text_holds,
)
from mockllm.play.matching.index import ScenarioIndex
from mockllm.play.matching.request_validation import judged_request
from mockllm.play.matching.select import Selection, select
from mockllm.play.replay.client_requests import text_meeting
from mockllm.play.replay.loading import loads
from mockllm.scenario.model import CombinedText, Expect, Match, Scenario, TextCondition
from mockllm.scenario.precedence import match_key
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.play.matching.test_scenario_index import with_match


def condition_of(text: str) -> Any:
    """The condition on a text that YAML writes so."""
    (scenario,) = loads(f"scenario: a\nmatch: {{user: {text}}}\nturns: [{{reply: {{text: x}}}}]")
    assert scenario.match is not None
    return scenario.match.user


@for_all(
    ("condition", "text", "message"),
    [
        ("{not: secret}", "hello", None),
        ("{not: secret}", "a secret", "must not contain 'secret', got 'a secret'"),
        ("{not: {equals: a}}", "a", "must not be 'a', got 'a'"),
        ("{not: {not: a}}", "b", "must contain 'a', got 'b'"),
        ('{any: [hello, {regex: "^hi"}]}', "hi you", None),
        (
            '{any: [hello, {regex: "^hi"}]}',
            "oh hi",
            "must contain 'hello' or match the regex '^hi', got 'oh hi'",
        ),
        ("{any: [hello]}", "x", "must contain 'hello', got 'x'"),
        ("{all: [a, {not: b}]}", "a", None),
        ("{all: [a, {not: b}]}", "c", "must contain 'a', got 'c'"),
        ("{all: [a, {not: b}]}", "ab", "must not contain 'b', got 'ab'"),
        ("{not: {any: [a, b]}}", "b", "must not contain 'a' and not contain 'b', got 'b'"),
        ("{not: {all: [a, b]}}", "ab", "must not contain 'a' or not contain 'b', got 'ab'"),
        (
            "{any: [a, {all: [b, {not: c}]}]}",
            "bc",
            "must contain 'a' or (contain 'b' and not contain 'c'), got 'bc'",
        ),
    ],
)
def test_a_combined_text_says_in_words_what_it_wants(
    condition: str, text: str, message: str | None
) -> None:
    """The message about a text names what of a combination is missing."""
    given = condition_of(condition)
    assert check_text("it", given, text) == (None if message is None else f"it {message}")
    assert text_holds(given, text) == (message is None)


plain = st.builds(TextCondition, st.sampled_from(["contains", "equals"]), st.sampled_from("abc"))
combined = st.recursive(
    plain,
    lambda inner: (
        st.builds(
            CombinedText,
            st.sampled_from(["any", "all"]),
            st.lists(inner, min_size=1, max_size=3).map(tuple),
        )
        | st.builds(CombinedText, st.just("not"), st.tuples(inner))
    ),
)


@given(combined, st.text("abc", max_size=3))
def test_a_text_that_holds_has_no_problem_and_another_one(condition: Any, text: str) -> None:
    """Whether a text meets a condition, and why it does not, never contradict each other."""
    assert (check_text("it", condition, text) is None) == text_holds(condition, text)
    negated = CombinedText("not", (condition,))
    assert text_holds(negated, text) is not text_holds(condition, text)


@given(st.lists(combined, min_size=1, max_size=4), st.text("abc", max_size=3))
def test_the_index_finds_combined_conditions(conditions: list[Any], text: str) -> None:
    """The index finds exactly the scenarios whose combined condition a text meets."""
    scenarios = [with_match(f"s{n}", Match(user=one)) for n, one in enumerate(conditions)]
    found = [scenario.name for scenario in ScenarioIndex(scenarios).by_user_text(text)]
    assert found == [f"s{n}" for n, one in enumerate(conditions) if text_holds(one, text)]


@for_all(
    "condition", ["{all: [a, b]}", "{any: [a, b]}", "{all: [a, {not: b}]}", "{not: {contains: z}}"]
)
def test_a_text_that_meets_a_combination_is_found(condition: str) -> None:
    """Requests that mockllm itself makes meet a combined condition."""
    given = condition_of(condition)
    assert text_holds(given, text_meeting(given, "Hello"))


def scenario_of(match: str, name: str = "a", turns: str = "[{reply: {text: x}}]") -> Scenario:
    (scenario,) = loads(f"scenario: {name}\nmatch: {match}\nturns: {turns}")
    return scenario


def asked(*texts: str, model: str = "m", **more: Any) -> Request:
    """A request with user messages, and an answer "x" after each but the last."""
    messages = [m for text in texts for m in (Message("user", text), Message("assistant", "x"))]
    return Request("chat", model, {}, messages=tuple(messages[:-1]), **more)


def answering(request: Request, *scenarios: Scenario) -> tuple[str, int] | None:
    """The scenario that answers, and the index of its turn."""
    try:
        selection = select(ScenarioIndex(scenarios), request, {"x-team": "red"})
    except NoMatchError:
        return None
    return selection.scenario.name, selection.index


GROUPS = "{user: weather, any: [{model: gpt-*}, {tools: [get_weather]}], not: {system: test}}"


@for_all(
    ("request_", "answers"),
    [
        (asked("weather?", model="gpt-4"), True),
        (asked("weather?", tools=(OfferedTool("get_weather"),)), True),
        (asked("weather?"), False),
        (asked("news?", model="gpt-4"), False),
        (asked("weather?", model="gpt-4", system="a test"), False),
    ],
    ids=str,
)
def test_groups_of_a_match(request_: Request, answers: bool) -> None:
    """All of a match must hold: one of `any`, and not all of `not`."""
    assert (answering(request_, scenario_of(GROUPS)) is not None) == answers


def test_a_mapping_under_not_holds_as_a_whole() -> None:
    """`not` with two conditions is met where one of them does not hold."""
    scenario = scenario_of("{not: {system: test, model: gpt-*}}")
    assert answering(asked("a", system="test"), scenario)
    assert not answering(asked("a", system="test", model="gpt-4"), scenario)


@for_all(
    "match",
    [
        "{any: [{user: hello}, {user: hi}]}",
        "{not: {user: bye}}",
        "{user: h, not: {user: bye}}",
        "{all: [{not: {user: bye}}, {model: m}]}",
    ],
)
def test_a_group_reads_the_message_at_which_the_conversation_begins(match: str) -> None:
    """A later message neither ends the conversation nor begins another one."""
    scenario = scenario_of(match, turns="[{reply: {text: x}}, {reply: {text: y}}]")
    assert answering(asked("hello"), scenario) == ("a", 0)
    assert answering(asked("hello", "bye"), scenario) == ("a", 1)
    assert answering(asked("bye"), scenario) is None
    assert answering(asked("bye", "hello"), scenario) == ("a", 0)


def test_user_and_groups_are_about_one_message() -> None:
    """`not: {user: ...}` beside `user` is about the message that meets `user`."""
    scenario = scenario_of("{user: weather, not: {user: Paris}}")
    assert answering(asked("weather in Paris", "weather in Rome"), scenario) == ("a", 0)
    assert answering(asked("weather in Paris", "Rome?"), scenario) is None


def test_a_request_without_a_user_message() -> None:
    """Groups about the user's message are judged with an empty one where there is none."""
    request = Request("chat", "m", {}, messages=(Message("system", "s"),), system="s")
    assert answering(request, scenario_of("{not: {user: a}}")) == ("a", 0)
    assert answering(request, scenario_of("{any: [{user: a}]}")) is None


def test_a_group_is_one_condition() -> None:
    """The scenario with the most conditions answers; each group counts as one."""
    weather = scenario_of("{user: weather}", "plain")
    grouped = scenario_of(
        "{user: weather, any: [{model: m, tools: [a]}, {model: m*, stream: false}]}", "grouped"
    )
    assert grouped.match is not None
    assert grouped.match.conditions == 2
    assert answering(asked("weather"), weather, grouped) == ("grouped", 0)
    assert answering(asked("weather", model="n"), weather, grouped) == ("plain", 0)
    texts = scenario_of("{user: {any: [weather, rain]}}", "texts")
    assert texts.match is not None
    assert texts.match.conditions == 1


def test_headers_inside_of_groups_decide() -> None:
    """The headers that groups read are among those that decide which scenario answers."""
    scenario = scenario_of("{any: [{headers: {x-team: red}}, {not: {headers: {x-y: z}}}]}")
    assert {"x-team", "x-y"} <= set(ScenarioIndex([scenario]).headers)
    assert answering(asked("a"), scenario) == ("a", 0)


def test_the_order_of_alternatives_makes_no_other_match() -> None:
    """Two matches with the same alternatives compete, whatever their order."""
    one = scenario_of("{any: [{user: a}, {user: b}]}").match
    other = scenario_of("{any: [{user: b}, {user: a}]}").match
    third = scenario_of("{all: [{user: b}, {user: a}]}").match
    assert one is not None
    assert other is not None
    assert third is not None
    assert match_key(one) == match_key(other) != match_key(third)


def test_what_is_ignored_counts_inside_of_combinations() -> None:
    """`ignore` holds for conditions in `any`, `all` and `not`, of texts and of the match."""
    scenario = scenario_of(
        "{user: {any: [{equals: 'at 2026-01-01'}]}, any: [{system: {equals: '2026-01-01'}}], "
        "ignore: [date]}"
    )
    assert answering(asked("at 2027-02-02", system="2027-02-02"), scenario)
    assert not answering(asked("at 2027-02-02", system="never"), scenario)


def problem_of(match: str, request: Request) -> str | None:
    given = scenario_of(match).match
    assert given is not None
    message = judged_message(given, request, {})
    return first_problem(judged_match(given, request, {}, message=message))


@for_all(
    ("match", "message"),
    [
        (
            "{any: [{model: gpt-*}, {tools: [get], user: a}]}",
            "match.any: one of these must hold: match.any[0].model: the model must match 'gpt-*', "
            "got 'm'; match.any[1].tools: the tool 'get' must be offered; offered: none",
        ),
        (
            "{not: {system: test, model: m}}",
            "match.not: this must not hold, but it does: model 'm', got 'm'; "
            "system 'test', got 'a test'",
        ),
        (
            "{all: [{model: m}, {not: {user: {regex: '^a'}}}]}",
            "match.all[1].not: this must not hold, but it does: user.regex '^a', got 'a'",
        ),
    ],
)
def test_the_message_about_a_group(match: str, message: str) -> None:
    """The message names the group, and each condition in it that failed."""
    assert problem_of(match, asked("a", system="a test")) == message


def test_a_request_that_nothing_answers_explains_the_group() -> None:
    """The error names the group of the nearest scenario."""
    with pytest.raises(NoMatchError) as caught:
        select(ScenarioIndex([scenario_of(GROUPS)]), asked("weather?"), {})
    assert "- a: match.any: one of these must hold: match.any[0].model: " in caught.value.message


TURNS = "[{reply: [{tool: f, id: c1, arguments: {}}]}, {request: %s, reply: {text: done}}]"


def expect_of(text: str) -> Expect:
    scenario = scenario_of("any", turns=TURNS % text)
    request = scenario.turns[1].request
    assert request is not None
    return request


def continued(result: str, user: str = "go", **more: Any) -> Request:
    messages = (
        Message("user", user),
        Message("assistant", calls=(CallEcho("c1", "f", "{}"),)),
        Message("tool", result, call_id="c1"),
    )
    return Request("chat", "m", {"n": 1}, messages=messages, **more)


@for_all(
    ("request_", "expected", "problem"),
    [
        (continued("ok"), "{any: [{user: yes}, {results: {0: ok}}], not: {offers: [x]}}", None),
        (continued("no", "yes"), "{any: [{user: yes}, {results: {0: ok}}]}", None),
        (
            continued("no"),
            "{any: [{user: yes}, {results: {0: ok}}]}",
            "request.any: one of these must hold: request.any[0].user: the last user message must "
            "contain 'yes', got 'go'; request.any[1].results: the result of call 'c1' must "
            "contain 'ok', got 'no'",
        ),
        (
            continued("ok", tools=(OfferedTool("x"),)),
            "{not: {offers: [x]}}",
            "request.not: this must not hold, but it does: offers 'x', got 'x'",
        ),
        (continued("43"), "{results: {c1: {any: [42, 43]}}}", None),
        (
            continued("433"),
            "{results: {c1: {any: [43, {all: ['43', {not: '33'}]}]}}}",
            "request.results: the result of call 'c1' must be '43' or (contain '43' and not "
            "contain '33'), got '433'",
        ),
        (
            continued("ok"),
            "{all: [{body: {n: 2}}]}",
            "request.all[0].body: body.n must be 2, got 1",
        ),
        (
            continued("ok"),
            "{any: [{schema: {required: [m]}}]}",
            "request.any: one of these must hold: request.any[0].schema: $: 'm' is a required "
            "property",
        ),
    ],
)
def test_groups_of_a_request(request_: Request, expected: str, problem: str | None) -> None:
    """The conditions of `request` are combined as those of `match`; positions become ids."""
    scenario = scenario_of("any", turns=TURNS % expected)
    spec = scenario.turns[1].request
    assert spec is not None
    judged = judged_request(Selection(scenario, 1, 1), spec, request_, PROTOCOLS["chat"])
    assert first_problem(judged) == problem


def test_groups_about_tools_do_not_count_where_an_api_has_none() -> None:
    """Legacy Completions have no tools: what depends on them is left out, `not` as well."""
    spec = expect_of(
        "{any: [{offers: [x]}, {user: never}], not: {offers: [x], user: go}, "
        "all: [{tool_choice: none, user: go}]}"
    )
    request = Request("completions", "m", {}, messages=(Message("user", "go"),))
    scenario = scenario_of("any")
    judged = judged_request(Selection(scenario, 0, 0), spec, request, PROTOCOLS["completions"])
    assert [(one.path, one.met) for one in judged] == [("request.all", True)]


def test_a_group_shows_what_was_expected_and_sent() -> None:
    """The live page gets what each entry expects, and what the request has of it."""
    spec = expect_of("{any: [{user: yes, offers: [a, b]}, {body: {n: 1}}]}")
    request = continued("ok")
    (judged,) = judged_expectations(spec, request, request.messages)
    assert judged.met
    assert judged.expected == [{"offers": ["a", "b"], "user": "yes"}, {"body.n": 1}]
    assert judged.actual == {"offers": ["none", "none"], "user": "go", "body.n": 1}
