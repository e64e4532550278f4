"""One of several competing scenarios answers: by rank, at the position that the history gives."""

from __future__ import annotations

import pytest

from mockllm.core.errors import NoMatchError
from mockllm.core.request import Message, Request
from mockllm.play.matching.conversation import Selection
from mockllm.play.matching.index import ScenarioIndex, mint_token
from mockllm.play.matching.select import select
from mockllm.play.replay.loading import loads

SERVED = ScenarioIndex(
    loads(
        """
scenario: early-with-two-conditions
match: {user: alpha, model: house-*}
turns: [{reply: {text: one}}, {reply: {text: two}}]
---
scenario: late
match: {user: beta}
turns: [{reply: {text: one}}]
---
scenario: early
match: {user: alpha}
turns: [{reply: {text: one}}, {reply: {text: two}}]
---
scenario: long
match: {user: gamma}
turns: [{reply: {text: a}}, {reply: {text: b}}, {reply: {text: c}}, {reply: {text: d}}]
"""
    )
)
MODEL = Message("assistant", "something")


def user(text: str) -> Message:
    return Message("user", text)


def selected(*messages: Message, model: str = "m", **fields: object) -> Selection:
    request = Request("chat", model, {}, messages=messages, **fields)  # type: ignore[arg-type]
    return select(SERVED, request, {})


def name_and_index(*messages: Message, **fields: object) -> str:
    found = selected(*messages, **fields)  # type: ignore[arg-type]
    return f"{found.scenario.name}:{found.index}"


TWO_QUESTIONS = (user("alpha"), MODEL, user("beta"))


def test_more_conditions_win_before_a_later_beginning() -> None:
    """Two conditions that hold beat one, although the scenario with one begins later."""
    found = name_and_index(*TWO_QUESTIONS, model="house-1")
    assert found == "early-with-two-conditions:1"


def test_with_as_many_conditions_the_later_beginning_wins() -> None:
    """With equal numbers of conditions the conversation that began last continues."""
    assert name_and_index(*TWO_QUESTIONS) == "late:0"


def continued(position: int) -> str:
    """The id of the answer at a position of the scenario `long`."""
    return mint_token(SERVED.by_name["long"], position)


@pytest.mark.parametrize("position", [0, 1])
def test_history_counts_on_from_the_answer_that_is_continued(position: int) -> None:
    """Each turn in the history of a request with `previous_response_id` comes after that answer."""
    token = continued(position)
    assert selected(user("so?"), previous=token).position == position + 1
    found = selected(MODEL, user("so?"), previous=token)
    assert (found.position, found.index, found.continued) == (position + 2, position + 2, True)


def test_history_counts_on_in_a_scenario_that_is_named() -> None:
    """The name of the scenario that was continued anyway does not change the position."""
    found = selected(MODEL, user("so?"), previous=continued(0), scenario="long")
    assert (found.position, found.continued) == (2, True)


def test_another_name_than_that_of_the_continued_answer_wins() -> None:
    """The named scenario answers, at the position that the history has in it."""
    found = selected(MODEL, user("so?"), previous=continued(0), scenario="early")
    assert (found.scenario.name, found.position, found.continued) == ("early", 1, True)


def test_history_counts_on_after_an_item_that_is_referred_to() -> None:
    """Turns after an item reference come after its answer; the rest of its own turn does not."""
    item = Message("assistant", ref=continued(0))
    assert selected(user("gamma"), item, user("so?")).position == 1
    assert selected(user("gamma"), item, MODEL, user("so?")).position == 1
    assert selected(user("gamma"), item, MODEL).position == 1
    note = Message("system", "It is Monday.")
    assert selected(user("gamma"), item, note, MODEL, user("so?")).position == 1
    assert selected(user("gamma"), item, user("so?"), MODEL, user("and?")).position == 2


def test_the_last_of_several_references_counts() -> None:
    """References to unknown items are ignored."""
    items = [Message("assistant", ref=ref) for ref in (continued(0), continued(2), "rs_other")]
    assert selected(user("gamma"), *items, user("so?")).position == 3


def test_a_continued_conversation_past_its_end() -> None:
    """Without a new user message no other scenario is looked for, and the end is reported."""
    result = Message("tool", "42", call_id="c")
    with pytest.raises(NoMatchError, match="asks for turn 5: the conversation is past its end"):
        selected(result, previous=continued(3))
    with pytest.raises(NoMatchError, match="asks for turn 5: the conversation is past its end"):
        selected(user("unknown"), previous=continued(3))
