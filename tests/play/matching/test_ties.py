"""Recordings that compete: the later user messages decide, then their names."""

from __future__ import annotations

import pytest

from mockllm.core.errors import NoMatchError
from mockllm.core.request import Message, Request
from mockllm.play.matching.index import ScenarioIndex
from mockllm.play.matching.select import select
from mockllm.play.replay.loading import loads
from mockllm.scenario.model import Expect, Match, Recorded, Scenario, TextCondition, TurnSpec
from mockllm.scenario.part_model import TextPart

HELLO = Match(user=TextCondition("equals", "hello"))
MODEL = Message("assistant", "something")


def recording(name: str, *users: str | None, recorded: bool = True, **fields: object) -> Scenario:
    """A scenario whose later turns expect these user messages."""
    turns = [
        TurnSpec(
            reply=(TextPart("x"),),
            request=None if user is None else Expect(user=TextCondition("equals", user)),
            recorded=Recorded(f"{name}.jsonl") if recorded else None,
        )
        for user in (None, *users)
    ]
    return Scenario(name, tuple(turns), match=HELLO, **fields)  # type: ignore[arg-type]


def answers(served: list[Scenario], *users: str) -> str:
    """The name of the scenario that answers a conversation of these user messages."""
    messages = [one for user in users for one in (Message("user", user), MODEL)][:-1]
    request = Request("chat", "m", {}, messages=tuple(messages))
    return select(ScenarioIndex(served), request, {}).scenario.name


def test_the_shorter_name_then_the_first_in_order_answers() -> None:
    """`hello` before `hello-2` before `hello-10`, whatever the order of the files."""
    names = ["hello-10", "hello-2", "hello"]
    assert answers([recording(name) for name in names], "hello") == "hello"
    assert answers([recording(name) for name in names[:2]], "hello") == "hello-2"
    assert answers([recording("b"), recording("a")], "hello") == "a"


def test_the_later_user_message_decides() -> None:
    """A recording answers if its turns so far agree with all user messages."""
    served = [recording("a", "one"), recording("b", "two"), recording("c", None, "three")]
    assert answers(served, "hello", "two") == "b"
    assert answers(served, "hello", "one") == "a"
    assert answers(served, "hello", "any", "three") == "c"


def test_where_none_agrees_the_first_answers() -> None:
    """Then the turn says by itself what it expected."""
    served = [recording("a", "one"), recording("b", "two")]
    assert answers(served, "hello", "other") == "a"


def test_results_where_a_user_message_is_expected() -> None:
    """A request with results alone does not meet a condition on the user message."""
    served = [recording("a", "one"), recording("b", None)]
    messages = (Message("user", "hello"), MODEL, Message("tool", "x", call_id="c"))
    request = Request("chat", "m", {}, messages=messages)
    assert select(ScenarioIndex(served), request, {}).scenario.name == "b"


def test_an_authored_scenario_goes_before_recordings() -> None:
    """It wins whatever its name is. Two authored ones are a mistake."""
    recorded, authored = recording("bb"), recording("ccc", recorded=False)
    assert answers([recorded, authored], "hello") == "ccc"
    with pytest.raises(NoMatchError) as caught:
        answers([authored, recorded, recording("d", recorded=False)], "hello")
    assert caught.value.message.startswith(
        "3 scenarios answer this request equally well: ccc, bb, d. "
    )


def test_a_turn_that_repeats_expects_the_same_each_time() -> None:
    """Positions past the last turn have the conditions of the turn that plays there."""
    turns = recording("a", "again").turns
    repeating = Scenario("a", (turns[0], TurnSpec(turns[1].reply, request=turns[1].request,
                         recorded=turns[1].recorded, repeat=True)), match=HELLO)  # fmt: skip
    other = Scenario("bb", (*turns[:1], TurnSpec(turns[1].reply, recorded=turns[1].recorded,
                     repeat=True)), match=HELLO)  # fmt: skip
    assert answers([repeating, other], "hello", "again", "again") == "a"
    assert answers([repeating, other], "hello", "again", "else") == "bb"


def test_a_conversation_that_begins_later_has_its_own_positions() -> None:
    """User messages before the beginning are not compared."""
    served = [recording("a", "one"), recording("bb", "two")]
    assert answers(served, "other", "hello", "two") == "bb"


def test_the_fallback_has_no_rival() -> None:
    """`match: any` answers where nothing else can, and past the end of what matches."""
    text = "scenario: any\nmatch: any\nturns: [{reply: {text: x}, repeat: true}]"
    (fallback,) = loads(text)
    served = [recording("a"), fallback]
    assert answers(served, "hello") == "a"
    assert answers(served, "hello", "more") == "any"
    assert answers(served, "other") == "any"
