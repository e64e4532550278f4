"""The scenario and the turn that answer follow from the request alone."""

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.core.errors import NoMatchError, RequestError
from mockllm.core.request import CallEcho, Message, OfferedTool, Request
from mockllm.play.matching.conversation import call_id
from mockllm.play.matching.index import ScenarioIndex, _token, mint_token
from mockllm.play.matching.select import select
from mockllm.play.replay.loading import loads
from mockllm.scenario.model import Match, Scenario, TextCondition, TurnSpec
from mockllm.scenario.part_model import AutoPart, TextPart

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
SERVED = ScenarioIndex(loads(SCENARIOS))


def user(text):
    return Message("user", text)


def called(*calls, text=""):
    """An assistant message with calls, given as (id, name)."""
    return Message("assistant", text, tuple(CallEcho(id, name, "{}") for id, name in calls))


def result(id, text="42"):
    return Message("tool", text, call_id=id)


ANSWER = Message("assistant", "something")


def selected(*messages, model="m", api="chat", headers=None, served=SERVED, **fields):
    """The scenario and turn that answer these messages, as `name:index`."""
    request = Request(api, model, {}, messages=messages, **fields)
    found = select(served, request, headers or {})
    return f"{found.scenario.name}:{found.index}"


def test_a_scenario_matches_the_last_user_message():
    """A substring of the message is enough."""
    assert selected(user("how is the weather?")) == "weather:0"


def test_the_next_turn_follows_from_the_history():
    """One assistant turn in the history means that the second one answers."""
    assert (
        selected(user("weather"), called(("call_w", "get_weather")), result("call_w"))
        == "weather:1"
    )


def test_consecutive_assistant_messages_are_one_turn():
    """Some clients store the text and the calls of a turn as two messages."""
    call = called(("call_w", "get_weather"))
    assert selected(user("weather"), ANSWER, call, result("call_w")) == "weather:1"


def test_the_most_conditions_win():
    """A scenario with a further condition that holds precedes one without it."""
    assert selected(user("weather"), model="gpt-4o") == "weather-gpt:0"


def test_a_conversation_that_is_over_begins_again():
    """One chat may contain several scenarios, and one of them twice."""
    call = called(("call_w", "get_weather"))
    first = [user("weather"), call, result("call_w"), ANSWER]
    assert selected(*first, user("weather again")) == "weather:0"
    assert selected(*first, user("weather again"), call, result("call_w")) == "weather:1"
    assert selected(*first, user("hello")) == "chat:0"
    assert selected(*first, user("hello"), ANSWER, user("so?")) == "chat:1"
    assert selected(*first, user("hello"), ANSWER, user("so?"), ANSWER, user("and?")) == "chat:2"


REFUNDS = """
scenario: refund
match: {user: refund}
turns: [{reply: {text: Which order do you mean?}}, {reply: {text: The money is on its way.}}]
---
scenario: weather
match: {user: weather}
turns: [{reply: {text: It rains.}}]
"""
WHICH = Message("assistant", "Which order do you mean?")
MONEY = Message("assistant", "The money is on its way.")


def refunds(*messages):
    return selected(*messages, served=ScenarioIndex(loads(REFUNDS)))


def test_a_conversation_goes_on_whatever_the_user_says():
    """The word of `match` may come in any later message."""
    begun = [user("refund please"), WHICH]
    assert refunds(*begun, user("yes, refund it")) == "refund:1"
    assert refunds(*begun, user("hm"), user("the refund of mine")) == "refund:1"
    shortened = Message("assistant", "which  order do you")
    assert refunds(begun[0], shortened, user("yes, refund it")) == "refund:1"


def test_past_its_end_it_begins_again_with_the_first_message_after_it():
    """The messages of the conversation that is over begin none."""
    whole = [user("refund please"), WHICH, user("yes, refund it"), MONEY]
    assert refunds(*whole, user("another refund")) == "refund:0"
    assert refunds(*whole, user("another refund"), WHICH, user("refund all")) == "refund:1"
    assert refunds(*whole, *whole, user("refund")) == "refund:0"


def test_a_scenario_that_a_later_message_matches_takes_over():
    """What the model said since is not the first scenario's, so it does not go on after that."""
    begun = [user("refund please"), WHICH, user("and the weather?")]
    assert refunds(*begun) == "weather:0"
    rain = Message("assistant", "It rains.")
    assert refunds(*begun, rain, user("so, my refund")) == "refund:0"


def test_without_another_beginning_texts_are_not_compared():
    """Clients rewrite texts."""
    assert refunds(user("refund"), Message("assistant", "rewritten"), user("yes")) == "refund:1"


