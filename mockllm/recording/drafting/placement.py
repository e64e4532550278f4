"""The placement of a request among the known conversations: it continues one, repeats its last
request, branches off from one, or begins a new one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from mockllm.core.request import Request
from mockllm.matching.history import History, read_history
from mockllm.protocols import PROTOCOLS
from mockllm.recording.drafting.conversations import (
    Conversation,
    common_turns,
    openings,
    same_user_text,
)


@dataclass(frozen=True, slots=True)
class Placement:
    """Which conversation a request belongs to, and where in it.

    Args:
        kind: `new` begins one; `next` continues `conversation`; `retry` repeats the request of
            its last turn, which failed; `branch` has its first `position` turns in common with
            it; `restart` begins it a second time, in a run that overwrites.
        position: the turn that the request is for; of a `new` conversation how many turns its
            history has.
        history: from the opening of the conversation on; None where there is no message of a
            user. Where the service keeps the history, only what the request itself carries.
        renamed_ids: whether the client gave other ids to the calls in its history.
    """

    kind: Literal["new", "next", "retry", "branch", "restart"]
    conversation: Conversation | None = None
    position: int = 0
    history: History | None = None
    renamed_ids: bool = False


@dataclass(slots=True)
class KnownConversations:
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
        """Considers a conversation from now on."""
        opening = conversation.opening
        if opening is not None and opening.op == "equals":
            self._by_opening.setdefault(opening.value, []).append(conversation)
        elif opening is not None:
            self._others.append(conversation)

    def keep_answer(
        self, conversation: Conversation, position: int, id: str, request: Request | None = None
    ) -> None:
        """Remembers the id of an answer that the service keeps, for requests that point at it."""
        if id:
            self._by_answer[_bare(id)] = conversation, position
        if request is not None and request.conversation is not None:
            self._by_service[request.conversation] = conversation

    def find(self, request: Request, group: str = "") -> Placement:
        """Where a request belongs, among the conversations of its group."""
        history = next(openings(request.messages), None)
        pointed = self._pointed(request)
        if pointed is not None and _group(pointed) == group:
            return pointed
        own = (one for one in self._candidates(request) if _group(one) == group)
        candidates = sorted(own, key=_preference)
        for fits in (_next, self._retry, _branch):
            for placement in candidates:
                if (found := fits(placement, request)) is not None:
                    return found
        if self.overwrite and history is not None and not history.turns:
            for placement in candidates:
                if placement.conversation is not None and placement.conversation.earlier:
                    return Placement("restart", placement.conversation, 0, history)
        return Placement("new", None, len(history.turns) if history is not None else 0, history)

    def _candidates(self, request: Request) -> Iterator[Placement]:
        for history in openings(request.messages):
            for conversation in (*self._by_opening.get(history.opening, ()), *self._others):
                common = common_turns(conversation, history)
                if common is not None:
                    yield Placement("branch", conversation, common[0], history, common[1])

    def _pointed(self, request: Request) -> Placement | None:
        """Where the service keeps the history, and the request points at it."""
        found: tuple[Conversation, int] | None = None
        if request.previous is not None:
            found = self._by_answer.get(_bare(request.previous))
        elif request.conversation is not None:
            known = self._by_service.get(request.conversation)
            found = (known, len(known.turns) - 1) if known is not None else None
        if found is None:
            return None
        conversation, before = found
        history = read_history(request.messages)
        position = before + 1 + len(history.turns)
        if position > len(conversation.turns):
            return None
        placement = Placement("branch", conversation, position, History((), history.after))
        return _next(placement, request) or self._retry(placement, request) or placement

    def _retry(self, placement: Placement, request: Request) -> Placement | None:
        """The last request once more, after an error or an answer that was cut."""
        conversation, position = placement.conversation, placement.position
        assert conversation is not None
        if position != len(conversation.turns) - 1:
            return None
        if conversation.turns[-1].http is None and not self.is_cut(conversation):
            return None
        last = conversation.last
        if last is not None:
            same = (last.body, last.stream) == (request.body, request.stream)
        else:
            user = placement.history.user if placement.history is not None else None
            same = position == 0 or same_user_text(conversation.turns[position], user)
        return replace(placement, kind="retry") if same else None


def _bare(id: str) -> str:
    """An id of a stored answer without the prefix of its API: requests have it without."""
    for protocol in PROTOCOLS.values():
        if protocol.stored is not None:
            id = id.removeprefix(protocol.stored.prefix)
    return id


def _group(placement: Placement) -> str:
    assert placement.conversation is not None
    return placement.conversation.group


def _preference(placement: Placement) -> tuple[bool, int, int]:
    """The longest agreement first, of this run before earlier ones, the older before."""
    assert placement.conversation is not None
    return placement.conversation.earlier, -placement.position, placement.conversation.number


def _next(placement: Placement, request: Request) -> Placement | None:
    conversation = placement.conversation
    assert conversation is not None
    goes_on = 0 < placement.position == len(conversation.turns)
    return replace(placement, kind="next") if goes_on else None


def _branch(placement: Placement, request: Request) -> Placement | None:
    return placement if placement.position > 0 else None
