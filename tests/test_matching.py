"""Which scenario and which turn answers is read off the request alone."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.core.request import CallEcho, Message, OfferedTool, Request
from mockllm.errors import NoMatchError, RequestError
from mockllm.matching.index import Catalogue, mint_token
from mockllm.matching.select import pick
from mockllm.replay.loading import loads
from mockllm.scenario.model import AutoPart, Match, Scenario, TextCondition, TextPart, TurnSpec

SCENARIOS = """
scenario: weather
match: {user: weather}
turns:
  - reply: {tool: get_weather, id: call_w, arguments: {city: Paris}}
  - reply: {text: It rains.}
---
scenario: weather-gpt
match: {user: weather, model: gpt-4*}
turns: [{reply: {text: GPT says it rains.}}]
---
scenario: chat
match: {user: {regex: '^(hi|hello)$'}}
turns: [{reply: {text: Hi!}}, {reply: {text: Go on.}}, {reply: {text: Bye.}}]
---
scenario: exact
match: {user: {equals: ping}, tools: [a, b], headers: {x-team: red}}
turns: [{reply: {text: pong}}]
---
scenario: by-model
match: {model: house-model}
turns: [{reply: {text: one}}, {reply: {text: two}}]
---
scenario: endless
match: {user: forever}
turns: [{reply: {tool: again}, repeat: true}]
---
scenario: unlisted
turns: [{reply: {text: named only}}]
---
scenario: only-responses
apis: [responses]
match: {user: weather, system: poet}
turns: [{reply: {text: verse}}]
"""
CATALOGUE = Catalogue(loads(SCENARIOS))


def user(text):
    return Message("user", text)


def called(*calls, text=""):
    """An assistant message with calls, given as (id, name)."""
    return Message("assistant", text, tuple(CallEcho(id, name, "{}") for id, name in calls))


def result(id, text="42"):
    return Message("tool", text, call_id=id)


SAID = Message("assistant", "something")


def ask(*messages, model="m", api="chat", headers=None, catalogue=CATALOGUE, **fields):
    """What answers these messages, as `name:index`."""
    request = Request(api, model, {}, messages=messages, **fields)
    found = pick(catalogue, request, headers or {}, "call_")
    return f"{found.scenario.name}:{found.index}"


def test_a_scenario_is_matched_by_what_the_user_says():
    """A substring of the last user message is enough."""
    assert ask(user("how is the weather?")) == "weather:0"


def test_the_next_turn_follows_from_the_history():
    """One assistant turn in the history means that the second one answers."""
    assert ask(user("weather"), called(("call_w", "get_weather")), result("call_w")) == "weather:1"


def test_consecutive_assistant_messages_are_one_turn():
    """Clients that store text and calls as two messages are understood."""
    call = called(("call_w", "get_weather"))
    assert ask(user("weather"), SAID, call, result("call_w")) == "weather:1"


def test_the_most_conditions_win():
    """A scenario with a further condition that holds goes before one without."""
    assert ask(user("weather"), model="gpt-4o") == "weather-gpt:0"


def test_the_conversation_begins_at_the_latest_user_message_that_meets_the_match():
    """One chat wanders through several scenarios, and through one of them twice."""
    call = called(("call_w", "get_weather"))
    first = [user("weather"), call, result("call_w"), SAID]
    assert ask(*first, user("weather again")) == "weather:0"
    assert ask(*first, user("weather again"), call, result("call_w")) == "weather:1"
    assert ask(*first, user("hello")) == "chat:0"
    assert ask(*first, user("hello"), SAID, user("so?")) == "chat:1"
    assert ask(*first, user("hello"), SAID, user("so?"), SAID, user("and?")) == "chat:2"


def test_an_earlier_beginning_is_found_behind_turns_that_disagree():
    """Calls in the history that are not the scenario's own end its conversation."""
    other = called(("call_x", "other"))
    with pytest.raises(NoMatchError, match="tool calls are not those"):
        ask(user("weather"), other, result("call_x"))


def test_ids_and_names_of_calls_are_compared():
    """The same name with another id is another conversation; text is not compared."""
    with pytest.raises(NoMatchError):
        ask(user("weather"), called(("call_other", "get_weather")), result("call_other"))
    assert (
        ask(user("weather"), called(("call_w", "get_weather"), text="hm"), result("call_w"))
        == "weather:1"
    )


def test_every_condition_has_to_hold():
    """Text, tools and headers together."""
    tools = (OfferedTool("a"), OfferedTool("b"), OfferedTool("c"))
    assert ask(user("ping"), tools=tools, headers={"x-team": "red one"}) == "exact:0"
    with pytest.raises(NoMatchError, match=r"exact: match\.tools: the tool 'b' must be offered"):
        ask(user("ping"), tools=tools[:1], headers={"x-team": "red"})
    with pytest.raises(NoMatchError, match=r"exact: match\.headers: the header 'x-team'"):
        ask(user("ping"), tools=tools)


def test_a_scenario_without_a_user_condition_begins_with_the_history():
    """Dedicating a model to a scenario plays all of its turns, whatever the user says."""
    assert ask(user("a"), model="house-model") == "by-model:0"
    assert ask(user("a"), SAID, user("b"), model="house-model") == "by-model:1"


def test_a_scenario_can_be_named():
    """By header, by model, and by path; the history then counts from its start."""
    assert ask(user("x"), headers={"x-mockllm-scenario": "unlisted"}) == "unlisted:0"
    assert ask(user("x"), model="mock/unlisted") == "unlisted:0"
    assert ask(user("x"), model="gpt-4o@unlisted") == "unlisted:0"
    assert ask(user("x"), scenario="unlisted") == "unlisted:0"
    assert ask(user("x"), SAID, user("y"), model="mock/chat") == "chat:1"


