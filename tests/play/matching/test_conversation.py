"""Positions in a conversation, the calls of its turns, and what a request must bring for them."""

from __future__ import annotations

import pytest

from mockllm.core.errors import ExpectationError, RequestError
from mockllm.core.request import CallEcho, Message, Request
from mockllm.core.seeded import derive
from mockllm.play.matching.conversation import (
    PlannedCall,
    Selection,
    call_id,
    planned_calls,
    read_history,
    tool_parts,
    turn_at,
    turn_index,
)
from mockllm.play.matching.request_validation import check_continuation, check_expectations
from mockllm.play.replay.loading import loads
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols import PROTOCOLS


def scenario(text: str) -> Scenario:
    (one,) = loads(f"scenario: s\n{text}")
    return one


PLAIN = scenario("turns: [{reply: {text: a}}, {reply: {text: b}}]")
REPEATING = scenario("turns: [{reply: {text: a}}, {reply: {text: b}, repeat: true}]")
RESTARTING = scenario("then: restart\nturns: [{reply: {text: a}}, {reply: {text: b}}]")


@pytest.mark.parametrize(
    ("one", "indexes"),
    [
        (PLAIN, [0, 1, None, None, None]),
        (REPEATING, [0, 1, 1, 1, 1]),
        (RESTARTING, [0, 1, 0, 1, 0]),
    ],
)
def test_the_turn_at_a_position(one: Scenario, indexes: list[int | None]) -> None:
    """Past the last turn a scenario ends, repeats that turn, or begins anew."""
    assert [turn_index(one, position) for position in range(5)] == indexes
    for position, index in enumerate(indexes):
        expected = None if index is None else one.turns[index]
        assert turn_at(one, position, "chat") is expected


VARIANT = scenario(
    "turns: [{reply: {tool: f, id: c}, "
    "when: [{api: anthropic, reply: [{tool: g, id: d}, {tool: h, id: e}]}]}]"
)


def test_a_turn_may_differ_by_protocol() -> None:
    """The calls are those of the turn as the protocol plays it."""
    assert planned_calls(VARIANT, 0, "chat") == (PlannedCall("f", "c"),)
    assert planned_calls(VARIANT, 0, "anthropic") == (
        PlannedCall("g", "d"),
        PlannedCall("h", "e"),
    )


GROUPS = scenario(
    """
turns:
  - reply:
      - {text: x}
      - {tool: a}
      - parallel: [{tool: b, id: own}, {tool: c}]
      - interleaved: [{tool: d, arguments: 'no json', malformed: true}, {text: y}]
        order: [0, 1, 0]
  - reply: {auto: true}
"""
)


def test_the_calls_of_a_reply() -> None:
    """In order, groups included, numbered through for the ids that are derived."""
    names = [part.name for part in tool_parts(GROUPS.turns[0].reply)]
    assert names == ["a", "b", "c", "d"]
    assert planned_calls(GROUPS, 0, "chat") == (
        PlannedCall("a", call_id(GROUPS, 0, 0, "chat")),
        PlannedCall("b", "own"),
        PlannedCall("c", call_id(GROUPS, 0, 2, "chat")),
        PlannedCall("d", call_id(GROUPS, 0, 3, "chat"), malformed=True),
    )


def test_calls_that_are_not_known() -> None:
    """Those of an automatic reply, and those past the end."""
    assert planned_calls(GROUPS, 1, "chat") is None
    assert planned_calls(GROUPS, 2, "chat") is None
    assert planned_calls(PLAIN, 0, "chat") == ()


def test_a_derived_id_never_changes() -> None:
    """It depends on seed, name, position and number, and begins as those of the API."""
    assert call_id(GROUPS, 0, 2, "chat") == "call_" + derive("s", "s", 0, "call", 2)
    seeded = scenario("seed: 5\nturns: [{reply: {tool: a}}]")
    assert call_id(seeded, 3, 1, "anthropic") == "toolu_" + derive("5", "s", 3, "call", 1)


def test_any_id_may_stand_for_one_that_was_recorded_without() -> None:
    """A recorded call without an id: clients make one up."""
    text = "turns: [{reply: [{tool: a}, {tool: b, id: own}], recorded: s.1.jsonl}]"
    calls = planned_calls(scenario(text), 0, "gemini")
    assert calls is not None
    assert [call.any_id for call in calls] == [True, False]


# The history


def messages(*roles: str) -> list[Message]:
    kinds = {"s": "system", "u": "user", "a": "assistant", "t": "tool"}
    return [Message(kinds[role[0]], role) for role in roles]  # type: ignore[arg-type]


def test_the_turns_of_a_history() -> None:
    """Consecutive messages of the model are a turn, system messages among them or not."""
    read = messages("s1", "u1", "u2", "a1", "s2", "a2", "t1", "u3", "a3", "t2", "u4", "s3")
    history = read_history(read)
    assert [[message.text for message in turn.messages] for turn in history.turns] == [
        ["a1", "a2"],
        ["a3"],
    ]
    assert [[one.text for one in turn.before] for turn in history.turns] == [
        ["u1", "u2"],
        ["t1", "u3"],
    ]
    assert [turn.end for turn in history.turns] == [5, 8]
    assert [turn.text for turn in history.turns] == ["a1a2", "a3"]
    assert [turn.user for turn in history.turns] == ["u2", "u3"]
    assert [one.text for one in history.after] == ["t2", "u4"]
    assert (history.user, history.opening) == ("u4", "u1")