REPLIES = st.sampled_from(
    [{"text": "go on"}, {"text": "go"}, {"text": "refund"}, {"tool": "find"}, {"tool": "pay"}]
)


@given(
    replies=st.lists(REPLIES, min_size=1, max_size=6),
    match=st.sampled_from([{"user": "refund"}, {"model": "m"}]),
    texts=st.lists(st.sampled_from(["refund", "my refund", "yes", ""]), min_size=6, max_size=6),
    has_user=st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_its_own_conversation_plays_its_turns_in_order(replies, match, texts, has_user):
    """Whatever the later messages of the user contain, and also if turns say the same."""
    turns = [{"reply": reply} for reply in replies]
    (scenario,) = loads(json.dumps({"scenario": "own", "match": match, "turns": turns}))
    messages, served = [user("a refund")], ScenarioIndex([scenario])
    for position, reply in enumerate(replies):
        assert selected(*messages, served=served) == f"own:{position}"
        if "tool" in reply:
            id = call_id(scenario, position, 0, "chat")
            messages += [called((id, reply["tool"])), result(id)]
        else:
            messages.append(Message("assistant", reply["text"]))
        if "text" in reply or has_user[position]:
            messages.append(user(texts[position]))


def test_an_earlier_beginning_is_found_behind_turns_that_disagree():
    """Calls in the history that are not the scenario's own end its conversation."""
    other = called(("call_x", "other"))
    with pytest.raises(NoMatchError, match="tool calls are not those"):
        selected(user("weather"), other, result("call_x"))


def test_ids_and_names_of_calls_are_compared():
    """The same name with another id is another conversation; text is not compared."""
    with pytest.raises(NoMatchError):
        selected(user("weather"), called(("call_other", "get_weather")), result("call_other"))
    assert (
        selected(user("weather"), called(("call_w", "get_weather"), text="hm"), result("call_w"))
        == "weather:1"
    )


def test_every_condition_has_to_hold():
    """Text, tools and headers are checked together."""
    tools = (OfferedTool("a"), OfferedTool("b"), OfferedTool("c"))
    assert selected(user("ping"), tools=tools, headers={"x-team": "red one"}) == "exact:0"
    with pytest.raises(NoMatchError, match=r"exact: match\.tools: the tool 'b' must be offered"):
        selected(user("ping"), tools=tools[:1], headers={"x-team": "red"})
    with pytest.raises(NoMatchError, match=r"exact: match\.headers: the header 'x-team'"):
        selected(user("ping"), tools=tools)


def test_a_scenario_without_a_user_condition_begins_with_the_history():
    """A scenario that only matches a model plays all of its turns, whatever the user messages
    are."""
    assert selected(user("a"), model="house-model") == "by-model:0"
    assert selected(user("a"), ANSWER, user("b"), model="house-model") == "by-model:1"


def test_a_scenario_can_be_named():
    """By header, by model, and by path; the history then counts from its start."""
    assert selected(user("x"), headers={"x-mockllm-scenario": "unlisted"}) == "unlisted:0"
    assert selected(user("x"), model="mock/unlisted") == "unlisted:0"
    assert selected(user("x"), model="gpt-4o@unlisted") == "unlisted:0"
    assert selected(user("x"), scenario="unlisted") == "unlisted:0"
    assert selected(user("x"), ANSWER, user("y"), model="mock/chat") == "chat:1"


def test_an_at_sign_in_a_model_is_not_a_scenario():
    """Some services have `@` in their models' names."""
    assert selected(user("weather"), model="claude-sonnet-4@20250514") == "weather:0"


def test_a_name_that_is_not_served_is_refused_with_the_nearest():
    """The error suggests the nearest names."""
    with pytest.raises(NoMatchError, match=r"no scenario 'wether'.*did you mean 'weather'"):
        selected(user("x"), model="mock/wether")


def test_apis_limit_where_a_scenario_plays():
    """A scenario for other protocols neither matches nor can be named."""
    assert selected(user("weather"), system="a poet") == "weather:0"
    assert selected(user("weather"), system="a poet", api="responses") == "only-responses:0"
    with pytest.raises(NoMatchError, match="does not play over 'chat'"):
        selected(user("weather"), model="mock/only-responses")


def test_past_the_end_is_an_error():
    """The error describes how to continue a finished conversation."""
    done = [user("weather"), called(("call_w", "get_weather")), result("call_w"), ANSWER]
    with pytest.raises(NoMatchError, match=r"'weather' has 2 turns.*turn 3.*repeat: true"):
        selected(*done)


def test_a_repeating_turn_never_ends():
    """Each repetition derives the ids that the history has."""
    served = ScenarioIndex(
        loads("scenario: e\nmatch: {user: go}\nturns: [{reply: {tool: f, id: c}, repeat: true}]")
    )
    messages = [user("go")]
    for _ in range(5):
        assert selected(*messages, served=served) == "e:0"
        messages += [called(("c", "f")), result("c")]


def test_equal_matches_are_an_error():
    """The error names both scenarios."""
    served = ScenarioIndex(
        loads(
            "scenario: a\nmatch: {user: one}\nturns: [{reply: hi}]\n---\n"
            "scenario: b\nmatch: {user: two}\nturns: [{reply: hi}]".replace(
                "reply: hi", "reply: {text: hi}"
            )
        )
    )
    with pytest.raises(NoMatchError, match=r"2 scenarios .* equally well: a, b"):
        selected(user("one two"), served=served)


def test_the_fallback_ranks_last():
    """`match: any` comes after every scenario with a condition."""
    auto = Scenario(
        "auto", (TurnSpec(reply=(AutoPart(),), repeat=True),), match=Match(anything=True)
    )
    served = ScenarioIndex([*SERVED.scenarios, auto])
    assert selected(user("weather"), served=served) == "weather:0"
    assert selected(user("what?"), served=served) == "auto:0"
    assert selected(user("what?"), called(("c", "f")), result("c"), served=served) == "auto:0"
    done = [user("weather"), called(("call_w", "get_weather")), result("call_w"), ANSWER]
    assert selected(*done, user("thanks"), served=served) == "auto:0"


def test_an_unmatched_request_gets_the_nearest_scenarios():
    """The error has the nearest scenario, its first condition that differs, and what to do."""
    with pytest.raises(NoMatchError) as caught:
        selected(user("tell me about the wheather"))
    message = caught.value.message
    assert "- weather: match.user: the last user message must contain 'weather', got" in message
    assert "--fallback auto" in message
    assert "8 served" in message


def test_a_token_contains_scenario_and_turn():
    """The id of the previous answer is enough to find the next turn."""
    token = mint_token(SERVED.by_name["weather"], 0)
    assert selected(result("call_w"), previous=token) == "weather:1"
    with pytest.raises(NoMatchError, match="past its end"):
        selected(result("call_w"), previous=mint_token(SERVED.by_name["weather"], 1))


def test_a_token_may_have_any_position():
    """Anyone can make up the id of an answer: nothing is made for each of its turns."""
    sides = "{reply: {text: Heads.}}, {reply: {text: Tails.}}"
    (scenario,) = loads(f"{{scenario: coin, turns: [{{one_of: [{sides}], repeat: true}}]}}")
    token = _token(scenario, 0xFFFFFF, (0, 1, 0))
    request = Request("responses", "gpt", {}, messages=(user("again"),), previous=token)
    tracemalloc.start()
    try:
        with pytest.raises(NoMatchError, match="Turn 16777216 of scenario 'coin'"):
            select(ScenarioIndex([scenario]), request, {})
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_after_the_end_a_new_question_begins_another_scenario():
    """A conversation continued by ids may go on in another scenario."""
    token = mint_token(SERVED.by_name["weather"], 1)
    assert selected(user("hello"), previous=token) == "chat:0"


@pytest.mark.parametrize(
    "token", ["", "0" * 40, "nonsense", mint_token(SERVED.by_name["weather"], 0)[:-1] + "x"]
)
def test_a_token_that_is_not_ours_is_refused(token):
    """An unknown id is an error."""
    with pytest.raises(RequestError, match="not found") as caught:
        selected(result("c"), api="responses", previous=token)
    assert caught.value.code == "previous_response_not_found"


def test_an_item_reference_counts_as_its_turn():
    """An item reference stands for the turn that the item comes from."""
    token = mint_token(SERVED.by_name["weather"], 0)
    messages = (user("weather"), Message("assistant", ref=token), result("call_w"))
    assert selected(*messages) == "weather:1"
    assert selected(*messages, Message("assistant", "x"), user("hello")) == "chat:0"


texts = st.text("ab c", min_size=1, max_size=12)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(texts, min_size=1, max_size=30, unique=True), st.text("ab c", max_size=40))
def test_the_index_agrees_with_a_linear_search(needles, text):
    """The index finds exactly the needles that are in the text."""
    scenarios = [
        Scenario(
            f"s{i}",
            (TurnSpec(reply=(TextPart("x"),)),),
            match=Match(user=TextCondition("contains", needle)),
        )
        for i, needle in enumerate(needles)
    ]
    found = {scenario.name for scenario in ScenarioIndex(scenarios).by_user_text(text)}
    assert found == {f"s{i}" for i, needle in enumerate(needles) if needle in text}
