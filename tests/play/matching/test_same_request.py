"""Recordings are found by their own request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mockllm.core.request import CallEcho, Message, Request
from mockllm.play.matching.conversation import Selection
from mockllm.play.matching.fingerprint import request_digest
from mockllm.play.matching.index import ScenarioIndex
from mockllm.play.matching.select import select
from mockllm.scenario.model import Match, Recorded, Scenario, TextCondition, TurnSpec
from mockllm.scenario.part_model import TextPart, ToolPart

HELLO = Match(user=TextCondition("equals", "hello"))
ANY = Match(user=TextCondition("contains", ""))


def asks(*messages: Message, **body: Any) -> Request:
    sent = messages or (Message("user", "hello"),)
    written = [{"role": one.role, "content": one.text} for one in sent]
    return Request("chat", "m", {"messages": written, **body}, messages=sent)


def recording(
    name: str, *requests: Request, match: Match | None = HELLO, order: int = 0
) -> Scenario:
    """A scenario with a turn for each request that it was recorded from."""
    turns = [
        TurnSpec(
            reply=(TextPart(name),),
            recorded=Recorded(f"{name}.{n}.jsonl", request=request_digest(request), order=order),
        )
        for n, request in enumerate(requests)
    ]
    return Scenario(name, tuple(turns), match=match)


def answers(scenarios: list[Scenario], request: Request, **headers: str) -> Selection:
    named = {f"x-mockllm-{name}": value for name, value in headers.items()}
    return select(ScenarioIndex(scenarios), request, named)


def test_the_recorded_request_gets_its_own_turn() -> None:
    """Of scenarios with the same conditions the one that was recorded from the request answers."""
    one, two = asks(temperature=0), asks(temperature=1)
    served = [recording("a", one), recording("b", two)]
    assert answers(served, one).scenario.name == "a"
    assert answers(served, two).scenario.name == "b"
    assert answers(served, asks()).scenario.name == "a", "no recording: the first by name"


def test_a_turn_in_the_middle_of_a_history_is_found() -> None:
    """The recording began with a history that belongs to no scenario, and with other call ids."""
    history = (
        Message("user", "hello"),
        Message("assistant", calls=(CallEcho("renamed", "look", "{}"),)),
        Message("tool", "1", call_id="renamed"),
    )
    request = asks(*history)
    scenario = recording("a", asks(), request)
    other_id = replace(scenario.turns[0], reply=(ToolPart("look", "call_1"),))
    scenario = replace(scenario, turns=(other_id, scenario.turns[1]))
    found = answers([scenario], request)
    assert (found.index, found.position) == (1, 1)


def test_conditions_still_have_to_hold() -> None:
    """A recording whose conditions were changed answers no longer, but when it is named."""
    request = asks()
    other = recording("a", request, match=Match(model="other"))
    served = [other, Scenario("any", (TurnSpec(reply=(TextPart("x"),)),), match=ANY)]
    assert answers(served, request).scenario.name == "any"
    assert answers(served, request, scenario="a").scenario.name == "a"


def test_an_authored_scenario_with_more_conditions_wins() -> None:
    """So that a person can replace the answer of a recording."""
    request = asks()
    authored = Scenario(
        "mine", (TurnSpec(reply=(TextPart("x"),)),), match=replace(HELLO, model="m")
    )
    served = [recording("a", request), authored]
    assert answers(served, request).scenario.name == "mine"
    equal = replace(authored, match=HELLO)
    assert answers([recording("a", request), equal], request).scenario.name == "a"


def test_a_recording_without_a_match_is_found_by_its_own_request_only() -> None:
    """It has no text of a user to match by."""
    request = asks(Message("system", "x"))
    served = [recording("a", request, match=None)]
    assert answers(served, request).scenario.name == "a"


def test_recordings_of_the_same_request_come_in_their_order() -> None:
    """The selection lists them, and the player plays the first that was not played yet."""
    request = asks()
    served = [
        recording("a", request, order=2),
        recording("b", request),
        recording("c", request, order=1),
    ]
    found = answers(served, request)
    assert [scenario.name for scenario, _ in found.recordings] == ["b", "c", "a"]
    assert found.scenario.name == "b"
    assert answers(served, request, scenario="c").recordings == ((served[2], 0),)


def test_a_named_recording_begins_where_it_was_recorded() -> None:
    """A recording that began later in a conversation answers when it is named, also for a request
    that was not recorded."""
    before = (Message("user", "first"), Message("assistant", "one"))
    served = [recording("a", asks(), asks(Message("user", "x")))]
    request = asks(*before, Message("user", "hello"))
    assert answers(served, request, scenario="a").index == 1, "the history has one turn"
    late = [recording("a", asks())]
    found = answers(late, request, scenario="a")
    assert (found.index, found.start) == (0, 2)
