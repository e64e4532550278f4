"""Why no scenario answers: the exact messages, codes and statuses that users and clients see."""

from __future__ import annotations

import pytest

from mockllm.core.errors import NoMatchError, RequestError
from mockllm.core.request import CallEcho, Message, OfferedTool, Request
from mockllm.play.matching.conversation import Selection
from mockllm.play.matching.index import ScenarioIndex, mint_token, split_model
from mockllm.play.matching.select import select
from mockllm.play.replay.loading import loads
from tests.cases import for_all

SERVED = ScenarioIndex(
    loads(
        """
scenario: weather
match: {user: weather}
turns:
  - reply: {tool: get_weather, id: call_w}
  - reply: {text: It rains.}
---
scenario: single
match: {user: once, system: poet}
turns: [{reply: {text: Hi!}}]
---
scenario: whether
apis: [responses, anthropic]
match: {user: whether}
turns: [{reply: {text: Maybe.}}]
"""
    )
)


def user(text: str) -> Message:
    return Message("user", text)


def called(*calls: tuple[str, str]) -> Message:
    return Message("assistant", "", tuple(CallEcho(id, name, "{}") for id, name in calls))


MODEL = Message("assistant", "something")


def chosen(
    *messages: Message,
    served: ScenarioIndex = SERVED,
    headers: dict[str, str] | None = None,
    api: str = "chat",
    model: str = "m",
    **fields: object,
) -> Selection:
    request = Request(api, model, {}, messages=messages, **fields)  # type: ignore[arg-type]
    return select(served, request, headers or {})


def refusal(*messages: Message, **fields: object) -> tuple[str, int, str | None, str | None]:
    """Message, status, code and field of the error."""
    with pytest.raises(NoMatchError) as caught:
        chosen(*messages, **fields)  # type: ignore[arg-type]
    error = caught.value
    return error.message, error.status, error.code, error.param


ADVICE = (
    "Name a scenario with the header x-mockllm-scenario or the model 'mock/<scenario>', add "
    "one whose `match` holds, or serve with --fallback auto."
)


def test_no_scenario_matches() -> None:
    """The nearest come with the first condition that fails: few failures first, then texts with
    more letters in common, then names."""
    message, *facts = refusal(user("the WEATHEN"))
    assert message == (
        "No scenario answers this request (model 'm', user said 'the WEATHEN'); 3 served.\n"
        "Nearest:\n"
        "- weather: match.user: the last user message must contain 'weather', got 'the WEATHEN'\n"
        "- whether: apis: it does not play over 'chat'\n"
        "- single: match.user: the last user message must contain 'once', got 'the WEATHEN'\n"
        + ADVICE
    )
    assert facts == [404, "no_scenario", None]


def test_few_failed_conditions_are_nearer() -> None:
    """One of two conditions that fails is nearer than one of one."""
    message, *_ = refusal(user("nothing"), system="a poet")
    assert message.splitlines()[2].startswith("- single: match.user: ")


def test_nothing_is_near() -> None:
    """Scenarios without a `match` are never near; without any, no list is given."""
    index = ScenarioIndex(loads("scenario: unlisted\nturns: [{reply: {text: x}}]"))
    message, *_ = refusal(user("hi"), served=index)
    assert message == (
        "No scenario answers this request (model 'm', user said 'hi'); 1 served.\n" + ADVICE
    )


def test_calls_of_another_scenario_are_reported() -> None:
    """All conditions hold, and the history has other calls."""
    result = Message("tool", "x", call_id="call_x")
    message, *_ = refusal(user("weather"), called(("call_x", "other")), result)
    assert message.splitlines()[2] == (
        "- weather: its tool calls are not those in the history of this request"
    )


def test_a_scenario_of_this_protocol_is_near_as_any_other() -> None:
    """A list of protocols with this one in it is no reason."""
    text = "scenario: own\napis: [chat]\nmatch: {user: word}\nturns: [{reply: {text: x}}]"
    message, *_ = refusal(user("x"), served=ScenarioIndex(loads(text)))
    assert message.splitlines()[2].startswith("- own: match.user: ")


