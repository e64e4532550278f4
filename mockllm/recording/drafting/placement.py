"""Where in the conversations that are known a request belongs: it continues one, asks again
what failed, leaves one half-way for an answer of its own, or begins a new one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Literal

from mockllm.core.request import Message, Request
from mockllm.recording.drafting.conversations import (
    Conversation,
    Said,
    agreeing,
    asks_alike,
    openings,
)

__all__ = ["Place", "Places"]


@dataclass(frozen=True, slots=True)
class Place:
    """What a request is to a conversation.

    Args:
        kind: `new` begins one; `next` continues `conversation`; `again` asks for its last turn
            once more, which failed; `fork` has its first `position` turns in common with it;
            `anew` begins it a second time, in a run that overwrites.
        position: the turn that the request asks for; of a `new` conversation how many answers
            before it the request tells.
        said: the history, from the opening of the conversation on; None where the service
            keeps it, or no user said anything.
    """

    kind: Literal["new", "next", "again", "fork", "anew"]
    conversation: Conversation | None = None
    position: int = 0
    said: Said | None = None


@dataclass(slots=True)
class Places:
    """All conversations, found by what they begin with.

    Args:
        is_cut: whether the last answer of a conversation was broken off.
        overwrite: whether conversations of earlier runs give way to those of this one.
    """

    is_cut: Callable[[Conversation], bool]
    overwrite: bool = False
    _by_opening: dict[str, list[Conversation]] = field(default_factory=dict)
    _others: list[Conversation] = field(default_factory=list)
    _by_answer: dict[str, tuple[Conversation, int]] = field(default_factory=dict)
    _by_service: dict[str, Conversation] = field(default_factory=dict)

    def keep(self, conversation: Conversation) -> None:
        """Regards a conversation from now on."""
        opening = conversation.opening
        if opening is not None and opening.op == "equals":
            self._by_opening.setdefault(opening.value, []).append(conversation)
        elif opening is not None:
            self._others.append(conversation)

    def keep_answer(
        self, conversation: Conversation, position: int, id: str, request: Request | None = None
    ) -> None:
        """Remembers by what later requests may point at an answer that the service keeps."""
        if id:
            self._by_answer[_bare(id)] = conversation, position
        if request is not None and request.conversation is not None:
            self._by_service[request.conversation] = conversation

    def find(self, request: Request) -> Place:
        """Where a request belongs."""
        said = next(openings(request.messages), None)
        pointed = self._pointed(request)
        if pointed is not None:
            return pointed
        agreeing_ = sorted(self._agreeing(request), key=_preference)
        for fits in (_next, self._again, _fork):
            for place in agreeing_:
                if (found := fits(place, request)) is not None:
                    return found
        if self.overwrite and said is not None and not said.answers:
            for place in agreeing_:
                if place.conversation is not None and place.conversation.earlier:
                    return Place("anew", place.conversation, 0, said)
        return Place("new", None, len(said.answers) if said is not None else 0, said)

    def _agreeing(self, request: Request) -> Iterator[Place]:
        for said in openings(request.messages):
            for conversation in (*self._by_opening.get(said.opening, ()), *self._others):
                count = agreeing(conversation, said)
                if count is not None:
                    yield Place("fork", conversation, count, said)

    def _pointed(self, request: Request) -> Place | None:
        """Where the service keeps what was said before, and the request points at it."""
        found: tuple[Conversation, int] | None = None
        if request.previous is not None:
            found = self._by_answer.get(_bare(request.previous))
        elif request.conversation is not None:
            known = self._by_service.get(request.conversation)
            found = (known, len(known.turns) - 1) if known is not None else None
        if found is None:
            return None
        conversation, before = found
        position = before + 1 + _answers(request.messages)
        said = Said("", (), _last_user(request.messages))
        if position > len(conversation.turns):
            return None
        place = Place("fork", conversation, position, said)
        return _next(place, request) or self._again(place, request) or place

    def _again(self, place: Place, request: Request) -> Place | None:
        """The last request once more, after an answer that was none."""
        conversation, position = place.conversation, place.position
        assert conversation is not None
        if position != len(conversation.turns) - 1:
            return None
        if conversation.turns[-1].http is None and not self.is_cut(conversation):
            return None
        last = conversation.last
        if last is not None:
            same = (last.messages, last.tools) == (request.messages, request.tools)
        else:
            user = place.said.user if place.said is not None else None
            same = position == 0 or asks_alike(conversation.turns[position], user)
        return replace(place, kind="again") if same else None


def _bare(id: str) -> str:
    return id.removeprefix("resp_")


def _answers(messages: tuple[Message, ...]) -> int:
    """How many answers of the model a request tells by itself."""
    roles = [message.role for message in messages]
    return sum(role == "assistant" for role, _ in groupby(roles))


def _last_user(messages: tuple[Message, ...]) -> str | None:
    for message in reversed(messages):
        if message.role == "assistant":
            return None
        if message.role == "user":
            return message.text
    return None


def _preference(place: Place) -> tuple[bool, int, int]:
    """The longest agreement first, of this run before earlier ones, the older before."""
    assert place.conversation is not None
    return place.conversation.earlier, -place.position, place.conversation.number


def _next(place: Place, request: Request) -> Place | None:
    conversation = place.conversation
    assert conversation is not None
    goes_on = 0 < place.position == len(conversation.turns)
    return replace(place, kind="next") if goes_on else None


def _fork(place: Place, request: Request) -> Place | None:
    return place if place.position > 0 else None
