"""Captured exchanges to scenarios: which requests are one conversation, and what answers them.

Pure: `store.folder` writes the result. The exchanges have been redacted before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from mockllm.core.request import Request
from mockllm.errors import MockLLMError, ScenarioError
from mockllm.matching.history import History
from mockllm.recording.drafting.answers import DraftedTurn, draft_turn
from mockllm.recording.drafting.conversations import Conversation, openings
from mockllm.recording.drafting.matches import Condition, Matches, MatchRule, Pattern, no_pattern
from mockllm.recording.drafting.naming import free_name, slug
from mockllm.recording.drafting.placement import KnownConversations, Placement
from mockllm.recording.drafting.yaml_drafting import answering, echoed, tried_before, with_turn
from mockllm.scenario.model import Recorded, Scenario, TurnSpec
from mockllm.tapes.captured import Captured
from mockllm.tapes.conversion import captured_of, detected, request_of
from mockllm.tapes.model import Tape, digest

__all__ = ["Condition", "Draft", "Drafting", "Line", "MatchRule", "drafts"]

_USUAL = MatchRule()

Outcome = Literal["neutral", "frames", "skipped"]
TapeOf = Callable[[Recorded], Tape | None]


@dataclass(frozen=True, slots=True)
class Line:
    """The result for one exchange: a line of the report.

    Args:
        source: where the exchange was read from.
        outcome: `neutral` (the neutral turn gives equal events), `frames` (only the tape
            gives them), `skipped` (nothing is written).
        description: which scenario and turn it became, or why it was skipped.
        scenario: the name of its scenario; "" where it has none.
        turn: which of its turns, from 0.
    """

    source: str
    outcome: Outcome
    description: str
    scenario: str = ""
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A scenario to write, and the exact bytes of its turns.

    Args:
        scenario: None where there is nothing to write but something to report.
        tapes: one for each turn; None for a turn without one, or whose file exists.
        report: a line for each exchange that went into it.
        base: the scenario that this one replaces; None for a new one.
    """

    scenario: Scenario | None
    tapes: tuple[Tape | None, ...] = ()
    report: tuple[Line, ...] = ()
    base: Scenario | None = None


def drafts(
    exchanges: Iterable[Captured],
    *,
    match: MatchRule = _USUAL,
    known: Iterable[Scenario] = (),
    tape: TapeOf = lambda recorded: None,
    pattern: Pattern = no_pattern,
) -> Iterator[Draft]:
    """The scenarios that exchanges become, in the order of their first requests.

    Args:
        exchanges: of any APIs and hosts, in the order of their requests.
        match: which conditions decide when a scenario answers.
        known: scenarios that were written before; conversations that continue one become its
            next turns.
        tape: what was recorded before (`Folder.tape`).
        pattern: a regular expression for texts that had secrets (`Redactor.pattern`).
    """
    drafting = Drafting(match=match, known=known, tape=tape, pattern=pattern)
    found: dict[str, Draft] = {}
    for number, exchange in enumerate(exchanges):
        for draft in drafting.add(exchange):
            name = draft.scenario.name if draft.scenario is not None else f"\0{number}"
            found[name] = _merged(found[name], draft) if name in found else draft
    yield from found.values()


def _merged(before: Draft, after: Draft) -> Draft:
    """Two drafts of one scenario as one."""
    old = (*before.tapes, *[None] * (len(after.tapes) - len(before.tapes)))
    tapes = tuple(new or known for new, known in zip(after.tapes, old, strict=False))
    return Draft(after.scenario, tapes, before.report + after.report, before.base)


