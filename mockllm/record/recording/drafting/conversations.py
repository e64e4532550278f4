"""The conversations so far, and the place in them of each request: its history is compared. Pure.

A conversation is known by its opening, the user message before the model's first turn, and by
the turns after it. A request continues one, repeats its last request, branches off from one, or
begins a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal

from mockllm.core.request import CallEcho, Request
from mockllm.play.matching.conditions import text_holds
from mockllm.play.matching.conversation import (
    History,
    ModelTurn,
    PlannedCall,
    are_echoed,
    openings,
    read_history,
)
from mockllm.scenario import model as m
from mockllm.scenario.ignoring import normal_text, wanted_text
from mockllm.scenario.part_model import AnyPart, ToolPart, tool_parts, visible_text
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.values import value_or_text

Agreement = Literal["", "same", "renamed"]
"""How a turn in a history agrees with what was recorded: not at all, with its call ids, or with
other call ids and the same names and arguments."""


@dataclass(slots=True)
class Conversation:
    """A scenario in the making.

    Args:
        number: which one it is, in the order of their beginnings.
        first, last: requests; None where that is not known (any more).
        cut: whether the answer of its last turn was broken off; None where that was not looked at.
        earlier: whether it is from a run before this one.
        group: the file that its exchanges come from (`Origin.group`).
    """

    scenario: m.Scenario
    number: int
    opening: m.AnyText | None
    first: Request | None = None
    last: Request | None = None
    cut: bool | None = None
    earlier: bool = False
    group: str = ""

    @property
    def turns(self) -> tuple[m.TurnSpec, ...]:
        return self.scenario.turns


def common_turns(conversation: Conversation, history: History) -> tuple[int, bool] | None:
    """The number of turns of a conversation that a history has, all of which agree, and whether the
    client gave other ids to calls in it; None where the two are different conversations."""
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
        agreement = _agreement(conversation.turns[index].reply, turn)
        if not agreement:
            return None
        renamed = renamed or agreement == "renamed"
    return count, renamed


def same_user_text(turn: m.TurnSpec, user: str | None) -> bool:
    """Whether a turn after the first answers this text of the user; None is no text."""
    condition = turn.request.user if turn.request is not None else None
    if condition is None or user is None:
        return condition is None and user is None
    return text_holds(condition, user)


def _agreement(reply: Sequence[AnyPart], answer: ModelTurn) -> Agreement:
    """Whether a client sends back what was recorded. Clients may leave out the text beside
    calls, and the ids where the API does without."""
    calls = tuple(tool_parts(reply))
    if len(calls) != len(answer.calls):
        return ""
    planned = (PlannedCall(call.name, call.id or "", any_id=not call.id) for call in calls)
    if not are_echoed(planned, answer):
        return "renamed" if calls and all(map(_same_call, calls, answer.calls)) else ""
    if calls and (any(call.id for call in answer.calls) or not answer.text):
        return "same"
    return "same" if _bare(visible_text(reply)) == _bare(answer.text) else ""


def _same_call(call: ToolPart, echo: CallEcho) -> bool:
    if call.name != echo.name:
        return False
    return bool(value_or_text(call.arguments or "{}") == value_or_text(echo.arguments or "{}"))


def _bare(text: str) -> str:
    return "".join(text.split())


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
        ignore: what of the request does not count.
        twin: the scenario of an earlier run whose request differs only in that, if that was not
            known before; "" for none.
    """

    kind: Literal["new", "next", "retry", "branch", "restart"]
    conversation: Conversation | None = None
    position: int = 0
    history: History | None = None
    renamed_ids: bool = False
    ignore: m.Ignored = ()
    twin: str = ""


@dataclass(slots=True)
class KnownConversations:
    """All conversations, found by what they begin with."""

    is_cut: Callable[[Conversation], bool]
    overwrite: bool = False
    _by_opening: dict[m.Ignored, dict[str, list[Conversation]]] = field(default_factory=dict)
    _others: list[Conversation] = field(default_factory=list)
    _by_answer: dict[str, tuple[Conversation, int]] = field(default_factory=dict)
    _by_service: dict[str, Conversation] = field(default_factory=dict)

    def keep(self, conversation: Conversation) -> None:
        """Considers a conversation from now on."""
        opening = conversation.opening
        if opening is not None and opening.op == "equals":
            same = self._by_opening.setdefault(opening.ignore, {})
            same.setdefault(wanted_text(opening), []).append(conversation)
        elif opening is not None:
            self._others.append(conversation)

    def drop(self, conversation: Conversation) -> None:
        """Considers a conversation no longer, but for the ids of its answers."""
        opening = conversation.opening
        if opening is not None and opening.op == "equals":
            self._by_opening[opening.ignore][wanted_text(opening)].remove(conversation)
        elif opening is not None:
            self._others.remove(conversation)

    def keep_answer(
        self, conversation: Conversation, position: int, id: str, request: Request | None = None
    ) -> None:
        """Remembers the id of an answer that the service keeps, for requests that point at it."""
        if id:
            self._by_answer[_without_prefix(id)] = conversation, position
        if request is not None and request.conversation is not None:
            self._by_service[request.conversation] = conversation

    def find(self, request: Request, group: str = "") -> Placement:
        """Where a request belongs, among the conversations of its group."""
        history = next(openings(request.messages), None)
        pointed = self._find_by_id(request)
        if pointed is not None and _group(pointed) == group:
            return pointed
        own = (candidate for candidate in self._candidates(request) if _group(candidate) == group)
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
            alike = chain.from_iterable(
                same.get(normal_text(ignore, history.opening), ())
                for ignore, same in self._by_opening.items()
            )
            for conversation in (*alike, *self._others):
                common = common_turns(conversation, history)
                if common is not None:
                    yield Placement("branch", conversation, common[0], history, common[1])

    def _find_by_id(self, request: Request) -> Placement | None:
        """The place of a request that points at a history which the service keeps."""
        found: tuple[Conversation, int] | None = None
        if request.previous is not None:
            found = self._by_answer.get(_without_prefix(request.previous))
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


def _without_prefix(id: str) -> str:
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
