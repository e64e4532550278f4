"""From the body of a request to its answer: parsing, selection, validation and compilation.

It sends nothing. The server, `mockllm show`, the checking kit and tests answer with a `Player`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from mockllm.core.later import deferring
from mockllm.core.request import Request
from mockllm.core.seeded import derive
from mockllm.errors import NoMatchError, RequestError
from mockllm.matching.index import ScenarioIndex, mint_token
from mockllm.matching.naming import named_scenario, split_model
from mockllm.matching.positions import turn_at
from mockllm.matching.request_validation import check_continuation, check_expectations
from mockllm.matching.select import Selection, select
from mockllm.protocols.base import Operation, WireProtocol
from mockllm.replay.auto.autoreply import lacks_content, sample_notes
from mockllm.replay.body import parse_object
from mockllm.replay.call import Call
from mockllm.replay.compilation.compiler import Replayer
from mockllm.replay.compilation.http_answer import HttpAnswer, error_answer, http_error_answer
from mockllm.replay.decision_cache import Decision, RequestCache
from mockllm.replay.lookups import Lookups
from mockllm.replay.request_options import (
    FAULT_HEADER,
    QUIRK_HEADER,
    requested_faults,
    requested_quirks,
)
from mockllm.replay.sessions.session import Exchange, Session
from mockllm.replay.tries import broken_answer, try_answer
from mockllm.scenario.model import AutoPart, Fault, Http, Match, Scenario, TurnSpec

if TYPE_CHECKING:
    from mockllm.replay.compilation.tape_player import Recordings
    from mockllm.replay.routes import RoutePlayer

__all__ = ["FALLBACK", "QUIRK_HEADER", "Player"]

FALLBACK = Scenario(
    name="fallback-auto",
    description="Answers anything that no scenario answers.",
    match=Match(anything=True),
    turns=(TurnSpec(reply=(AutoPart(),), repeat=True),),
)
"""The scenario that `--fallback auto` adds where no scenario of the files has `match: any`."""

_MAX_KEPT = 128 * 1024
"""Larger answers, in bytes, are only in the cache of the replayer, which is bounded in bytes."""


class Player:
    """Answers requests with scenarios.

    Args:
        scenarios: or the index of another player, whose scenarios answer.
        strict: refuse requests that the real services refuse.
        fallback: answer requests that no scenario answers with a reply made from the request.
        quirks: of every streamed answer, as in `wire.quirks`; requests may add others.
        named: the name of the scenario that answers every request that names none.
        speed: of the pauses of answers with faults; the faults' own pauses stay.
    """

    def __init__(
        self,
        scenarios: Iterable[Scenario] | ScenarioIndex,
        *,
        strict: bool = True,
        fallback: bool = False,
        quirks: Iterable[str] = (),
        named: str | None = None,
        speed: float = 1.0,
    ) -> None:
        self.speed = speed
        self.served = (
            scenarios if isinstance(scenarios, ScenarioIndex) else ScenarioIndex(scenarios)
        )
        if fallback and not self.served.fallbacks:
            self.served = ScenarioIndex((*self.served.scenarios, FALLBACK))
        self.strict = strict
        self.named = named
        self.no_match: Callable[[Call, NoMatchError], Decision] | None = None
        """Decides about requests that no scenario answers; None: they are refused."""
        self._quirks = tuple(quirks)
        self._replayer = Replayer()
        self.lookups = Lookups(self.served, self._replayer)
        self._cache = RequestCache()
        self._headers = (*self.served.headers, QUIRK_HEADER, FAULT_HEADER)

    def play(self, call: Call) -> HttpAnswer:
        """The answer to a request; its outcome is written into its exchange.

        Raises:
            TapeNotReadError: only for a call with `tapes`.
        """
        try:
            if call.tapes is None:
                return self._play(call)
            with deferring(call.tapes):
                return self._play(call)
        except RequestError as error:
            unmatched = isinstance(error, NoMatchError)
            return self.refuse(call.protocol, error, call.exchange, unmatched=unmatched)

    def refuse(
        self,
        protocol: WireProtocol,
        error: RequestError,
        exchange: Exchange,
        *,
        unmatched: bool = False,
        headers: Iterable[tuple[str, str]] = (),
    ) -> HttpAnswer:
        """The error answer to a refused request; the refusal is written into the exchange."""
        exchange.outcome = "unmatched" if unmatched else "invalid"
        exchange.status = error.status
        exchange.problems = (error.message,)
        return error_answer(protocol, error, derive("refused", error.message), headers=headers)

    def _play(self, call: Call) -> HttpAnswer:
        protocol, session, exchange = call.protocol, call.session, call.exchange
        decision = self._decision(call)
        request, selection = decision.request, decision.selection
        scenario, position = selection.scenario, selection.position
        _record_selection(exchange, request, selection)
        answer = decision.answer
        # Before anything is counted: `TapeNotReadError` starts the call again.
        tries = self._recorded_tries(decision, call) if decision.spec.attempts else ()
        if answer is None:
            answer = self._recorded(decision, call)
        auto = answer is None and _is_auto(decision.spec)
        if auto:
            decision.problems = sample_notes(request)
        failure = decision.spec.http
        if decision.spec.attempts:
            tried = session.attempt(scenario, position, len(decision.spec.attempts))
            exchange.attempt = tried + 1
            if tried < len(decision.spec.attempts):
                failure = decision.spec.attempts[tried]
        if failure is decision.spec.http:
            if scenario.turns[selection.index].recorded is not None:
                exchange.repeated = session.repeats(scenario, selection.index)
            session.note_played(scenario, selection.index)
        exchange.outcome = "played" if failure is None else "error"
        if failure is not None and failure is not decision.spec.http:
            answer = tries[exchange.attempt - 1]
            if answer is None:
                answer = self._tried(decision, failure, call)
                if auto:
                    exchange.problems = decision.problems
            else:
                exchange.recorded = "exact"
        else:
            answer = self._answer(decision, answer, protocol, exchange)
        exchange.status, exchange.complete = answer.status, not answer.closes_connection
        if answer.id is not None:
            stored = protocol.stored
            if stored is None or stored.is_stored(request.body):
                session.keep_answer(answer.id, exchange)
            if request.conversation is not None:
                session.keep_conversation(request.conversation, answer.id.partition("_")[2])
        return answer

    def _decision(self, call: Call) -> Decision:
        """The decision for a request: the one that is kept of an equal request, or a new one."""
        headers = map(call.headers.get, self._headers)
        key = (call.protocol.name, call.exchange.body, *call.target.key, *headers)
        if (decision := self._cache.get(key)) is None:
            try:
                decision = self.decide(call, self.strict)
            except NoMatchError as error:
                if self.no_match is None:
                    raise
                decision = self.no_match(call, error)
            except RequestError as refusal:
                decision = self._accepted_upstream(refusal, call)
            if decision.lasting:
                self._cache.keep(key, decision)
        return decision

    def _answer(
        self,
        decision: Decision,
        answer: HttpAnswer | None,
        protocol: WireProtocol,
        exchange: Exchange,
    ) -> HttpAnswer:
        """The answer of a turn.

        Args:
            answer: the kept or recorded one; None: it is compiled from the reply.
        """
        if answer is None and decision.spec.http is not None:
            exchange.recorded, exchange.problems = decision.recorded, decision.problems
            failure = decision.spec.http
            if failure.retry_after is not None:
                exchange.retry_after = failure.retry_after / 1_000_000
            error = http_error_answer(protocol, failure, decision.selection, exchange.attempt)
            return self._broken(error, decision.spec.fault, decision, protocol)
        if answer is None:
            answer = self._replayer.answer(
                decision.selection, decision.request, protocol, decision.quirks
            )
            answer = self._broken(answer, decision.spec.fault, decision, protocol)
        if answer.size <= _MAX_KEPT:
            decision.answer = answer
        exchange.recorded, exchange.problems = decision.recorded, decision.problems
        if decision.request.stream and decision.recorded != "exact":
            exchange.quirks = decision.quirks
        return answer

    def _tried(self, decision: Decision, failure: Http, call: Call) -> HttpAnswer:
        """What an earlier try gets: an error, or an answer of its own."""
        if failure.retry_after is not None:
            call.exchange.retry_after = failure.retry_after / 1_000_000
        answer, faults = try_answer(
            self._replayer,
            decision.selection,
            decision.request,
            call.protocol,
            decision.spec,
            failure,
            call.exchange.attempt,
            decision.quirks,
        )
        return self._broken(answer, faults + decision.faults, decision, call.protocol)

    def _broken(
        self,
        answer: HttpAnswer,
        faults: tuple[Fault, ...],
        decision: Decision,
        protocol: WireProtocol,
    ) -> HttpAnswer:
        return broken_answer(
            answer,
            faults,
            decision.selection,
            decision.request,
            protocol,
            path=decision.path,
            speed=self.speed,
        )

    def _recorded(self, decision: Decision, call: Call) -> HttpAnswer | None:
        selection = decision.selection
        turn = selection.scenario.turns[selection.index]
        if turn.recorded is None:
            return None
        played = self.recordings.play(
            selection.scenario.name,
            turn,
            call.protocol,
            stream=decision.request.stream,
            quirks=bool(decision.quirks),
            read=call.read,
        )
        decision.recorded, decision.problems = played.why, played.problems
        if played.answer is None:
            return None
        return self._broken(played.answer, decision.spec.fault, decision, call.protocol)

    def _recorded_tries(self, decision: Decision, call: Call) -> tuple[HttpAnswer | None, ...]:
        """The recorded answers of the tries before a turn; None for one without a recording."""
        name = decision.selection.scenario.name
        stream = decision.request.stream
        return tuple(
            self.recordings.play(
                name,
                # As it was recorded: with the fields of its service at the turn.
                TurnSpec(
                    http=replace(one, recorded=None, extra=()),
                    extra=one.extra,
                    recorded=one.recorded,
                ),
                call.protocol,
                stream=stream,
                broken=one.status < 400,
                read=call.read,
            ).answer
            for one in decision.spec.attempts
        )

    @cached_property
    def recordings(self) -> Recordings:
        """The recorded answers. Their modules are imported with the first one."""
        from mockllm.replay.compilation.tape_player import Recordings

        return Recordings()

    @cached_property
    def routes(self) -> RoutePlayer:
        """What answers routes that call no model. Its modules are imported with the first such
        request."""
        from mockllm.replay.routes import RoutePlayer

        return RoutePlayer(self.served.scenarios, self.named)

    def decide(self, call: Call, strict: bool) -> Decision:
        """The decision for a request: which turn answers it.

        Args:
            strict: whether a request that the API refuses is refused.

        Raises:
            RequestError: no scenario answers the request, or it is refused.
        """
        protocol, session, exchange = call.protocol, call.session, call.exchange
        request = protocol.parse(parse_object(exchange.body), call.target, strict)
        exchange.model, exchange.stream = request.model, request.stream
        if request.conversation is not None and request.previous is None:
            previous = session.conversation(request.conversation)
            request = replace(request, previous=previous)
        if self.named is not None and not named_scenario(self.served, request, call.headers):
            request = replace(request, scenario=self.named)
        lasting = request.conversation is None
        if request.previous is not None:
            previous = self._previous(request.previous, protocol, session)
            lasting = lasting and previous == request.previous
            request = replace(request, previous=previous)
        if "@" in request.model:
            plain, name = split_model(self.served, request.model)
            if name is not None and request.scenario is None:
                request = replace(request, model=plain, scenario=name)
        selection = select(self.served, request, call.headers, protocol.call_prefix)
        if len(selection.same_request) > 1:
            # Several recordings of one request are played in their order, then the last again.
            unplayed = session.next_unplayed(selection.same_request)
            selection = selection.with_turn(*(unplayed or selection.same_request[-1]))
            lasting = False
        _record_selection(exchange, request, selection)
        if selection.continued and strict:
            check_continuation(selection, request, protocol)
        spec = turn_at(selection.scenario, selection.position, protocol.name)
        assert spec is not None
        if not strict and AutoPart() in spec.reply and lacks_content(request):
            protocol.parse(request.body, call.target, True)
        if spec.request is not None:
            check_expectations(selection, spec, request, protocol)
        quirks = self._quirks + requested_quirks(call.headers.get(QUIRK_HEADER))
        faults = requested_faults(call.headers.get(FAULT_HEADER))
        if faults:
            spec = replace(spec, fault=spec.fault + faults)
        if spec.fault:  # a redirect names the path of the request, which is no part of the key
            lasting = lasting and all(fault.name != "redirect" for fault in spec.fault)
        return Decision(request, selection, spec, quirks, lasting, path=call.path, faults=faults)

    def _accepted_upstream(self, refusal: RequestError, call: Call) -> Decision:
        """The decision for a request that the API refuses but a recorded service accepted.

        Its turn must be recorded, and the recorded request must be refused for the same reason.

        Raises:
            RequestError: the refusal, where that is not so.
        """
        if not self.strict:
            raise refusal
        try:
            decision = self.decide(replace(call, exchange=replace(call.exchange)), False)
        except RequestError:
            raise refusal from None
        recorded = decision.selection.scenario.turns[decision.selection.index].recorded
        if recorded is None:
            raise refusal
        from mockllm.replay.accepted_upstream import accepted_request, same_refusal

        read = partial(accepted_request, recorded, call.protocol)
        found = call.read(("request", recorded, call.protocol.name), read)
        if found is None:
            raise refusal
        recorded_call = replace(
            call,
            target=found.target,
            session=Session(call.session.name),
            exchange=Exchange("POST", call.exchange.path, {}, found.body),
        )
        try:
            self.decide(recorded_call, True)
        except RequestError as refused:
            if same_refusal(refused, refusal):
                return decision
        raise refusal

    def _previous(self, id: str, protocol: WireProtocol, session: Session) -> str:
        """The token of the answer with this id, which has no prefix. Answers that were played as
        recorded have the id of the recorded service, others have a token as their id."""
        prefix = protocol.stored.prefix if protocol.stored is not None else ""
        known = session.answer(f"{prefix}{id}") or session.answer(id)
        if known is None or known.recorded != "exact" or known.position is None:
            return id
        scenario = self.served.by_name.get(known.scenario or "")
        return id if scenario is None else mint_token(scenario, known.position)

    def look_up(self, call: Call, operation: Operation) -> HttpAnswer:
        """The answer to an operation besides `generate`."""
        try:
            return self.lookups.answer(call, operation)
        except RequestError as error:
            return self.refuse(call.protocol, error, call.exchange)


def _is_auto(spec: TurnSpec) -> bool:
    """Whether the reply of a turn, or of a try before it, is made from the request."""
    replies = (one.reply.reply for one in spec.attempts if one.reply is not None)
    return AutoPart() in spec.reply or any(AutoPart() in reply for reply in replies)


def _record_selection(exchange: Exchange, request: Request, selection: Selection) -> None:
    exchange.model, exchange.stream = request.model, request.stream
    exchange.scenario = selection.scenario.name
    exchange.turn, exchange.position = selection.index, selection.position
