"""Which requests belong to one conversation: their history is compared with what was recorded.

A conversation is known by its opening, the user message before the model's first turn, and by
the turns after it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mockllm.core.request import Message, Request
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

__all__ = ["Conversation", "calls_of", "common_turns", "openings", "same_user_text", "text_of"]


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
    """

    scenario: Scenario
    number: int
    opening: TextCondition | None
    first: Request | None = None
    last: Request | None = None
    cut: bool | None = None
    earlier: bool = False
    replies: dict[int, tuple[str, tuple[tuple[str, str], ...]]] = field(default_factory=dict)

    @property
    def turns(self) -> tuple[TurnSpec, ...]:
        return self.scenario.turns

    def change(self, scenario: Scenario) -> None:
        """It is another scenario from now on."""
        self.scenario = scenario
        self.replies.clear()

    def reply(self, index: int) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Text and calls (name, id) of a turn."""
        found = self.replies.get(index)
        if found is None:
            spec = self.turns[index]
            calls = tuple((call.name, call.id or "") for call in calls_of(spec.reply))
            found = self.replies[index] = text_of(spec.reply), calls
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


def common_turns(conversation: Conversation, history: History) -> int | None:
    """How many turns of a conversation a history has, all of which agree; None otherwise."""
    opening = conversation.opening
    count = len(history.turns)
    if opening is None or count > len(conversation.turns):
        return None
    if not text_holds(opening, history.opening):
        return None
    for index, turn in enumerate(history.turns):
        if index and not same_user_text(conversation.turns[index], turn.user):
            return None
        if not _same_answer(conversation.reply(index), turn):
            return None
    return count


def same_user_text(turn: TurnSpec, user: str | None) -> bool:
    """Whether a turn after the first answers this text of the user; None is no text."""
    condition = turn.request.user if turn.request is not None else None
    if condition is None or user is None:
        return condition is None and user is None
    return text_holds(condition, user)


def _same_answer(recorded: tuple[str, tuple[tuple[str, str], ...]], answer: ModelTurn) -> bool:
    """Whether a client sends back what was recorded. Clients may leave out the text beside
    calls, and the ids where the API does without."""
    text, calls = recorded
    if len(calls) != len(answer.calls):
        return False
    left = list(calls)
    sure = False
    for echo in answer.calls:
        for key in ((echo.name, echo.id), (echo.name, "")):
            if key in left:
                left.remove(key)
                sure = sure or bool(key[1])
                break
        else:
            if echo.id or not _remove_named(left, echo.name):
                return False
    if sure or (calls and not answer.text):
        return True
    return _bare(text) == _bare(answer.text)


def _remove_named(left: list[tuple[str, str]], name: str) -> bool:
    for key in left:
        if key[0] == name:
            left.remove(key)
            return True
    return False


def _bare(text: str) -> str:
    return "".join(text.split())