def test_an_at_sign_in_a_model_is_not_a_scenario():
    """Some services have `@` in their models' names."""
    assert ask(user("weather"), model="claude-sonnet-4@20250514") == "weather:0"


def test_a_name_that_is_not_served_is_refused_with_the_nearest():
    """A typo in a scenario's name is told with the right one."""
    with pytest.raises(NoMatchError, match=r"no scenario 'wether'.*Did you mean 'weather'"):
        ask(user("x"), model="mock/wether")


def test_apis_limit_where_a_scenario_plays():
    """A scenario for other protocols neither matches nor can be named."""
    assert ask(user("weather"), system="a poet") == "weather:0"
    assert ask(user("weather"), system="a poet", api="responses") == "only-responses:0"
    with pytest.raises(NoMatchError, match="does not play over 'chat'"):
        ask(user("weather"), model="mock/only-responses")


def test_past_the_end_is_an_error_that_says_so():
    """A conversation that is over says what can be done about it."""
    done = [user("weather"), called(("call_w", "get_weather")), result("call_w"), SAID]
    with pytest.raises(NoMatchError, match=r"'weather' has 2 turns.*turn 3.*repeat: true"):
        ask(*done)


def test_a_repeating_turn_never_ends():
    """The derived ids of each repetition are those of the history."""
    catalogue = Catalogue(
        loads("scenario: e\nmatch: {user: go}\nturns: [{reply: {tool: f, id: c}, repeat: true}]")
    )
    messages = [user("go")]
    for _ in range(5):
        assert ask(*messages, catalogue=catalogue) == "e:0"
        messages += [called(("c", "f")), result("c")]


def test_equal_matches_are_an_error():
    """Two scenarios that answer equally well are both named."""
    catalogue = Catalogue(
        loads(
            "scenario: a\nmatch: {user: one}\nturns: [{reply: hi}]\n---\n"
            "scenario: b\nmatch: {user: two}\nturns: [{reply: hi}]".replace(
                "reply: hi", "reply: {text: hi}"
            )
        )
    )
    with pytest.raises(NoMatchError, match=r"2 scenarios .* equally well: a, b"):
        ask(user("one two"), catalogue=catalogue)


def test_the_fallback_answers_only_what_nothing_else_does():
    """`match: any` comes last, also behind a scenario with a single condition."""
    auto = Scenario(
        "auto", (TurnSpec(reply=(AutoPart(),), repeat=True),), match=Match(anything=True)
    )
    catalogue = Catalogue([*CATALOGUE.scenarios, auto])
    assert ask(user("weather"), catalogue=catalogue) == "weather:0"
    assert ask(user("what?"), catalogue=catalogue) == "auto:0"
    assert ask(user("what?"), called(("c", "f")), result("c"), catalogue=catalogue) == "auto:0"
    done = [user("weather"), called(("call_w", "get_weather")), result("call_w"), SAID]
    assert ask(*done, user("thanks"), catalogue=catalogue) == "auto:0"


def test_what_matches_nothing_is_told_the_nearest():
    """The nearest scenario, its first condition that differs, and what can be done."""
    with pytest.raises(NoMatchError) as caught:
        ask(user("tell me about the wheather"))
    message = caught.value.message
    assert "- weather: match.user: the last user message must contain 'weather', got" in message
    assert "--fallback auto" in message
    assert "8 served" in message


def test_a_token_tells_scenario_and_turn():
    """An answer that is pointed at says by itself what comes next."""
    token = mint_token(CATALOGUE.by_name["weather"], 0)
    assert ask(result("call_w"), previous=token) == "weather:1"
    with pytest.raises(NoMatchError, match="past its end"):
        ask(result("call_w"), previous=mint_token(CATALOGUE.by_name["weather"], 1))


def test_after_the_end_a_new_question_begins_another_scenario():
    """A chained conversation can wander, too."""
    token = mint_token(CATALOGUE.by_name["weather"], 1)
    assert ask(user("hello"), previous=token) == "chat:0"


@pytest.mark.parametrize(
    "token", ["", "0" * 40, "nonsense", mint_token(CATALOGUE.by_name["weather"], 0)[:-1] + "x"]
)
def test_a_token_that_is_not_ours_is_refused(token):
    """Nothing is guessed from an unknown id."""
    with pytest.raises(RequestError, match="not found") as caught:
        ask(result("c"), previous=token)
    assert caught.value.code == "previous_response_not_found"


def test_an_item_that_is_pointed_at_tells_the_turn():
    """Item references stand for the turn that they come from."""
    token = mint_token(CATALOGUE.by_name["weather"], 0)
    messages = (user("weather"), Message("assistant", ref=token), result("call_w"))
    assert ask(*messages) == "weather:1"
    assert ask(*messages, Message("assistant", "x"), user("hello")) == "chat:0"


words = st.text("ab c", min_size=1, max_size=12)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(words, min_size=1, max_size=30, unique=True), st.text("ab c", max_size=40))
def test_the_index_finds_what_a_search_finds(needles, text):
    """The index never misses a needle and never invents one."""
    scenarios = [
        Scenario(
            f"s{i}",
            (TurnSpec(reply=(TextPart("x"),)),),
            match=Match(user=TextCondition("contains", needle)),
        )
        for i, needle in enumerate(needles)
    ]
    found = {scenario.name for scenario in Catalogue(scenarios).for_text(text)}
    assert found == {f"s{i}" for i, needle in enumerate(needles) if needle in text}
