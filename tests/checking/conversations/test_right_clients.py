"""Conversations of correct clients: the verdict has no violation."""

from __future__ import annotations

import json
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.checking.conversations.judge import Verification
from mockllm.play.matching.conversation import planned_calls, turn_at
from mockllm.play.replay.client_requests import first_body, user_text
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.replay.loading import load, shipped_scenarios
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import CALLING
from tests.cases import for_all
from tests.checking.conversations.bad_clients import (
    BOOK,
    BOTH,
    BREAKS,
    DELETE,
    FAILS,
    FIND,
    HOPS,
    LIST,
    LOOK,
    MALFORMED,
    OTHER,
    READ,
    REPORT,
    RESULTS,
    THINK,
    THOUGHT,
    TOOLS,
    TWO,
    A,
    B,
    Conversation,
    W,
    renamed,
    responses,
    thinks,
    thoughtful_body,
)
from tests.checking.conversations.request_bodies import (
    AssistantMessage,
    body,
    call,
    called,
    result,
    results_of_responses,
)

APIS = CALLING

every_api = for_all("api", APIS)
strict_and_lenient = for_all("strict", [True, False], ids=["strict", "lenient"])


@every_api
@strict_and_lenient
def test_a_correct_client_breaks_no_invariant(api, strict):
    """Results in the order of the calls or in another, and further messages of the user."""
    conversation = Conversation(TWO + OTHER, api, strict=strict)
    conversation.request("numbers")
    conversation.request("numbers", BOTH, *RESULTS)
    conversation.request("weather")
    conversation.request("weather", called(W), result(W, "snow"))
    conversation.request(
        "numbers", called(B, A), *reversed(RESULTS), AssistantMessage("Done."), "and the weather?"
    )
    assert conversation.verify() == Verification()
    assert conversation.verify().good


MATCHES_ALL = "Error: not found. CONFIRMED"
"""A result that every regular expression in the shipped scenarios matches."""


ONE_WAY = [one for one in load([shipped_scenarios()]) if not one.varies]
"""The shipped scenarios whose turns say by themselves what a client gets."""


def calls_and_results(scenario, position, api):
    """The calls of a turn whose arguments parse, and the results that the next turn requires."""
    planned = planned_calls(scenario, position, api) or ()
    broken = {one.id for one in planned if one.malformed}
    turn = resolve(scenario, position, api)
    calls = [one for one in turn.tool_calls if one.id not in broken]
    after = turn_at(scenario, position + 1, api)
    wanted = dict(after.request.results) if after is not None and after.request else {}
    texts = {
        id: MATCHES_ALL if one.text.op == "regex" else one.text.value for id, one in wanted.items()
    }
    return calls, [texts.get(one.id, "fine") for one in calls]


@pytest.mark.slow
@every_api
@for_all("scenario", ONE_WAY, ids=lambda one: one.name)
def test_a_client_that_plays_a_shipped_scenario_breaks_no_invariant(api, scenario):
    """A client that plays a shipped scenario to its end breaks no invariant."""
    conversation, protocol = Conversation(scenario, api), PROTOCOLS[api]
    body_sent = first_body(protocol, "mock", user_text(scenario), scenario.tools)
    for position in range(len(scenario.turns)):
        for _ in turn_at(scenario, position, api).attempts:
            conversation.send(body_sent)
        exchange = conversation.send(body_sent)
        assert exchange.outcome in ("played", "error"), exchange.problems
        if exchange.outcome == "error" or scenario.name == "auto":
            break
        calls, results = calls_and_results(scenario, position, api)
        if not calls:
            break
        body_sent = protocol.client.continuation(
            body_sent, exchange.played.answer_id or "", calls, results
        )
    assert conversation.verify(once=True).violations == ()


