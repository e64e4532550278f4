"""Answers without a scenario: look-ups of models, counts of tokens and stored answers, and routes
that follow from the request alone (`--fallback auto`). Each protocol's package knows its own.

A stored answer is not kept. It is compiled again from the request that the session has kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from mockllm.core.errors import RequestError
from mockllm.core.forms import MALFORMED, is_multipart
from mockllm.core.http import Target, TimedBytes
from mockllm.core.jsontext import parse_object
from mockllm.core.record import record
from mockllm.core.request import Request
from mockllm.play.matching.conversation import Selection, turn_at
from mockllm.play.matching.fingerprint import form_fields
from mockllm.play.matching.index import ScenarioIndex
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.call import Answered, ApiCall
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.compilation.http_answer import CORS, HttpAnswer, bytes_answer, json_answer
from mockllm.play.replay.jobs import AT_ONCE, JobProgress, rest_of
from mockllm.play.replay.sessions.exchange import Exchange, Played, not_kept_whole
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Lookup, Operation, WireProtocol
from mockllm.wire.protocols.records import (
    FallbackBody,
    FallbackRoute,
    Fields,
    JobState,
    Json,
    StoredAnswers,
)


@record
class Recalled:
    """The exchange of an answer that is kept, its request, and the turn that answered it."""

    exchange: Exchange
    request: Request
    selection: Selection


_SETTLING: frozenset[Operation] = frozenset(("response", "cancel_response", "delete_response"))
"""The operations after which a client has all that it will get of an answer that is done."""


def _stored_id(call: ApiCall) -> tuple[str, ...]:
    """The id of the answer that a request is about; none where it is about none."""
    stored = call.protocol.stored
    id = None if stored is None else call.target.segments.get(stored.segment)
    return () if id is None else (id,)


class Lookups:
    """Answers operations besides `generate`."""

    def __init__(self, served: ScenarioIndex, replayer: Replayer, speed: float) -> None:
        self._served = served
        self._replayer = replayer
        self._speed = speed

    def answer(
        self,
        call: ApiCall,
        operation: Operation,
        models: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> Answered:
        """The answer to an operation.

        Args:
            models: the names of the models that there are, and of those that clients deleted; None:
                those that are served.
        """
        played = Played("played", 200, api=call.protocol.name)
        if operation == "response":
            streamed = self._streamed_again(call)
            if streamed is not None:
                return Answered(streamed, replace(played, stream=True, settles=_stored_id(call)))
        found, is_pending = self._lookup(call, operation)
        if models is not None:
            found = replace(found, models=tuple(models[0]), gone=tuple(models[1]))
        body = call.protocol.lookups[operation](found)
        if operation in _SETTLING and not is_pending:
            played = replace(played, settles=_stored_id(call))
        return Answered(json_answer(200, body, CORS), played)

    def _lookup(self, call: ApiCall, operation: Operation) -> tuple[Lookup, bool]:
        """The input of an operation, and whether it is about an answer that is not done yet."""
        stored = call.protocol.stored
        if stored is not None and stored.segment in call.target.segments:
            return self._answer_from_stored(call, stored, operation)
        names, any_model = self._served.models()
        body: dict[str, Any] = {}
        may_have_body = operation in ("create", "model") and call.body.strip()
        if operation == "count_tokens" or may_have_body:
            body = parse_object(call.body)
        number = call.session.requests_before if operation == "create" else 0
        return Lookup(call.target, names, any_model, body, number=number), False

    def _answer_from_stored(
        self, call: ApiCall, stored: StoredAnswers, operation: Operation
    ) -> tuple[Lookup, bool]:
        id = call.target.segments[stored.segment]
        recalled = self.recall(call, id)
        if recalled is None:
            raise stored.not_found(id)
        if operation == "delete_response":
            call.session.drop_answer(id)
        request = recalled.request
        answer: Fields = self.body_of(recalled, call, id)
        background, state = call.protocol.background(request.body), "done"
        if background is not None:
            state = self._state(call, id, recalled, operation)
            if state != "done":
                answer = background.until_done(answer, state)
        elif stored.background is not None and operation == "cancel_response":
            raise stored.background.not_cancelled(id)
        is_pending = state == "pending" and operation != "delete_response"
        return Lookup(call.target, request=request.body, answer=answer), is_pending

    def _state(self, call: ApiCall, id: str, recalled: Recalled, operation: Operation) -> JobState:
        """The progress of an answer that is made in the background; one that was streamed is
        done."""
        exchange = recalled.exchange
        if exchange.played.stream:
            return "done"
        selection = recalled.selection
        turn = turn_at(selection.scenario, selection.position, call.protocol.name)
        pending = AT_ONCE if turn is None or turn.job is None else turn.job.pending
        progress = JobProgress(call.session, id, exchange, pending, call.received_at, self._speed)
        if operation == "cancel_response":
            return progress.cancel()
        return progress.state(polled=operation == "response")

    def _streamed_again(self, call: ApiCall) -> HttpAnswer | None:
        """The rest of the stream of an answer in the background; None where none is requested, or
        the answer is not made in the background."""
        stored = call.protocol.stored
        background = None if stored is None else stored.background
        events = None if background is None else background.events_before(call.target)
        if stored is None or background is None or events is None:
            return None
        recalled = self.recall(call, call.target.segments[stored.segment])
        if recalled is None or not background.is_asked(recalled.request.body):
            return None
        request = replace(recalled.request, stream=True)
        whole = self._replayer.answer(recalled.selection, request, call.protocol)
        return rest_of(whole, events)

    def body_of(self, recalled: Recalled, call: ApiCall, id: str) -> Json:
        """The body of an answer that is kept, not streamed, with the id that it was given."""
        whole = self._replayer.answer(recalled.selection, recalled.request, call.protocol)
        return {**parse_object(whole.chunks[0].data), "id": id}

    def recall(self, call: ApiCall, id: str) -> Recalled | None:
        """The request and the turn of the answer with an id; None where they are not, or no longer,
        kept.

        Raises:
            RequestError: the request was too large to be kept whole.
        """
        protocol = call.protocol
        exchange = call.session.answer(id, latest=True)
        if exchange is None:
            return None
        if exchange.body_size is not None:
            raise not_kept_whole(id, exchange)
        request = protocol.parse(parse_object(exchange.body), call.target, False)
        scenario = self._served.by_name.get(exchange.scenario or "")
        if scenario is None:
            return None
        from mockllm.play.replay.filling import played_selection  # few requests need it

        selection = played_selection(scenario, exchange.played, request)
        if selection is None:
            return None
        return Recalled(exchange, replace(request, stream=False), selection)


@record
class Fallback:
    """A route that can be answered without a scenario, as the path of a request has it."""

    protocol: WireProtocol
    route: FallbackRoute
    target: Target

    def answer(self, request: RouteRequest) -> HttpAnswer:
        """The answer to a request."""
        target = replace(self.target, query=request.parameters)
        body = self.route.answer(self._fields(request), target)
        if not isinstance(body, FallbackBody):
            return json_answer(200, body, CORS)
        headers = {"content-type": body.content_type, **CORS, **dict(body.headers)}
        parts = [TimedBytes(0, part) for part in body.parts]
        return bytes_answer(body.status, headers.items(), parts, streamed=body.streamed)

    def _fields(self, request: RouteRequest) -> Mapping[str, Any]:
        fields = None
        if self.route.takes_form:
            fields = form_fields(request.content_type, request.body)
            if fields is None and is_multipart(request.content_type):
                raise RequestError(MALFORMED)
        if fields is not None:
            return fields
        if self.route.text_field and "json" not in request.content_type:
            return {self.route.text_field: request.body.decode("utf-8", "replace")}
        return parse_object(request.body) if request.method == "POST" else {}


def find_fallback(method: str, path: str, owner: str | None = None) -> Fallback | None:
    """The fallback for a route without a scenario; None where nothing does.

    Args:
        path: without the query; only its end counts.
        owner: the API that it must be of; None: any.
    """
    path = path.rstrip("/")
    found = [
        (match, protocol, route)
        for protocol in PROTOCOLS.values()
        if owner in (None, protocol.name)
        for route in protocol.fallback_routes
        if route.method == method and (match := route.path.search(path)) is not None
    ]
    if not found:
        return None
    # Of OpenAI's /embeddings and Ollama's /api/embeddings the longer one is meant.
    match, protocol, route = max(found, key=lambda item: len(item[0][0]))
    segments = {name: unquote(value) for name, value in match.groupdict().items() if value}
    return Fallback(protocol, route, Target(segments))
