"""The rounds of a conversation: calls that the model made, results that tools gave for them.

Made of neutral messages by `histories`. Only data, and the giving of results to their calls, may
live here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from mockllm.core.request import CallEcho, Message, Request
from mockllm.core.turn import Turn
from mockllm.protocols import PROTOCOLS
from mockllm.replay.session import Exchange

__all__ = ["HistoryCall", "RoundTrip", "Step", "StreamedCall", "assign", "hops"]


@dataclass(frozen=True, slots=True)
class StreamedCall:
    """A call that an answer of ours made; `offered` is whether the request offered the tool."""

    id: str
    name: str
    arguments: str
    malformed: bool
    offered: bool


@dataclass(slots=True, eq=False)
class HistoryCall:
    """A call as a history has it, and the results that it has for it.

    `needed` is whether it must be answered: one that a service keeps and that was malformed
    need not be.
    """

    id: str
    name: str
    needed: bool = True
    results: list[Message] = field(default_factory=list)

    @property
    def key(self) -> str:
        """What tells it from others of its round, where the protocol has ids or not."""
        return self.id or self.name

    def __str__(self) -> str:
        return f"call {self.id!r}" if self.id else f"the call of {self.name!r}"


@dataclass(slots=True, eq=False)
class RoundTrip:
    """One turn of the model in a history, with what followed it.

    Args:
        location: of the request that the turn answered.
        answers: the earlier requests at that place; any of them may have got this turn.
        kept: whether the service has the turn, or some of it, and the client points at it.
        echo: the calls as the client sends them back.
        calls: these, and those of the turn that the service keeps.
        results: of tools, up to the next turn of the model.
        unmatched: those results that belong to no call of this round trip or an earlier one.
        user_follows: whether a message of the user follows the turn.
    """

    location: int
    answers: tuple[Step, ...] = ()
    kept: bool = False
    echo: list[CallEcho] = field(default_factory=list)
    calls: list[HistoryCall] = field(default_factory=list)
    results: list[Message] = field(default_factory=list)
    unmatched: list[Message] = field(default_factory=list)
    user_follows: bool = False

    @property
    def played(self) -> list[Step]:
        """The earlier requests that were given a turn here."""
        return [answer for answer in self.answers if answer.turn is not None]


@dataclass(slots=True, eq=False)
class Step:
    """One request for an answer, as its conversation goes.

    Args:
        location: where in a conversation it stands.
        leading_results: results before any turn of the model.
        turn: what it was answered with; None for an error in place of an answer.
        calls: those of the turn.
        parent: the request whose answer the service keeps, if this one points at it.
        before: the latest of the earlier requests at this location.
        hops: how many times tools were run since the user spoke.
        quirked: whether its answer was changed on the way out.
    """

    exchange: Exchange
    request: Request
    rounds: list[RoundTrip]
    location: int
    leading_results: list[Message]
    parent: Step | None
    turn: Turn | None = None
    calls: tuple[StreamedCall, ...] = ()
    before: Step | None = None
    hops: int = 0
    quirked: bool = False

    @property
    def number(self) -> int:
        return self.exchange.number

    @property
    def last(self) -> RoundTrip | None:
        """The turn that it continues."""
        return self.rounds[-1] if self.rounds else None

    @property
    def failed(self) -> bool:
        """Whether the scenario made it fail, in place of the answer or in the middle of it."""
        if self.turn is not None:
            return self.turn.error is not None
        return self.exchange.outcome == "error"

    @property
    def clear(self) -> bool:
        """Whether the client has the whole turn, as it was written."""
        gone = self.exchange.client_gone or self.exchange.ended is None
        return self.turn is not None and not self.failed and not gone and not self.quirked

    def lineage(self) -> Iterator[Step]:
        """The requests that this one continues, as far as they are known."""
        step: Step | None = self
        while step is not None:
            for each in step.rounds:
                yield from each.played
            step = step.parent


def assign(step: Step) -> None:
    """Gives each result to its call."""
    hosted = PROTOCOLS[step.request.api].client.hosted_results(step.request.body)
    for index, each in enumerate(step.rounds):
        each.calls = [HistoryCall(call.id, call.name) for call in each.echo]
        known = {call.id for call in each.calls}
        if each.kept and each.played:
            each.calls += [
                HistoryCall(call.id, call.name, needed=not call.malformed)
                for call in each.played[-1].calls
                if call.id not in known
            ]
        for result in each.results:
            call = _asked(step.rounds[: index + 1], result)
            if call is not None:
                call.results.append(result)
            elif _tells(result) and result.call_id not in hosted and not _unknown(each):
                each.unmatched.append(result)
    step.leading_results = [
        result for result in step.leading_results if _tells(result) and result.call_id not in hosted
    ]


def _asked(rounds: list[RoundTrip], result: Message) -> HistoryCall | None:
    """The call of the nearest round that a result belongs to, one still unanswered first."""
    if not result.call_id:
        named = [call for call in rounds[-1].calls if call.name == result.name]
        return _first(named)
    for each in reversed(rounds):
        found = _first([call for call in each.calls if call.id == result.call_id])
        if found is not None:
            return found
    return None


def _first(calls: list[HistoryCall]) -> HistoryCall | None:
    return next((call for call in calls if not call.results), calls[0] if calls else None)


def _tells(result: Message) -> bool:
    return bool(result.call_id or result.name)


def _unknown(round: RoundTrip) -> bool:
    """Whether the calls of the round are the service's secret."""
    return round.kept and not round.played


def hops(step: Step) -> int:
    """How many times in a row tools were run for the model, up to this request."""
    count = 0
    for each in reversed(step.rounds):
        if not each.results or each.user_follows:
            return count
        count += 1
    return count + (step.parent.hops if step.parent is not None else 0)