@every_api
def test_equal_conversations_at_once_are_kept_separate(api):
    """Two conversations with equal requests are not judged as one that contradicts itself."""
    conversation = Conversation(TWO, api)
    conversation.request("numbers")
    conversation.request("numbers", ended=None)
    conversation.request("numbers", BOTH, result(A, "1"), result(B, "2"))
    conversation.request("numbers", BOTH, result(A, "3"), result(B, "4"))
    assert conversation.verify().good


@st.composite
def interleavings(draw):
    """Scenarios as YAML, their number, and the order in which clients send: each entry is a client
    and whether it repeats its last request."""
    numbers = count()
    documents = []
    for name in range(draw(st.integers(1, 2))):
        sizes = draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
        turns = [
            {
                "reply": [
                    {"tool": draw(st.sampled_from(TOOLS)), "id": f"call_{next(numbers)}"}
                    for _ in range(size)
                ]
                or [{"text": "Said."}]
            }
            for size in sizes
        ]
        documents.append({"scenario": f"s{name}", "match": {"user": f"word{name}"}, "turns": turns})
    order = draw(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40))
    return "\n---\n".join(map(json.dumps, documents)), len(documents), order


def correct_requests(conversation, scenario, name):
    """The histories that a correct client sends, one after each answer."""
    items = [f"word{name}"]
    for position in range(len(scenario.turns)):
        yield list(items)
        turn = resolve(scenario, position, conversation.api)
        calls = turn.tool_calls
        items.append(called(*calls) if calls else AssistantMessage(turn.text))
        items += [result(one, f"{one.id} gave this") for one in calls] or ["Go on."]


@pytest.mark.slow
@every_api
@given(interleaving=interleavings())
@settings(max_examples=40)
def test_interleaved_correct_clients_break_no_invariant(api, interleaving):
    """Several clients that send at once, and repeat requests, break no invariant."""
    text, names, order = interleaving
    conversation = Conversation(text, api)
    served_scenarios = conversation.player.served.by_name
    clients = [
        correct_requests(conversation, served_scenarios[f"s{n % names}"], n % names)
        for n in range(4)
    ]
    latest = {}
    for number, again in order:
        if not again or number not in latest:
            latest[number] = next(clients[number], latest.get(number))
        if latest[number] is not None:
            conversation.request(*latest[number])
    found = conversation.verify()
    assert (found.unmatched, found.invalid) == ((), ())
    assert [violation for violation in found.violations if violation.invariant != "multi-hop"] == []
    for client in clients:
        for items in client:
            conversation.request(*items)
    assert conversation.verify().violations == ()


@every_api
@for_all("sent_back", [True, False])
def test_malformed_calls_may_be_left_out(api, sent_back):
    """A call whose arguments do not parse may be sent back in any form, or left out."""
    broken, fine = call("number", "call_x", "{}"), call("number", "call_y", '{"of":"bob"}')
    calls = (broken, fine) if sent_back else (fine,)
    conversation = Conversation(MALFORMED, api)
    conversation.request("broken")
    conversation.request("broken", called(*calls), *(result(one, "x") for one in calls))
    assert conversation.verify().good


@every_api
def test_a_request_may_be_retried(api):
    """Identical retries break no invariant, after an error or without one."""
    conversation = Conversation(BREAKS, api)
    for _ in range(3):
        conversation.request("delete")
    for _ in range(3):
        conversation.request("delete", called(DELETE), result(DELETE, "done"))
    conversation.request("delete", called(DELETE), result(DELETE, "done"), "Try again.")
    assert conversation.verify().violations == ()


@every_api
def test_an_abandoned_stream_may_be_requested_again(api):
    """A client that aborts a stream and sends the request again may use the second answer."""
    conversation = Conversation(TWO, api)
    conversation.request("numbers", client_gone=True, ended=None, duration=0.5)
    conversation.request("numbers")
    conversation.request("numbers", BOTH, *RESULTS)
    assert conversation.verify().good


