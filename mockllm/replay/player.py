"""From the bytes of a request to the answer that is sent: everything but the sending.

Pure: the server, `mockllm show` and the tests all ask a `Player`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mockllm.core.request import Request
from mockllm.core.seeded import derive
from mockllm.errors import NoMatchError, RequestError, UsageError
from mockllm.matching.index import Catalogue, mint_token
from mockllm.matching.positions import turn_at
from mockllm.matching.request_validation import check_continuation, check_expectations
from mockllm.matching.select import Pick, pick, plain_model
from mockllm.protocols.base import Lookup, Operation, WireProtocol
from mockllm.quirks import find
from mockllm.replay.answer import Answer, error_answer, http_answer, json_answer
from mockllm.replay.call import Call
from mockllm.replay.compile import Replayer
from mockllm.replay.request_cache import Decision, RequestCache
from mockllm.replay.session import Exchange, Session
from mockllm.scenario.model import AutoPart, Match, Scenario, TurnSpec

if TYPE_CHECKING:
    from mockllm.replay.tape_player import Recordings

__all__ = ["FALLBACK", "QUIRK_HEADER", "Player", "parse_object"]

QUIRK_HEADER = "x-mockllm-quirk"
"""The header with the names of quirks that an answer is to have, separated by commas."""

FALLBACK = Scenario(
    name="fallback-auto",
    description="Answers anything that no scenario answers.",
    match=Match(anything=True),
    turns=(TurnSpec(reply=(AutoPart(),), repeat=True),),
)
"""The scenario that `--fallback auto` adds where the files have none that answers anything."""


_KEPT_WITH_PLAN = 128 * 1024
"""Larger answers, in bytes, are left to the replayer's cache, which is bounded in bytes."""


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body holds.

    Raises:
        RequestError: it is not JSON, and the message says where; or it is not an object.
    """
    try:
        value = json.loads(body)
        if isinstance(value, dict):
            return value
        where = f"it is {type(value).__name__!r}, not an object"
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}: {error.msg}"
    except UnicodeDecodeError as error:
        where = f"byte {error.start} is not UTF-8"
    except RecursionError:
        where = "it is nested too deeply"
    raise RequestError(
        f"We could not parse the JSON body of your request ({where}). The API expects a JSON "
        "object, sent as application/json.",
        code="invalid_json",
    )


class Player:
    """Answers requests from a catalogue of scenarios.

    Args:
        strict: refuse what the real services refuse.
        fallback: answer what no scenario answers with one made up from the request.
        quirks: what every streamed answer has, as in `wire.quirks`; requests may ask for more.
        named: the scenario that answers every request that does not name one.
    """

    def __init__(
        self,
        scenarios: Iterable[Scenario],
        *,
        strict: bool = True,
        fallback: bool = False,
        quirks: Iterable[str] = (),
        named: str | None = None,
    ) -> None:
        served = tuple(scenarios)
        if fallback and not any(s.match is not None and s.match.anything for s in served):
            served = (*served, FALLBACK)
        self.catalogue = Catalogue(served)
        self.strict = strict
        self.named = named
        self._quirks = tuple(quirks)
        self._replayer = Replayer()
        self._cache = RequestCache()
        self._headers = (*self.catalogue.headers, QUIRK_HEADER)

    def play(self, call: Call) -> Answer:
        """The answer to a request; what became of it is written into its exchange."""
        try:
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
    ) -> Answer:
        """The error body for a refused request, noted in the exchange."""
        exchange.outcome = "unmatched" if unmatched else "invalid"
        exchange.status = error.status
        exchange.problems = (error.message,)
        return error_answer(protocol, error, derive("refused", error.message), headers=headers)

    def _play(self, call: Call) -> Answer:
        protocol, session, exchange = call.protocol, call.session, call.exchange
        headers = map(call.headers.get, self._headers)
        key = (protocol.name, exchange.body, *call.target.key, *headers)
        decision = self._cache.get(key)
        if decision is None:
            try:
                decision = self.decide(call, self.strict)
            except RequestError as refusal:
                decision = self._as_recorded(refusal, call)
            if decision.lasting:
                self._cache.keep(key, decision)
        request, picked = decision.request, decision.picked
        scenario, position = picked.scenario, picked.position
        _note(exchange, request, picked)
        failure = decision.spec.http
        if decision.spec.attempts:
            tried = session.attempt(scenario, position, len(decision.spec.attempts))
            exchange.attempt = tried + 1
            if tried < len(decision.spec.attempts):
                failure = decision.spec.attempts[tried]
        if failure is decision.spec.http:
            session.note_played(scenario, picked.index)
        exchange.outcome = "played" if failure is None else "error"
        if failure is not None and failure is not decision.spec.http:
            answer = http_answer(protocol, failure, picked, exchange.attempt)
        else:
            answer = self._answer(decision, protocol, exchange)
        exchange.status = answer.status
        if answer.id is not None:
            if request.body.get("store") is not False:
                session.keep_answer(answer.id, exchange)
            if request.conversation is not None:
                session.conversations[request.conversation] = answer.id.partition("_")[2]
        return answer

    def _answer(self, decision: Decision, protocol: WireProtocol, exchange: Exchange) -> Answer:
        """The answer of a turn, as recorded where that is to be played, else from the reply."""
        answer = decision.answer
        if answer is None:
            answer = self._recorded(decision, protocol)
        if answer is None and decision.spec.http is not None:
            exchange.recorded, exchange.problems = decision.recorded, decision.problems
            return http_answer(protocol, decision.spec.http, decision.picked, exchange.attempt)
        if answer is None:
            answer = self._replayer.answer(decision.picked, decision.request, protocol, decision.quirks)
        if answer.size <= _KEPT_WITH_PLAN:
            decision.answer = answer
        exchange.recorded, exchange.problems = decision.recorded, decision.problems
        if decision.request.stream and decision.recorded != "exact":
            exchange.quirks = decision.quirks
        return answer

    def _recorded(self, decision: Decision, protocol: WireProtocol) -> Answer | None:
        picked = decision.picked
        turn = picked.scenario.turns[picked.index]
        if turn.recorded is None:
            return None
        played = self.recordings.play(
            picked.scenario.name,
            turn,
            protocol,
            stream=decision.request.stream,
            quirks=bool(decision.quirks),
        )
        decision.recorded, decision.problems = played.why, played.problems
        return played.answer

    @cached_property
    def recordings(self) -> Recordings:
        """The recorded answers; those who serve none pay nothing for them."""
        from mockllm.replay.tape_player import Recordings

        return Recordings()

    def decide(self, call: Call, strict: bool) -> Decision:
        """What follows from the request alone: which turn is to answer it, if it deserves it.

        Args:
            strict: whether it is held to what the API takes.

        Raises:
            RequestError: nothing answers it, or it is refused.
        """
        protocol, session, exchange = call.protocol, call.session, call.exchange
        request = protocol.parse(parse_object(exchange.body), call.target, strict)
        exchange.model, exchange.stream = request.model, request.stream
        if request.conversation is not None and request.previous is None:
            previous = session.conversations.get(request.conversation)
            request = replace(request, previous=previous)
        if self.named is not None and request.scenario is None:
            request = replace(request, scenario=self.named)
        lasting = request.conversation is None
        if request.previous is not None:
            previous = self._previous(request.previous, session)
            lasting = lasting and previous == request.previous
            request = replace(request, previous=previous)
        if "@" in request.model:
            plain, name = plain_model(self.catalogue, request.model)
            if name is not None and request.scenario is None:
                request = replace(request, model=plain, scenario=name)
        picked = pick(self.catalogue, request, call.headers, protocol.call_prefix)
        _note(exchange, request, picked)
        if picked.continued and strict:
            check_continuation(picked, request, protocol)
        spec = turn_at(picked.scenario, picked.position, protocol.name)
        assert spec is not None
        if spec.request is not None:
            check_expectations(picked, spec, request, protocol)
        quirks = self._asked_quirks(call.headers.get(QUIRK_HEADER))
        return Decision(request, picked, spec, quirks, lasting)

    def _as_recorded(self, refusal: RequestError, call: Call) -> Decision:
        """The decision for a request that the API refuses, where the turn that it asks for was
        recorded from a service which was asked so, too; else raises the refusal."""
        if not self.strict or isinstance(refusal, NoMatchError):
            raise refusal
        try:
            decision = self.decide(replace(call, exchange=replace(call.exchange)), False)
        except RequestError:
            raise refusal from None
        recorded = decision.picked.scenario.turns[decision.picked.index].recorded
        if recorded is None:
            raise refusal
        from mockllm.replay.accepted_upstream import accepted_request, same_refusal

        found = accepted_request(recorded, call.protocol)
        if found is None:
            raise refusal
        then = replace(
            call,
            target=found.target,
            session=Session(call.session.name),
            exchange=Exchange("POST", call.exchange.path, {}, found.body),
        )
        try:
            self.decide(then, True)
        except RequestError as refused:
            if same_refusal(refused, refusal):
                return decision
        raise refusal

    def _previous(self, id: str, session: Session) -> str:
        """The token of the answer with this id, where it was played as recorded: such answers
        have the ids that their service gave them."""
        known = session.answer(f"resp_{id}")
        if known is None or known.recorded != "exact" or known.position is None:
            return id
        scenario = self.catalogue.by_name.get(known.scenario or "")
        return id if scenario is None else mint_token(scenario, known.position)

    def _asked_quirks(self, asked: str | None) -> tuple[str, ...]:
        """The quirks of this player and those that a request asks for."""
        if asked is None:
            return self._quirks
        names = tuple(name.strip() for name in asked.split(",") if name.strip())
        for name in names:
            try:
                find(name)
            except UsageError as error:
                raise RequestError(f"{QUIRK_HEADER}: {error}", code="unknown_quirk") from None
        return self._quirks + names

    def recall(self, call: Call, id: str) -> Lookup | None:
        """What was asked and answered under an id; None where nothing (more) is known of it."""
        protocol = call.protocol
        exchange = call.session.answer(id)
        if exchange is None:
            return None
        body = parse_object(exchange.body)
        request = replace(protocol.parse(body, call.target, False), stream=False)
        scenario = self.catalogue.by_name.get(exchange.scenario or "")
        if scenario is None or exchange.position is None or exchange.turn is None:
            return None
        picked = Pick(scenario, exchange.position, exchange.turn)
        if turn_at(scenario, exchange.position, protocol.name) is None:
            return None
        answer = parse_object(self._replayer.answer(picked, request, protocol).chunks[0].data)
        return Lookup(call.target, request=body, answer={**answer, "id": id})

    def look_up(self, call: Call, operation: Operation) -> Answer:
        """The answer of an operation besides `generate`."""
        protocol, exchange = call.protocol, call.exchange
        try:
            if "response_id" in call.target.segments:
                found = self._recalled(call, operation)
            else:
                names, any_model = self._models()
                body = parse_object(exchange.body) if operation == "count_tokens" else {}
                found = Lookup(call.target, names, any_model, body)
            body = protocol.lookups[operation](found)
        except RequestError as error:
            return self.refuse(protocol, error, exchange)
        exchange.outcome, exchange.status = "played", 200
        return json_answer(200, body)

    def _recalled(self, call: Call, operation: Operation) -> Lookup:
        id = call.target.segments["response_id"]
        found = self.recall(call, id)
        if found is None:
            raise RequestError(
                f"Response with id '{id}' not found.", status=404, param="response_id"
            )
        if operation == "delete_response":
            call.session.drop_answer(id)
        return found

    def _models(self) -> tuple[tuple[str, ...], bool]:
        """The model names served, and whether any other name is answered for too."""
        names: set[str] = set()
        any_model = False
        for scenario in self.catalogue.scenarios:
            names.add(f"mock/{scenario.name}")
            match = scenario.match
            if match is not None and match.model is None:
                any_model = True
            elif match is not None and match.model is not None:
                if any(char in match.model for char in "*?["):
                    any_model = True
                else:
                    names.add(match.model)
        return tuple(sorted(names)), any_model


def _note(exchange: Exchange, request: Request, picked: Pick) -> None:
    exchange.model, exchange.stream = request.model, request.stream
    exchange.scenario = picked.scenario.name
    exchange.turn, exchange.position = picked.index, picked.position