def test_only_three_are_named() -> None:
    """However many scenarios there are."""
    text = "scenario: s{0}\nmatch: {{user: word{0}}}\nturns: [{{reply: {{text: x}}}}]\n"
    index = ScenarioIndex(loads("---\n".join(text.format(n) for n in range(5))))
    message, *_ = refusal(user("word"), served=index)
    assert [line[:4] for line in message.splitlines()[2:-1]] == ["- s0", "- s1", "- s2"]
    assert message.splitlines()[0].endswith("; 5 served.")


def test_the_end_of_a_long_message_is_not_compared() -> None:
    """Similarity is that of the first 2,000 characters; others would take long."""
    message, *_ = refusal(user("x" * 1999 + "onceonce"))
    assert message.splitlines()[3].startswith("- weather: ")
    message, *_ = refusal(user("x" * 1990 + "weathe"))
    assert message.splitlines()[2].startswith("- weather: ")


def test_a_name_that_is_not_served() -> None:
    """The nearest names are suggested, three at most."""
    advice = "GET /_mockllm/scenarios lists them."
    assert refusal(user("x"), model="mock/wether") == (
        "There is no scenario 'wether'; 3 are served; did you mean 'whether' or 'weather'? "
        + advice,
        404,
        "no_scenario",
        "model",
    )
    assert refusal(user("x"), headers={"x-mockllm-scenario": "zzz"}) == (
        f"There is no scenario 'zzz'; 3 are served. {advice}",
        404,
        "no_scenario",
        None,
    )
    text = "scenario: name{0}\nmatch: {{user: word{0}}}\nturns: [{{reply: {{text: x}}}}]\n"
    index = ScenarioIndex(loads("---\n".join(text.format(n) for n in range(5))))
    message, *_ = refusal(user("x"), served=index, model="mock/name")
    assert message.count("'name") == 4


@pytest.mark.parametrize(("name", "suggested"), [("weat", True), ("we", False)])
def test_how_near_a_name_must_be(name: str, suggested: bool) -> None:
    """A similarity of at least one half (difflib's ratio)."""
    message, *_ = refusal(user("x"), model=f"mock/{name}")
    assert ("did you mean 'weather'" in message) == suggested


def test_a_named_scenario_of_other_protocols() -> None:
    """The message names those that it plays over."""
    assert refusal(user("x"), scenario="whether") == (
        "Scenario 'whether' does not play over 'chat': its `apis` are responses, anthropic.",
        404,
        "no_scenario",
        None,
    )


END = (
    "the conversation is past its end. Add a turn to the scenario, or `repeat: true` to its "
    "last turn, or `then: restart` to the scenario; or start a new conversation."
)


def test_past_the_end() -> None:
    """A scenario that matches but has no turn left, named or not."""
    past = f"Scenario 'single' has 1 turn, and this request asks for turn 2: {END}"
    assert refusal(user("once"), MODEL, user("more"), system="poet") == (
        past,
        404,
        "no_turn",
        None,
    )
    named = refusal(user("once"), MODEL, user("more"), scenario="single")
    assert named == (past, 404, "no_turn", None)
    message, *facts = refusal(
        user("weather"),
        called(("call_w", "get_weather")),
        Message("tool", "x", call_id="call_w"),
        MODEL,
        user("more"),
    )
    assert message == f"Scenario 'weather' has 2 turns, and this request asks for turn 3: {END}"
    assert facts == [404, "no_turn", None]


def test_the_best_of_those_past_their_end_is_named() -> None:
    """Of several, the one that would have answered."""
    message, *_ = refusal(
        user("weather"),
        called(("call_w", "get_weather")),
        Message("tool", "x", call_id="call_w"),
        MODEL,
        user("once"),
        MODEL,
        user("more"),
        system="poet",
    )
    assert message.startswith("Scenario 'single' has 1 turn, and this request asks for turn 2: ")