@every_api
def test_a_user_may_go_on_after_a_cancellation(api):
    """After an abort, results that report the cancellation may come with a new user message."""
    conversation = Conversation(TWO, api)
    conversation.request("numbers", client_gone=True, ended=None, duration=0.5)
    conversation.request(
        "numbers", BOTH, result(A, "cancelled"), result(B, "cancelled"), "Stop, please."
    )
    assert conversation.verify().violations == ()


@every_api
def test_turns_that_were_not_streamed_here_are_not_judged(api):
    """A turn in the history that was not streamed in this session is not compared."""
    conversation = Conversation(TWO, api)
    conversation.request("numbers", called(A, renamed(B, arguments='{"of":"eve"}')), *RESULTS)
    assert conversation.verify().violations == ()


@every_api
def test_old_turns_may_be_shortened(api):
    """Only the newest turn is compared: clients may shorten older ones."""
    conversation = Conversation(HOPS, api)
    conversation.request("book")
    conversation.request("book", called(FIND), result(FIND, "found"))
    shortened = renamed(FIND, arguments='{"left":"out"}')
    conversation.request(
        "book", called(shortened), result(FIND, "..."), called(BOOK), result(BOOK, "ok")
    )
    assert conversation.verify().good


WITHOUT_TOOLS = {
    "takes no calls": ["look", AssistantMessage("I will look."), "And?"],
    "another conversation": ["look", AssistantMessage("Where?"), "There."],
    "summarizes": ["Before: you looked, and found it.", AssistantMessage("Yes."), "look"],
    "forgets older turns": [
        "look",
        called(FIND),
        result(FIND, "x"),
        AssistantMessage("ok"),
        "And?",
    ],
}
"""Histories that lack a call, though the client loses none."""


@every_api
@for_all("history", WITHOUT_TOOLS.values(), ids=WITHOUT_TOOLS)
def test_calls_may_be_missing_where_no_tool_is_offered(api, history):
    """A client that takes no calls leaves them out; others shorten, or are in other talks."""
    conversation = Conversation(LOOK, api, strict=False)
    conversation.send(body(api, "look"))
    conversation.send(body(api, *history))
    assert conversation.verify().violations == ()


def test_calls_without_ids_are_matched_by_name_and_arguments():
    """Gemini calls may have no id: they are matched by name and arguments."""
    conversation = Conversation(TWO, "gemini")

    def request(*items):
        given = json.loads(json.dumps(body("gemini", *items)).replace('"id": ', '"no": '))
        conversation.send(given)

    request("numbers")
    request("numbers", called(B, A), *reversed(RESULTS))
    assert conversation.verify().good
    request("numbers", called(A, renamed(B, arguments='{"of":"eve"}')), *RESULTS)
    (violation,) = conversation.verify().violations
    assert violation.invariant == "history-faithful"
    assert '{"of":"eve"}' in violation.message


def test_a_client_that_sends_previous_response_id():
    """A request with `previous_response_id` needs no calls in its input."""
    conversation = Conversation(HOPS, "responses")
    one = conversation.request("book")
    two = conversation.send(responses(one, result(FIND, "found")))
    conversation.send(responses(two, result(BOOK, "ok")))
    assert conversation.verify().good


def test_stored_conversations_and_item_references_are_followed():
    """`conversation` and `item_reference` are resolved to the turns that they stand for."""
    conversation = Conversation(HOPS, "responses")
    for items in (["book"], [result(FIND, "found")], [result(BOOK, "ok")]):
        given = {"model": "gpt-4o", "input": results_of_responses(items)}
        conversation.send({**given, "conversation": "conv_1"})
    answer = conversation.request("book")
    reference = {
        "type": "item_reference",
        "id": f"fc_{answer.played.answer_id.partition('_')[2]}0000",
    }
    input_items = [*results_of_responses(["book"]), reference]
    conversation.send(
        {"model": "m", "input": input_items + results_of_responses([result(FIND, "found")])}
    )
    assert conversation.verify().good


