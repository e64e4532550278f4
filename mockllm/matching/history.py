"""The conversation history that a request carries. Pure; no other module reads it.

Matching counts its turns, the recorder finds the conversation that a request continues, and the
checking kit compares the turns that a client sends back with those that it received.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mockllm.core.request import CallEcho, Message


@dataclass(frozen=True)
class ModelTurn:
    """One turn of the model: consecutive assistant messages.

    Args:
        messages: these, at least one.
        before: the messages of the user and the results of tools between the turn before and
            this one.
        end: the index of its last message in the messages that were read.
    """

    messages: tuple[Message, ...]
    before: tuple[Message, ...]
    end: int

    @cached_property
    def user(self) -> str | None:
        """The last user message right before the turn; None where there are only tool results."""
        return _last_user(self.before)

    @cached_property
    def text(self) -> str:
        """The text of the turn."""
        return "".join(message.text for message in self.messages)

    @property
    def calls(self) -> tuple[CallEcho, ...]:
        """The tool calls of the turn, in order."""
        if len(self.messages) == 1:  # as nearly always; a cached property takes longer
            return self.messages[0].calls
        return tuple(call for message in self.messages for call in message.calls)


@dataclass(frozen=True)
class History:
    """A conversation as one request carries it, without system messages.

    Args:
        turns: the turns of the model.
        after: the messages of the user and the results of tools after the last of them.
    """

    turns: tuple[ModelTurn, ...]
    after: tuple[Message, ...]

    @cached_property
    def user(self) -> str | None:
        """The last user message after the last turn; None where there are only tool results."""
        return _last_user(self.after)

    @cached_property
    def opening(self) -> str:
        """The text of the first message; "" where there is none."""
        messages = self.turns[0].before if self.turns else self.after
        return messages[0].text if messages else ""


def read_history(messages: Sequence[Message], start: int = 0) -> History:
    """The history in the messages of a request.

    System messages do not count: clients add them anywhere, and often put the date into them.
    """
    turns: list[ModelTurn] = []
    before: list[Message] = []
    for index in range(start, len(messages)):
        message = messages[index]
        if message.role == "system":
            continue
        if message.role != "assistant":
            before.append(message)
        elif turns and not before:
            turns[-1] = ModelTurn((*turns[-1].messages, message), turns[-1].before, index)
        else:
            turns.append(ModelTurn((message,), tuple(before), index))
            before = []
    return History(tuple(turns), tuple(before))


def _last_user(messages: Sequence[Message]) -> str | None:
    users = (message.text for message in reversed(messages) if message.role == "user")
    return next(users, None)