def test_equally_good_scenarios() -> None:
    """Authored scenarios that tie are a mistake in them, and all are named."""
    text = "scenario: s{0}\nmatch: {{user: word{0}}}\nturns: [{{reply: {{text: x}}}}]\n"
    index = ScenarioIndex(loads("---\n".join(text.format(n) for n in range(3))))
    assert refusal(user("word0 word1 word2"), served=index) == (
        "3 scenarios answer this request equally well: s0, s1, s2. Give one of them a further "
        "`match` condition, or name one with the header x-mockllm-scenario.",
        400,
        "ambiguous_scenario",
        None,
    )


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("mock/weather", ("mock/weather", "weather")),
        ("mock/nothing", ("mock/nothing", "nothing")),
        ("gpt-4o@weather", ("gpt-4o", "weather")),
        ("a@b@weather", ("a@b", "weather")),
        ("@weather", ("", "weather")),
        ("claude@20240620", ("claude@20240620", None)),
        ("weather", ("weather", None)),
        ("Mock/weather", ("Mock/weather", None)),
    ],
)
def test_a_scenario_in_the_name_of_a_model(model: str, expected: tuple[str, str | None]) -> None:
    """`mock/NAME` always names a scenario, `MODEL@NAME` only one that is served."""
    assert split_model(SERVED, model) == expected


def test_what_names_a_scenario_first() -> None:
    """The path, then the header, then the model."""
    named = {
        "scenario": "weather",
        "headers": {"x-mockllm-scenario": "single"},
        "model": "mock/whether",
    }
    assert chosen(user("x"), **named).scenario.name == "weather"  # type: ignore[arg-type]
    del named["scenario"]
    assert chosen(user("x"), **named).scenario.name == "single"  # type: ignore[arg-type]
    del named["headers"]
    found = chosen(user("x"), api="responses", **named)  # type: ignore[arg-type]
    assert (found.scenario.name, found.position, found.start) == ("whether", 0, 0)


def test_a_token_that_is_unknown() -> None:
    """The error is that of the API."""
    request = Request("responses", "m", {}, messages=(user("x"),), previous="f" * 40)
    with pytest.raises(RequestError) as caught:
        select(SERVED, request, {})
    assert caught.value.code == "previous_response_not_found"
    assert f"resp_{'f' * 40}" in caught.value.message


def test_what_is_selected() -> None:
    """Position, turn, beginning of the conversation, and whether an answer is continued."""
    weather = SERVED.by_name["weather"]
    messages = (MODEL, user("weather"), called(("call_w", "get_weather")))
    result = Message("tool", "x", call_id="call_w")
    assert chosen(*messages, result) == Selection(weather, 1, 1, 1, False)
    token = mint_token(weather, 0)
    found = chosen(result, api="responses", previous=token)
    assert found == Selection(weather, 1, 1, 0, True)


# Calls in the history


CALLS = ScenarioIndex(
    loads(
        """
scenario: calls
match: {user: go}
turns:
  - reply:
      - {tool: f, id: call_1}
      - {tool: f, id: call_2}
      - {tool: g, id: call_3, arguments: 'broken', malformed: true}
  - reply: {text: Done.}
"""
    )
)
RESULT = Message("tool", "x", call_id="call_1")


@for_all(
    ("calls", "agree"),
    [
        ([("call_1", "f"), ("call_2", "f"), ("call_3", "g")], True),
        ([("call_2", "f"), ("call_1", "f"), ("call_3", "g")], True),
        ([("call_1", "f"), ("call_2", "f")], True),
        ([("", "f"), ("", "f"), ("", "g")], True),
        ([("", "f"), ("", "f")], True),
        ([("call_1", "f"), ("", "f")], True),
        ([("", "f"), ("call_1", "f")], True),
        ([("", "f"), ("call_2", "f")], True),
        ([("call_1", "f"), ("call_1", "f")], False),
        ([("call_1", "f")], False),
        ([("call_1", "g"), ("call_2", "f")], False),
        ([("call_1", "f"), ("call_2", "f"), ("call_4", "g")], False),
        ([("call_1", "f"), ("call_2", "f"), ("call_3", "g"), ("", "f")], False),
        ([], False),
    ],
)
def test_the_calls_of_a_turn(calls: list[tuple[str, str]], agree: bool) -> None:
    """All calls of the turn, in any order, and no others. An id may be missing, and so may a call
    that is malformed."""
    messages = (user("go"), called(*calls), RESULT)
    if agree:
        assert chosen(*messages, served=CALLS).position == 1
    else:
        assert "its tool calls are not those" in refusal(*messages, served=CALLS)[0]