class Drafting:
    """Drafts scenarios one exchange at a time, for a recorder that never knows the last one.

    Args:
        overwrite: let conversations of this run replace `known` ones with the same opening.
        reserved: names that are taken by scenarios elsewhere.
    """

    def __init__(
        self,
        *,
        match: MatchRule = _USUAL,
        known: Iterable[Scenario] = (),
        tape: TapeOf = lambda recorded: None,
        pattern: Pattern = no_pattern,
        overwrite: bool = False,
        reserved: Iterable[str] = (),
    ) -> None:
        self._tape = tape
        self._reserved = frozenset(reserved)
        self._matches = Matches(match, pattern, self._first)
        self._known = KnownConversations(self._is_cut, overwrite)
        self._conversations: dict[str, Conversation] = {}
        self._unread: list[tuple[Conversation, int, Recorded]] = []
        for scenario in known:
            self._add_known(scenario)

    def add(self, exchange: Captured) -> tuple[Draft, ...]:
        """The scenario that an exchange belongs to, whole, and the competing ones that need a
        further condition now."""
        found = _understood(exchange)
        if isinstance(found, Line):
            return (Draft(None, report=(found,)),)
        request, answer = found
        if request.previous is not None:
            self._read_answers()
        placement = self._known.find(request)
        try:
            conversation, base, others = self._put(placement, request, answer, exchange.host)
        except ScenarioError as error:
            reason = f"it makes no scenario: {error.problems[0].message}"
            return (Draft(None, report=(Line(exchange.source, "skipped", reason),)),)
        index = len(conversation.turns) - 1
        self._known.keep_answer(conversation, index, answer.id, request)
        conversation.last, conversation.cut = request, bool(exchange.cut)
        conversation.earlier = False
        tape = replace(answer.tape, digest=digest(conversation.turns[index], answer.tape.api))
        line = _line(exchange, answer, placement, conversation.scenario)
        return Draft(conversation.scenario, (*[None] * index, tape), (line,), base), *others

    def written(self, draft: Draft, as_written: Draft) -> None:
        """Takes over what a folder changed in a draft: the name, the match."""
        if draft.scenario is None or as_written.scenario is None:
            return
        conversation = self._conversations.pop(draft.scenario.name)
        self._matches.drop(conversation)
        conversation.change(as_written.scenario)
        self._matches.keep(conversation)
        self._conversations[as_written.scenario.name] = conversation

    # Known scenarios

    def _add_known(self, scenario: Scenario) -> None:
        opening = scenario.match.user if scenario.match is not None else None
        known = Conversation(scenario, len(self._conversations), opening, earlier=True)
        first = self._first(known) if opening is None else None
        history = next(openings(first.messages), None) if first is not None else None
        if history is not None:
            known.opening = self._matches.condition(history.opening)
        self._keep(known)
        self._unread += [
            (known, index, turn.recorded)
            for index, turn in enumerate(scenario.turns)
            if turn.recorded is not None
        ]

    def _keep(self, conversation: Conversation) -> None:
        self._conversations[conversation.scenario.name] = conversation
        self._known.keep(conversation)
        self._matches.keep(conversation)

    def _first(self, conversation: Conversation) -> Request | None:
        """The request that a conversation began with; None where it is not known."""
        recorded = conversation.turns[0].recorded
        if conversation.first is None and recorded is not None:
            tape = self._tape(recorded)
            found = _understood(captured_of(tape)) if tape is not None else None
            conversation.first = found[0] if isinstance(found, tuple) else None
        return conversation.first

    def _is_cut(self, conversation: Conversation) -> bool:
        if conversation.cut is None:
            recorded = conversation.turns[-1].recorded
            tape = self._tape(recorded) if recorded is not None else None
            conversation.cut = tape is not None and bool(tape.cut)
        return conversation.cut

    def _read_answers(self) -> None:
        """Reads the ids of the answers of earlier runs, once a request points at one."""
        unread, self._unread = self._unread, []
        for conversation, index, recorded in unread:
            tape = self._tape(recorded)
            found = _understood(captured_of(tape)) if tape is not None else None
            if isinstance(found, tuple):
                self._known.keep_answer(conversation, index, found[1].id)

    # The scenario of an exchange

    def _put(
        self, placement: Placement, request: Request, answer: DraftedTurn, host: str
    ) -> tuple[Conversation, Scenario | None, tuple[Draft, ...]]:
        """The conversation with the answer, its scenario before, and the drafts of others."""
        conversation = placement.conversation
        if conversation is None or placement.kind == "branch":
            return self._begin(placement, request, answer, host)
        base = conversation.scenario
        kept = base.turns[: 0 if placement.kind == "restart" else placement.position]
        spec = self._answering(placement, answer.spec)
        if placement.kind == "retry":
            spec = tried_before(base.turns[-1], spec)
        scenario = _appended(replace(base, turns=kept), spec)
        first = request if placement.kind == "restart" else self._first(conversation)
        scenario, others = self._matched(scenario, first)
        self._matches.drop(conversation)
        conversation.change(scenario)
        conversation.first = first
        self._matches.keep(conversation)
        return conversation, base, others

    def _begin(
        self, placement: Placement, request: Request, answer: DraftedTurn, host: str
    ) -> tuple[Conversation, Scenario | None, tuple[Draft, ...]]:
        """A new conversation; one that branches off begins with the turns in common."""
        parent, history = placement.conversation, placement.history
        if parent is not None:
            name, opening, first = _stem(parent.scenario.name), parent.opening, self._first(parent)
            turns = parent.turns[: placement.position]
        else:
            text = history.opening if history is not None else ""
            name, first = slug(text, f"{request.api}-conversation"), request
            opening = self._matches.condition(text) if text else None
            turns = self._echoes(history)
        scenario = Scenario(
            name=free_name(name, self._is_taken),
            turns=turns,
            description=f"Recorded from {host}." if host else "Recorded.",
        )
        scenario = _appended(scenario, self._answering(placement, answer.spec))
        scenario, others = self._matched(scenario, first)
        begun = Conversation(scenario, len(self._conversations), opening, first)
        self._keep(begun)
        return begun, None, others

    def _is_taken(self, name: str) -> bool:
        return name in self._conversations or name in self._reserved

    def _answering(self, placement: Placement, spec: TurnSpec) -> TurnSpec:
        user = placement.history.user if placement.history is not None else None
        if user is None or placement.position == 0 or placement.kind == "restart":
            return spec
        return answering(spec, self._matches.condition(user))

    def _echoes(self, history: History | None) -> tuple[TurnSpec, ...]:
        """The turns before the first one that was recorded, as the client sends them back."""
        turns: list[TurnSpec] = []
        for turn in history.turns if history is not None else ():
            user = turn.user if turns else None
            condition = self._matches.condition(user) if user is not None else None
            turns.append(answering(echoed(turn), condition))
        return tuple(turns)

    def _matched(
        self, scenario: Scenario, first: Request | None
    ) -> tuple[Scenario, tuple[Draft, ...]]:
        """The scenario with a match that distinguishes it from all others, if there is one, and
        the others that change for it."""
        if scenario.match is None and first is not None:
            history = next(openings(first.messages), None)
            opening = history.opening if history is not None else None
            scenario = replace(scenario, match=self._matches.opening(first, opening))
        scenario, changes = self._matches.distinguished(scenario, first)
        others = []
        for conversation, changed in changes:
            base = conversation.scenario
            self._matches.drop(conversation)
            conversation.change(changed)
            self._matches.keep(conversation)
            others.append(Draft(conversation.scenario, (None,) * len(base.turns), (), base))
        return scenario, tuple(others)