def test_a_history_from_a_later_beginning() -> None:
    """Indexes are those of the whole list."""
    history = read_history(messages("u1", "a1", "u2", "a2", "t1"), 2)
    assert [(turn.text, turn.end, turn.user) for turn in history.turns] == [("a2", 3, "u2")]
    assert (history.user, history.opening) == (None, "u2")


def test_a_history_that_begins_with_the_model() -> None:
    """Nothing is before its first turn."""
    history = read_history(messages("a1", "u1"))
    assert (history.turns[0].before, history.turns[0].user, history.opening) == ((), None, "")
    assert read_history([]).opening == ""
    assert read_history(messages("u1")).opening == "u1"


def test_the_calls_of_a_turn_in_the_history() -> None:
    """Those of all its messages, in order."""
    calls = [CallEcho(str(n), "f", "{}") for n in range(3)]
    read = [Message("assistant", "", (calls[0],)), Message("assistant", "", tuple(calls[1:]))]
    assert read_history(read).turns[0].calls == tuple(calls)


# What a request must bring


CONDITIONS = scenario(
    """
turns:
  - reply: [{tool: f, id: call_1}]
  - reply: [{tool: g, id: call_2}]
  - request: {results: {call_1: one, call_2: two}, offers: [h]}
    reply: {text: x}
"""
)


def refused(*sent: Message, start: int = 0) -> ExpectationError:
    request = Request("chat", "m", {}, messages=sent)
    selection = Selection(CONDITIONS, 2, 2, start)
    spec = CONDITIONS.turns[2]
    with pytest.raises(ExpectationError) as caught:
        check_expectations(selection, spec, request, PROTOCOLS["chat"])
    return caught.value


def test_conditions_that_are_not_met_are_listed() -> None:
    """Turn, scenario and each condition; results before the conversation do not count."""
    before = Message("tool", "one", call_id="call_1")
    error = refused(before, Message("user", "x"), Message("tool", "2", call_id="call_2"), start=1)
    assert error.message == (
        "Turn 3 of scenario 's' expects another request:\n"
        "- request.results: the result of call 'call_1' must be sent, but is not there; "
        "results were sent for: call_2\n"
        "- request.results: the result of call 'call_2' must contain 'two', got '2'\n"
        "- request.offers: the tool 'h' must be offered; offered: none"
    )
    assert (error.code, error.status, error.param) == ("unexpected_request", 400, None)


def test_results_by_name_belong_to_the_calls_of_all_turns() -> None:
    """Without ids (Gemini) the calls of the earlier turns are counted through."""
    sent = [Message("tool", "one", name="f"), Message("tool", "two", name="g")]
    error = refused(*sent)
    assert error.message.splitlines()[1:] == [
        "- request.offers: the tool 'h' must be offered; offered: none"
    ]


CONTINUED = scenario(
    """
turns:
  - reply: [{tool: f, id: call_1}, {tool: g, id: call_2, arguments: no json, malformed: true}]
  - reply: {text: x}
"""
)


def continuation(*sent: Message, one: Scenario = CONTINUED, api: str = "responses") -> str | None:
    """The message of the refusal; None where the request is accepted."""
    selection = Selection(one, 1, 1, continued=True)
    request = Request(api, "m", {}, messages=sent)
    try:
        check_continuation(selection, request, PROTOCOLS[api])
    except RequestError as error:
        return f"{error.message} ({error.status}, {error.param})"
    return None


def result(id: str) -> Message:
    return Message("tool", "x", call_id=id)


def test_a_continuation_brings_all_results() -> None:
    """One for each call that is not malformed, and for no other call; the order is free."""
    assert continuation(result("call_1")) is None
    assert continuation(result("call_2"), result("call_1")) is None
    assert continuation(Message("user", "x"), result("call_1")) is None
    assert continuation() == "No tool output found for function call call_1. (400, input)"
    assert (
        continuation(result("call_2"))
        == "No tool output found for function call call_1. (400, input)"
    )
    assert continuation(result("call_1"), result("call_9"), result("call_8")) == (
        "No tool call found for function call output with call_id call_8. (400, input)"
    )


def test_a_continuation_that_is_not_judged() -> None:
    """One with a history of its own, one of an automatic reply, and one where answers are not
    kept."""
    assert continuation(Message("assistant", "x"), result("call_9")) is None
    automatic = scenario("turns: [{reply: {auto: true}}, {reply: {text: x}}]")
    assert continuation(result("call_9"), one=automatic) is None
    assert continuation(result("call_9"), api="chat") is None


def test_a_continuation_of_a_turn_that_differs_by_protocol() -> None:
    """The calls are those that this protocol played."""
    one = scenario(
        "turns: [{reply: {tool: f, id: c}, when: [{api: responses, reply: {text: y}}]}, "
        "{reply: {text: x}}]"
    )
    assert continuation(one=one) is None