def test_later_turns_are_compared_too() -> None:
    """A conversation that agrees at first and then has another call is another one."""
    served = ScenarioIndex(
        loads(
            "scenario: two\nmatch: {user: go}\nturns: [{reply: {tool: f, id: c1}}, "
            "{reply: {tool: g, id: c2}}, {reply: {text: x}}]"
        )
    )
    first = (user("go"), called(("c1", "f")), Message("tool", "x", call_id="c1"))
    good, bad = called(("c2", "g")), called(("c3", "h"))
    second = Message("tool", "x", call_id="c2")
    assert chosen(*first, good, second, served=served).position == 2
    assert "its tool calls" in refusal(*first, bad, second, served=served)[0]


NO_USER = ScenarioIndex(
    loads(
        """
scenario: model-only
match: {model: house}
turns:
  - reply: {tool: f, id: c1}
  - reply: {text: one}
  - reply: {text: two}
"""
    )
)


def test_without_a_user_condition_the_history_is_searched_for_a_beginning() -> None:
    """The start of the history, else the latest user message after which the calls agree."""
    other = (user("a"), called(("x", "other")), Message("tool", "r", call_id="x"))
    own = (user("b"), called(("c1", "f")), Message("tool", "r", call_id="c1"))
    assert chosen(*own, served=NO_USER, model="house").start == 0
    found = chosen(*other, *own, served=NO_USER, model="house")
    assert (found.position, found.start) == (1, 3)
    found = chosen(*other, *own, MODEL, user("c"), served=NO_USER, model="house")
    assert (found.position, found.start) == (0, 7)
    found = chosen(*other, user("c"), served=NO_USER, model="house")
    assert (found.position, found.start) == (0, 3)


def test_without_a_user_condition_past_the_end() -> None:
    """A later user message begins the conversation anew, if its turns still agree."""
    own = (user("b"), called(("c1", "f")), Message("tool", "r", call_id="c1"))
    over = (*own, MODEL, user("c"), MODEL)
    message, status, code, _ = refusal(*over, served=NO_USER, model="house")
    assert message.startswith("Scenario 'model-only' has 3 turns, and this request asks for turn 4")
    assert (status, code) == (404, "no_turn")
    found = chosen(*over, user("d"), served=NO_USER, model="house")
    assert (found.position, found.start) == (0, 6)


def test_offered_tools_decide() -> None:
    """A scenario with `match.tools` and no user condition is found as well."""
    index = ScenarioIndex(loads("scenario: t\nmatch: {tools: [f]}\nturns: [{reply: {text: x}}]"))
    found = chosen(user("x"), served=index, tools=(OfferedTool("f"),))
    assert found.scenario.name == "t"
    assert "the tool 'f' must be offered" in refusal(user("x"), served=index)[0]


def test_without_a_user_condition_nothing_agrees() -> None:
    """Calls of another conversation right before the results that are sent."""
    messages = (user("a"), called(("x", "other")), Message("tool", "r", call_id="x"))
    message, *_ = refusal(*messages, served=NO_USER, model="house")
    assert "- model-only: its tool calls are not those in the history" in message


def test_a_history_that_begins_with_the_model() -> None:
    """Its first turn counts for a scenario that begins with the history."""
    text = "scenario: s\nmatch: {model: m}\nturns: [{reply: {text: x}}, {reply: {text: y}}]"
    found = chosen(MODEL, user("b"), served=ScenarioIndex(loads(text)))
    assert (found.position, found.start) == (1, 0)


def test_turns_after_an_automatic_one_are_compared() -> None:
    """Nothing is known of the calls of `auto: true`, but of those of the next turn."""
    served = ScenarioIndex(
        loads(
            "scenario: s\nmatch: {user: go}\nturns: [{reply: {auto: true}}, "
            "{reply: {tool: f, id: c1}}, {reply: {text: x}}]"
        )
    )
    first = (user("go"), called(("any", "call")), Message("tool", "r", call_id="any"))
    last = Message("tool", "r", call_id="c1")
    assert chosen(*first, called(("c1", "f")), last, served=served).position == 2
    message, *_ = refusal(*first, called(("c2", "g")), last, served=served)
    assert "its tool calls are not those in the history" in message
