"""Which requests belong to one conversation: their history is compared with what was recorded.

A conversation is known by its opening, the user message before the model's first turn, and by
the turns after it. Pure.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mockllm.core.request import CallEcho, Message, Request
from mockllm.matching.conditions import text_holds
from mockllm.matching.history import History, ModelTurn, read_history
from mockllm.scenario.model import (
    AnyPart,
    InterleavedPart,
    ParallelPart,
    RefusalPart,
    Scenario,
    TextCondition,
    TextPart,
    ToolPart,
    TurnSpec,
)


@dataclass(frozen=True, slots=True)
class TurnEcho:
    """Text and calls of a turn: what a client sends back of it."""

    text: str
    calls: tuple[CallEcho, ...]


Agreement = Literal["", "same", "renamed"]
"""How a turn in a history agrees with what was recorded: not at all, with its call ids, or with
other call ids and the same names and arguments."""


@dataclass(slots=True)
class Conversation:
    """A scenario in the making.

    Args:
        scenario: as it is now.
        number: which one it is, in the order of their beginnings.
        opening: the user message that it begins with; None where there is no message of a user.
        first: the request of its first turn; None where that is not known (any more).
        last: the request of its last turn; None where that is not known.
        cut: whether the answer of its last turn was broken off; None where that was not looked at.
        earlier: whether it is from a run before this one.
        group: the file that its exchanges come from (`Origin.group`).
    """

    scenario: Scenario
    number: int
    opening: TextCondition | None
    first: Request | None = None
    last: Request | None = None
    cut: bool | None = None
    earlier: bool = False
    group: str = ""
    replies: dict[int, TurnEcho] = field(default_factory=dict)

    @property
    def turns(self) -> tuple[TurnSpec, ...]:
        return self.scenario.turns

    def change(self, scenario: Scenario) -> None:
        """It is another scenario from now on."""
        self.scenario = scenario
        self.replies.clear()

    def reply(self, index: int) -> TurnEcho:
        """Text and calls of a turn."""
        found = self.replies.get(index)
        if found is None:
            spec = self.turns[index]
            calls = tuple(
                CallEcho(call.id or "", call.name, call.arguments or "")
                for call in calls_of(spec.reply)
            )
            found = self.replies[index] = TurnEcho(text_of(spec.reply), calls)
        return found


def _members(reply: Sequence[AnyPart]) -> Iterator[AnyPart]:
    for part in reply:
        match part:
            case ParallelPart(calls=calls):
                yield from calls
            case InterleavedPart(parts=parts):
                yield from parts
            case _:
                yield part


def calls_of(reply: Sequence[AnyPart]) -> list[ToolPart]:
    """The calls of a reply, in order."""
    return [part for part in _members(reply) if isinstance(part, ToolPart)]


def text_of(reply: Sequence[AnyPart]) -> str:
    """The text of a reply, as the user sees it."""
    parts = _members(reply)
    return "".join(part.text for part in parts if isinstance(part, TextPart | RefusalPart))


def openings(messages: Sequence[Message]) -> Iterator[History]:
    """The history from each place where a conversation may begin, the latest first.

    That is each user message right before a turn of the model, and the last one.
    """
    kept = [message for message in messages if message.role != "system"]
    for start in range(len(kept) - 1, -1, -1):
        following = kept[start + 1].role if start + 1 < len(kept) else "assistant"
        if kept[start].role == "user" and following != "user":
            yield read_history(kept, start)


def common_turns(conversation: Conversation, history: History) -> tuple[int, bool] | None:
    """How many turns of a conversation a history has, all of which agree, and whether the client
    gave other ids to calls in it; None where the two are different conversations."""
    opening = conversation.opening
    count = len(history.turns)
    if opening is None or count > len(conversation.turns):
        return None
    if not text_holds(opening, history.opening):
        return None
    renamed = False
    for index, turn in enumerate(history.turns):
        if index and not same_user_text(conversation.turns[index], turn.user):
            return None
        agreement = _agreement(conversation.reply(index), turn)
        if not agreement:
            return None
        renamed = renamed or agreement == "renamed"
    return count, renamed


def same_user_text(turn: TurnSpec, user: str | None) -> bool:
    """Whether a turn after the first answers this text of the user; None is no text."""
    condition = turn.request.user if turn.request is not None else None
    if condition is None or user is None:
        return condition is None and user is None
    return text_holds(condition, user)


def _agreement(recorded: TurnEcho, answer: ModelTurn) -> Agreement:
    """Whether a client sends back what was recorded. Clients may leave out the text beside
    calls, and the ids where the API does without."""
    calls = recorded.calls
    if len(calls) != len(answer.calls):
        return ""
    known, sent = (Counter((call.name, call.id) for call in one) for one in (calls, answer.calls))
    if known != sent and not _equal_but_absent(calls, answer.calls):
        return "renamed" if calls and all(map(_same_call, calls, answer.calls)) else ""
    if calls and (any(call.id for call in answer.calls) or not answer.text):
        return "same"
    return "same" if _bare(recorded.text) == _bare(answer.text) else ""


def _equal_but_absent(calls: Sequence[CallEcho], sent: Sequence[CallEcho]) -> bool:
    """Whether calls are equal where both have an id, and have the same names where one has none."""
    left = list(calls)
    for echo in sent:
        fits = (
            call for call in left if call.name == echo.name and (echo.id == call.id or not call.id)
        )
        found = next(fits, None)
        if found is None and not echo.id:
            found = next((call for call in left if call.name == echo.name), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _same_call(call: CallEcho, echo: CallEcho) -> bool:
    return call.name == echo.name and _value(call.arguments) == _value(echo.arguments)


def _value(arguments: str) -> object:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def _bare(text: str) -> str:
    return "".join(text.split())
