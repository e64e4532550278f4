"""The verdict on a session's journal: each bad client breaks the one invariant that it should."""

from __future__ import annotations

import json

import pytest

from mockllm.checking.conversations.judge import (
    CONVERSATION_INVARIANTS,
    Verification,
    Violation,
    verify,
)
from mockllm.core.target import NO_TARGET
from mockllm.errors import UsageError
from mockllm.protocols import PROTOCOLS
from mockllm.replay.autoreply import auto_parts
from mockllm.replay.resolve import resolve
from mockllm.replay.session import Session
from tests.checking.conversations.bad_clients import (
    BAD,
    BOOK,
    ENDLESS,
    FIND,
    HOPS,
    OTHER,
    RESULTS,
    TWO,
    A,
    B,
    Conversation,
    a_result_twice,
    another_id,
    never_stops,
    renamed,
    responses,
    results_one_by_one,
)
from tests.checking.conversations.request_bodies import AssistantMessage, body, called, result

APIS = tuple(PROTOCOLS)

every_api = pytest.mark.parametrize("api", APIS)
strict_and_lenient = pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])


@pytest.mark.slow
@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
@every_api
@strict_and_lenient
def test_a_bad_client_breaks_exactly_one_invariant(bad, api, strict):
    """One mistake breaks one invariant and no other, whether requests are refused or not."""
    text, invariant = BAD[bad]
    conversation = Conversation(text, api, strict=strict)
    bad(conversation)
    found = conversation.verify(depth=4).violations
    assert {one.invariant for one in found} == {invariant}, found
    assert not conversation.verify(depth=4, leave_out=frozenset({invariant})).violations
    last = conversation.session.journal[-1].number
    assert all(one.exchange == last for one in found) or bad is never_stops


def test_every_invariant_has_a_bad_client():
    """Each invariant of conversations is broken by at least one of the bad clients."""
    assert {name for _, name in BAD.values()} == set(CONVERSATION_INVARIANTS)


@pytest.mark.parametrize("bad", [results_one_by_one, a_result_twice, another_id])
def test_a_violation_is_reported_once(bad):
    """Later requests repeat the whole history; a violation in it is reported for the first only."""
    conversation = Conversation(TWO, "chat", strict=False)
    bad(conversation)
    before = conversation.verify().violations
    bad(conversation)
    assert conversation.verify().violations == before


@pytest.mark.parametrize(
    ("items", "invariant"),
    [
        ([result(A, "42")], "tools-after-end"),
        ([*RESULTS, result(A, "42")], "answer-each-once"),
        ([result(A, "42"), result(renamed(B, id="nobody"), "7")], "answer-each-once"),
        (["never mind"], "request-valid"),
    ],
)
@strict_and_lenient
def test_results_for_a_stored_turn(items, invariant, strict):
    """With `previous_response_id` results are compared with the calls that were streamed."""
    conversation = Conversation(TWO, "responses", strict=strict)
    answer = conversation.request("numbers")
    conversation.send(responses(answer, *items))
    assert conversation.broken_invariants() == {invariant}


def test_a_second_result_for_a_stored_turn():
    """With `previous_response_id` a call that has a result must not get a second one."""
    conversation = Conversation(HOPS, "responses", strict=False)
    first = conversation.request("book")
    second = conversation.send(responses(first, result(FIND, "found")))
    conversation.send(responses(second, result(FIND, "found"), result(BOOK, "ok")))
    assert conversation.broken_invariants() == {"answer-each-once"}


def test_depth_counts_stored_turns():
    """A client that sends `previous_response_id` reaches the same depth as one that sends all."""
    conversation = Conversation(ENDLESS, "responses")
    answer = conversation.request("search")
    for position in range(5):
        turn = resolve(
            conversation.player.served.by_name["endless"], position, "responses", "call_"
        )
        results = [result(one, "nothing") for one in turn.tool_calls]
        answer = conversation.send(responses(answer, *results))
    assert conversation.verify(depth=6).good
    (violation,) = conversation.verify(depth=5).violations
    assert (violation.invariant, violation.exchange) == ("depth-bounded", 6)


def test_depth_counts_tool_calls_and_not_messages():
    """Eight turns of text break no limit of two: only turns with tool calls are counted."""
    conversation = Conversation(
        ENDLESS.replace("tool: search, arguments: {q: x}", "text: Tick."), "chat"
    )
    items = ["search"]
    for _ in range(8):
        conversation.request(*items)
        items += [AssistantMessage("Tick."), "search"]
    assert conversation.verify(depth=2).good