def _understood(exchange: Captured) -> tuple[Request, DraftedTurn] | Line:
    """The neutral request and the drafted turn, or why the exchange is skipped."""
    found = detected(exchange)
    if found.protocol is None:
        return Line(exchange.source, "skipped", found.reason)
    try:
        request = request_of(exchange, found)
        return request, draft_turn(exchange, found, request)
    except MockLLMError as error:
        return Line(exchange.source, "skipped", str(error))


_NUMBERED = re.compile(r"-\d+$")


def _stem(name: str) -> str:
    return _NUMBERED.sub("", name) or name


def _appended(scenario: Scenario, spec: TurnSpec) -> Scenario:
    return with_turn(scenario, spec, f"{scenario.name}.{len(scenario.turns) + 1}.jsonl")


def _line(
    exchange: Captured, answer: DraftedTurn, placement: Placement, scenario: Scenario
) -> Line:
    """The line of the report for an exchange."""
    notes = [f"turn {len(scenario.turns)} of {scenario.name}"]
    if answer.outcome == "frames":
        notes.append(f"kept as exact frames ({answer.reason})")
    if exchange.status >= 400:
        notes.append(f"HTTP {exchange.status}")
    if exchange.cut:
        notes.append(f"cut by the {exchange.cut}")
    if placement.kind == "retry":
        notes.append("in place of a try that failed")
    if placement.kind == "branch" and placement.conversation is not None:
        notes.append(f"begins as {placement.conversation.scenario.name} does")
    if scenario.match is None:
        notes.append("plays only when it is named")
    index = len(scenario.turns) - 1
    return Line(exchange.source, answer.outcome, "; ".join(notes), scenario.name, index)
