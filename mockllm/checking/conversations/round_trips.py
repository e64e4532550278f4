"""The steps of a conversation and their round trips: a turn of the model, its calls, their results.

`session_history` reads them from the requests in a journal. Only data, and the assignment of
results to calls, may live here.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mockllm.core.request import CallEcho, Message, Request
from mockllm.core.turn import Turn
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import WireProtocol


@dataclass(frozen=True, slots=True)
class StreamedCall:
    """A call in an answer of the mock server.

    Args:
        offered: whether the request offered the tool.
        any_id: whether the client may send it back with another id.
        refused: whether the client is not to run it.
    """

    id: str
    name: str
    arguments: str
    malformed: bool
    offered: bool
    any_id: bool = False
    refused: bool = False


@dataclass(slots=True, eq=False)
class HistoryCall:
    """A call in the history of a request, with the results that the history has for it.

    Args:
        needed: whether it must have a result; a malformed call that the service stores need not.
        any_id: whether its result may have another id, since the client has not sent the call.
    """

    id: str
    name: str
    needed: bool = True
    any_id: bool = False
    results: list[Message] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Identifies the call in its round trip: its id, or its name in protocols without ids."""
        return self.id or self.name

    def __str__(self) -> str:
        return f"call {self.id!r}" if self.id else f"the call of {self.name!r}"


@dataclass(slots=True, eq=False)
class RoundTrip:
    """One turn of the model in the history of a request, with what followed it.

    Args:
        step: the request.
        earlier: the round trips before this one.
        location: the location of the request that the turn answered (see `session_history`).
        answers: the earlier requests at that location; any of them may have got this turn.
        stored: whether the service stores the turn, or a part of it, and the client refers to it.
        calls: the echoed calls, and those of the stored turn.
        unmatched: the results that belong to no call of this round trip or an earlier one.
        user_follows: whether a message of the user follows the turn.
    """

    step: Step
    earlier: tuple[RoundTrip, ...]
    location: int
    answers: tuple[Step, ...] = ()
    stored: bool = False
    text: str = ""
    echoes: list[CallEcho] = field(default_factory=list)
    calls: list[HistoryCall] = field(default_factory=list)
    results: list[Message] = field(default_factory=list)
    unmatched: list[Message] = field(default_factory=list)
    user_follows: bool = False

    @property
    def played(self) -> list[Step]:
        """The earlier requests at the location that were answered with a turn."""
        return [answer for answer in self.answers if answer.turn is not None]

    @property
    def streamed(self) -> list[StreamedCall]:
        """The calls in those answers."""
        return [call for answer in self.played for call in answer.calls]

    @property
    def takes_calls(self) -> bool:
        """Whether the client shows that it takes calls, whatever it offers: its history has one."""
        return any(trip.echoes or trip.results for trip in self.step.round_trips)

    def repeats_executed(self, id: str) -> bool:
        """Whether a call with a result in an earlier round trip is sent once more, although the
        model did not make it again."""
        if not id or not self.played or any(call.id == id for call in self.streamed):
            return False
        return any(call.id == id and call.results for trip in self.earlier for call in trip.calls)


@dataclass(slots=True, eq=False)
class Step:
    """One request for an answer, as a step of its conversation.

    Args:
        location: its location in the conversation (see `session_history`).
        leading_results: the results before any turn of the model.
        parent: the request whose stored answer this one refers to.
        turn: the turn that answered it; None if an HTTP error did.
        previous: the latest earlier request at this location.
        hops: how many times in a row tools were run since the last message of the user.
    """

    exchange: Exchange
    request: Request
    location: int = 0
    round_trips: list[RoundTrip] = field(default_factory=list)
    leading_results: list[Message] = field(default_factory=list)
    parent: Step | None = None
    turn: Turn | None = None
    calls: tuple[StreamedCall, ...] = ()
    previous: Step | None = None
    hops: int = 0
    quirked: bool = False

    @property
    def number(self) -> int:
        return self.exchange.number

    @property
    def protocol(self) -> WireProtocol:
        """The API of the request."""
        return PROTOCOLS[self.request.api]

    @property
    def last(self) -> RoundTrip | None:
        """The round trip that the request continues."""
        return self.round_trips[-1] if self.round_trips else None

    @property
    def failed(self) -> bool:
        """Whether the scenario answered it with an error, or with one inside the stream."""
        if self.turn is not None:
            return self.turn.error is not None
        return self.exchange.outcome == "error"

    @property
    def clear(self) -> bool:
        """Whether the client has received the whole turn, unchanged by quirks."""
        gone = self.exchange.broken_off or self.exchange.sent.ended is None
        return self.turn is not None and not self.failed and not gone and not self.quirked

    def lineage(self) -> Iterator[Step]:
        """The requests that this one continues, if they are in the journal."""
        step: Step | None = self
        while step is not None:
            for trip in step.round_trips:
                yield from trip.played
            step = step.parent

    def advance(self, *event: Hashable) -> None:
        """Goes on to the location after an event."""
        # It differs from process to process, and may: no location leaves the process.
        self.location = hash((self.location, *event))

    def add_turn(self, answers: Sequence[Step] = (), **turn: Any) -> RoundTrip:
        """Adds a turn of the model at the current location."""
        trip = RoundTrip(self, tuple(self.round_trips), self.location, tuple(answers), **turn)
        self.round_trips.append(trip)
        return trip


def assign_results(step: Step) -> None:
    """Assigns each result in the history of a step to its call."""
    hosted = step.protocol.client.hosted_results(step.request.body)
    for trip in step.round_trips:
        trip.calls = [HistoryCall(call.id, call.name) for call in trip.echoes]
        known = {call.id for call in trip.calls}
        if trip.stored and trip.played:
            trip.calls += [
                HistoryCall(call.id, call.name, needed=not call.malformed, any_id=call.any_id)
                for call in trip.played[-1].calls
                if call.id not in known
            ]
        for result in trip.results:
            call = _call_of((*trip.earlier, trip), result)
            if call is not None:
                call.results.append(result)
            elif _names_call(result, hosted) and not _has_unknown_calls(trip):
                trip.unmatched.append(result)
    step.leading_results = [
        result for result in step.leading_results if _names_call(result, hosted)
    ]


def _call_of(round_trips: Sequence[RoundTrip], result: Message) -> HistoryCall | None:
    """The call that a result belongs to: in the latest round trip that has one, and among several
    there, the first without a result."""
    if not result.call_id:
        return _first_open([call for call in round_trips[-1].calls if call.name == result.name])
    for trip in reversed(round_trips):
        call = _first_open([call for call in trip.calls if call.id == result.call_id])
        if call is not None:
            return call
    free = [call for call in round_trips[-1].calls if call.any_id and not call.results]
    return free[0] if free else None


def _first_open(calls: list[HistoryCall]) -> HistoryCall | None:
    return next((call for call in calls if not call.results), calls[0] if calls else None)


def _names_call(result: Message, hosted: Collection[str]) -> bool:
    """Whether a result names a call that the client ran; `hosted` are those of the service."""
    return bool(result.call_id or result.name) and result.call_id not in hosted


def _has_unknown_calls(trip: RoundTrip) -> bool:
    """Whether the service stores a turn that is not in the journal."""
    return trip.stored and not trip.played


def hops(step: Step) -> int:
    """The number of times in a row that tools were run, up to this request, without a message of
    the user."""
    count = 0
    for trip in reversed(step.round_trips):
        if not trip.results or trip.user_follows:
            return count
        count += 1
    return count + (step.parent.hops if step.parent is not None else 0)