def test_calls_of_a_failed_stream_must_not_be_answered():
    """A result for a call that was streamed before an error breaks `continuation-error`."""
    text = HOPS.replace("{tool: book, id: call_2, arguments: {n: 1}}", "BROKEN").replace(
        "BROKEN", "[{tool: book, id: call_2, arguments: {n: 1}}, {error: {message: Oh.}}]"
    )
    conversation = Conversation(text, "chat")
    conversation.request("book")
    conversation.request("book", called(FIND), result(FIND, "found"))
    conversation.request(
        "book", called(FIND), result(FIND, "found"), AssistantMessage("Half an ans"), "Go on."
    )
    assert conversation.verify().violations == ()
    conversation.request(
        "book", called(FIND), result(FIND, "found"), called(BOOK), result(BOOK, "ok")
    )
    assert conversation.broken_invariants() == {"continuation-error"}


# How tools are offered


BAD_TOOLS = [
    ("chat", {"tools": [{"type": "function", "function": {"name": "no spaces"}}]}),
    ("chat", {"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]}),
    ("chat", {"tool_choice": "sometimes"}),
    ("responses", {"tools": [{"type": "function", "name": "x" * 65, "parameters": {}}]}),
    ("responses", {"tool_choice": {"type": "function", "name": "absent"}}),
    ("anthropic", {"tools": [{"name": "f", "input_schema": "none"}]}),
    ("anthropic", {"tool_choice": {"type": "always"}}),
    ("gemini", {"tools": [{"functionDeclarations": [{"name": "no spaces"}]}]}),
    ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "MAYBE"}}}),
    ("agui", {"tools": [{"name": "f", "description": "", "parameters": []}]}),
]


@pytest.mark.parametrize(("api", "fields"), BAD_TOOLS)
@strict_and_lenient
def test_an_invalid_tool_offer_is_reported_once(api, fields, strict):
    """A bad tool name, schema or choice is one violation, however often it is sent."""
    conversation = Conversation(TWO, api, strict=strict)
    for _ in range(2):
        conversation.send({**body(api, "numbers"), **fields})
    (violation,) = conversation.verify().violations
    assert violation.invariant == "request-valid"


def test_a_refused_request_breaks_request_valid():
    """The violation names the request and the field for which the API refuses it."""
    conversation = Conversation(TWO, "chat")
    conversation.send({**body("chat", "numbers"), "temperature": 3})
    (violation,) = conversation.verify().violations
    assert (violation.invariant, violation.exchange) == ("request-valid", 1)
    assert "temperature" in violation.message


def test_a_request_condition_of_a_turn_breaks_no_invariant():
    """A request that differs from a turn's `request` is refused, and is no violation."""
    conversation = Conversation(
        OTHER.replace("- reply", "- request: {offers: [x]}\n    reply", 1), "chat"
    )
    conversation.request("weather")
    assert conversation.verify() == Verification(invalid=(1,))


# The verdict


def test_a_verdict_as_json():
    """The JSON holds violations, unplayed turns, and unmatched and invalid requests."""
    conversation = Conversation(TWO, "chat")
    results_one_by_one(conversation)
    conversation.request("nothing answers this")
    found = conversation.verify()
    assert not found.good
    report = json.loads(json.dumps(found.as_json()))
    assert report["violations"] == [
        {
            "invariant": "tools-after-end",
            "exchange": 2,
            "message": found.violations[0].message,
        }
    ]
    assert report["unplayed"] == [{"scenario": "two", "turn": 1}]
    assert (report["unmatched"], report["invalid"], report["good"]) == ([3], [2], False)


def test_a_violation_as_a_line():
    """A violation as text names the invariant and the request."""
    assert str(Violation("multi-hop", 3, "why")) == "multi-hop, request 3: why"
    assert str(Violation("multi-hop", None, "why")) == "multi-hop: why"


def test_an_unknown_invariant_name_suggests_the_nearest():
    """A misspelt name in `leave_out` is an error that suggests the nearest name."""
    with pytest.raises(UsageError, match="Did you mean 'multi-hop'"):
        verify(Session("s"), {}, leave_out=frozenset({"multihop"}))


def test_calls_of_an_automatic_reply_are_compared():
    """Arguments that were changed in the history of an automatic reply break `history-faithful`."""
    conversation = Conversation(
        "scenario: auto\nmatch: any\nturns: [{reply: {auto: true}, repeat: true}]", "chat"
    )
    given = {**body("chat", "hi", tools=["number"]), "tool_choice": "required"}
    conversation.send(given)
    request = PROTOCOLS["chat"].parse(given, NO_TARGET, True)
    scenario = conversation.player.served.by_name["auto"]
    (tool_call,) = resolve(scenario, 0, "chat", "call_", auto=auto_parts(request)).tool_calls
    conversation.request(
        "hi", called(renamed(tool_call, arguments='{"a":1}')), result(tool_call, "x")
    )
    assert conversation.broken_invariants() == {"history-faithful"}