def test_calls_of_hosted_tools_are_not_judged():
    """Results of tools that Responses runs itself have calls that no scenario has."""
    conversation = Conversation(OTHER, "responses")
    hosted = [
        {"type": "computer_call", "call_id": "cc_1", "action": {}},
        {"type": "computer_call_output", "call_id": "cc_1", "output": {}},
    ]
    conversation.send({"model": "m", "input": [*hosted, {"role": "user", "content": "weather"}]})
    assert conversation.verify().violations == ()


ALL = frozenset(("extra-request", "text-in-history"))


@every_api
@for_all("text", ["I will look.", "  I will look", "I will", "Looking."])
def test_text_that_is_sent_back_in_any_form(api, text):
    """Clients trim and shorten the text of a turn with calls; only its absence is reported."""
    conversation = Conversation(LOOK, api)
    conversation.request("look")
    conversation.request("look", AssistantMessage(text, (FIND,)), result(FIND, "found"))
    assert conversation.verify(require=ALL).good


@every_api
def test_text_may_be_left_out_where_it_is_not_required(api):
    """Every service accepts calls without the text of their turn, so it is judged on request."""
    conversation = Conversation(LOOK, api)
    conversation.request("look")
    conversation.request("look", called(FIND), result(FIND, "found"))
    assert conversation.verify().good


@every_api
def test_a_turn_without_text_needs_none(api):
    """Calls alone are the whole turn."""
    conversation = Conversation(TWO, api)
    conversation.request("numbers")
    conversation.request("numbers", BOTH, *RESULTS)
    assert conversation.verify(require=ALL).good


REPEATS = """
scenario: repeats
match: {user: repeat}
turns:
  - reply: {tool: find, id: call_1}
    repeat: true
"""


@every_api
def test_a_model_that_makes_a_call_with_the_same_id_again(api):
    """Where the model repeats an id, the history has the call and its result twice."""
    conversation = Conversation(REPEATS, api)
    items = ["repeat"]
    for _ in range(4):
        conversation.request(*items)
        items += [called(FIND), result(FIND, "found")]
    assert conversation.verify().violations == ()


@every_api
def test_a_conversation_that_began_elsewhere(api):
    """Turns in the first history are neither judged nor missed."""
    conversation = Conversation(HOPS, api)
    conversation.request("book", called(FIND), result(FIND, "found"))
    conversation.request(
        "book", called(FIND), result(FIND, "found"), called(BOOK), result(BOOK, "ok")
    )
    assert conversation.verify(require=ALL) == Verification()


@every_api
@for_all(
    "fields",
    [
        {"ended": 1.9},
        {"ended": 0.0},
        {"client_gone": True, "ended": None, "duration": 5.0},
        {"client_gone": True, "ended": 9.0, "duration": 9.0},
        {"ended": None},
    ],
    ids=["just over", "over", "left", "left at the end", "still open"],
)
def test_a_cancelled_client_that_leaves(api, fields):
    """A client that leaves the stream, or whose stream ends by itself meanwhile, is right."""
    conversation = Conversation(REPORT, api)
    conversation.request("weather", **fields)
    conversation.request("weather", AssistantMessage("It is"), "Stop. And the numbers?")
    assert conversation.verify().violations == ()


@every_api
def test_another_conversation_may_go_on_while_a_stream_is_open(api):
    """An equal conversation whose answer is complete may be the one that goes on."""
    conversation = Conversation(REPORT, api)
    conversation.request("weather")
    conversation.request("weather", ended=9.0)
    conversation.request("weather", AssistantMessage("It is going to snow."), "And then?")
    assert conversation.verify().violations == ()


@pytest.mark.parametrize("api", THOUGHT)
def test_opaque_values_that_are_sent_back_unchanged(api):
    """A client that sends back what it received is right."""
    conversation = Conversation(THINK, api)
    thinks(conversation)
    assert conversation.send(thoughtful_body(api, THOUGHT[api])).outcome == "played"
    assert conversation.verify().good


def test_thinking_may_be_left_out_where_it_is_not_enabled():
    """Without `thinking` Anthropic ignores the blocks, so a client may leave them out."""
    conversation = Conversation(THINK, "anthropic")
    thinks(conversation)
    conversation.request("think", called(FIND), result(FIND, "found"))
    assert conversation.verify().good


def test_a_reasoning_item_may_be_left_out():
    """A Responses client may send the call alone, or let the service keep the items."""
    conversation = Conversation(THINK, "responses")
    thinks(conversation)
    conversation.send({**thoughtful_body("responses", {}), "store": True})
    conversation.request("think", called(FIND), result(FIND, "found"))
    assert conversation.verify().good


@pytest.mark.parametrize(
    "signature",
    ["Y2FsbA", "skip_thought_signature_validator", "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="],
)
def test_forms_of_a_thought_signature(signature):
    """Base64 without padding is the same value; the values that switch the check off are right."""
    conversation = Conversation(THINK, "gemini")
    thinks(conversation)
    conversation.send(thoughtful_body("gemini", {"thoughtSignature": signature}))
    assert conversation.verify().good


GATEWAY = FAILS.replace("scenario: fails", "scenario: fails\nids: any").replace(
    "results: {call_r: {error: true}}", "results: {0: {error: true}, 1: {contains: a}}"
)


@every_api
@strict_and_lenient
@for_all("positions", [True, False], ids=["positions", "ids"])
def test_a_gateway_with_ids_of_its_own(api, strict, positions):
    """With `ids: any` calls are known by order and name, and results by position or by the ids of
    the scenario."""
    text = GATEWAY if positions else GATEWAY.replace("0:", "call_r:").replace("1:", "call_l:")
    conversation = Conversation(text, api, strict=strict)
    read, listed = renamed(READ, id="gw_1"), renamed(LIST, id="gw_2")
    conversation.request("read")
    last = conversation.request(
        "read",
        called(read, listed),
        result(listed, "a b"),
        result(read, "error: no such file", error=True),
    )
    assert last.outcome == "played", last.problems
    assert conversation.verify(require=ALL).good


@every_api
def test_a_mistake_behind_a_gateway(api):
    """Arguments, missing calls and failures are judged as they are with the scenario's own ids."""
    conversation = Conversation(TWO.replace("scenario: two", "scenario: two\nids: any"), api)
    one, two = renamed(A, id="gw_1"), renamed(B, id="gw_2", arguments='{"of":"eve"}')
    conversation.request("numbers")
    conversation.request("numbers", called(one, two), result(one, "42"), result(two, "7"))
    assert conversation.broken_invariants() == {"history-faithful"}
    conversation = Conversation(GATEWAY, api, strict=False)
    read, listed = renamed(READ, id="gw_1"), renamed(LIST, id="gw_2")
    conversation.request("read")
    conversation.request("read", called(read, listed), result(read, "fine"), result(listed, "a b"))
    assert conversation.broken_invariants() == {"failure-reported"}


@strict_and_lenient
def test_a_gateway_that_continues_a_stored_answer(strict):
    """With `previous_response_id` there are only results, which are known by their order."""
    conversation = Conversation(GATEWAY, "responses", strict=strict)
    read, listed = renamed(READ, id="gw_1"), renamed(LIST, id="gw_2")
    answer = conversation.request("read")
    results = (result(read, "error: no such file"), result(listed, "a b"))
    last = conversation.send(responses(answer, *results))
    assert last.outcome == "played", last.problems
    assert conversation.verify().good
    second = Conversation(GATEWAY, "responses", strict=strict)
    answer = second.request("read")
    second.send(responses(answer, results[0]))
    assert "tools-after-end" in second.broken_invariants()
