"""Answers without a scenario: look-ups of models, counts of tokens and stored answers, and routes
that follow from the request alone (`--fallback auto`). Each protocol's package knows its own.

A stored answer is not kept. It is compiled again from the request that the session has kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from mockllm.core.http import Target, TimedBytes
from mockllm.core.jsontext import parse_object
from mockllm.core.record import record
from mockllm.errors import RequestError
from mockllm.matching.fingerprint import form_fields, is_multipart
from mockllm.matching.index import ScenarioIndex
from mockllm.matching.routes import RouteRequest
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import Lookup, Operation, WireProtocol
from mockllm.protocols.records import FallbackBody, FallbackRoute, StoredAnswers
from mockllm.replay.call import Answered, ApiCall
from mockllm.replay.compilation.compiler import Replayer
from mockllm.replay.compilation.http_answer import CORS, HttpAnswer, bytes_answer, json_answer
from mockllm.replay.filling import played_selection
from mockllm.replay.sessions.exchange import Played, not_kept_whole


class Lookups:
    """Answers operations besides `generate`."""

    def __init__(self, served: ScenarioIndex, replayer: Replayer) -> None:
        self._served = served
        self._replayer = replayer

    def answer(self, call: ApiCall, operation: Operation) -> Answered:
        """The answer to an operation."""
        body = call.protocol.lookups[operation](self._lookup(call, operation))
        played = Played("played", 200, api=call.protocol.name)
        return Answered(json_answer(200, body, CORS), played)

    def _lookup(self, call: ApiCall, operation: Operation) -> Lookup:
        stored = call.protocol.stored
        if stored is not None and stored.segment in call.target.segments:
            return self._recalled(call, stored, operation)
        names, any_model = self._served.models()
        body: dict[str, Any] = {}
        may_have_body = operation in ("create", "model") and call.body.strip()
        if operation == "count_tokens" or may_have_body:
            body = parse_object(call.body)
        number = call.session.requests_before if operation == "create" else 0
        return Lookup(call.target, names, any_model, body, number=number)

    def _recalled(self, call: ApiCall, stored: StoredAnswers, operation: Operation) -> Lookup:
        id = call.target.segments[stored.segment]
        lookup = self.recall(call, id)
        if lookup is None:
            raise stored.not_found(id)
        if operation == "delete_response":
            call.session.drop_answer(id)
        return lookup

    def recall(self, call: ApiCall, id: str) -> Lookup | None:
        """The request and the answer with an id; None where they are not, or no longer, kept.

        Raises:
            RequestError: the request was too large to be kept whole.
        """
        protocol = call.protocol
        exchange = call.session.answer(id)
        if exchange is None:
            return None
        if exchange.body_size is not None:
            raise not_kept_whole(id, exchange)
        body = parse_object(exchange.body)
        request = replace(protocol.parse(body, call.target, False), stream=False)
        scenario = self._served.by_name.get(exchange.scenario or "")
        if scenario is None:
            return None
        selection = played_selection(scenario, exchange.played, request)
        if selection is None:
            return None
        answer = parse_object(self._replayer.answer(selection, request, protocol).chunks[0].data)
        return Lookup(call.target, request=body, answer={**answer, "id": id})


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
        headers = {"content-type": body.content_type, **CORS}
        parts = [TimedBytes(0, part) for part in body.parts]
        return bytes_answer(200, headers.items(), parts, streamed=body.streamed)

    def _fields(self, request: RouteRequest) -> Mapping[str, Any]:
        fields = None
        if self.route.takes_form:
            fields = form_fields(request.content_type, request.body)
            if fields is None and is_multipart(request.content_type):
                raise RequestError("The body is not the form that its content type declares.")
        return parse_object(request.body) if fields is None else fields


def find_fallback(method: str, path: str) -> Fallback | None:
    """What answers a route without a scenario; None where nothing does.

    Args:
        path: without the query; only its end counts.
    """
    if method != "POST":
        return None
    path = path.rstrip("/")
    found = [
        (match, protocol, route)
        for protocol in PROTOCOLS.values()
        for route in protocol.fallback_routes
        if (match := route.path.search(path)) is not None
    ]
    if not found:
        return None
    # Of OpenAI's /embeddings and Ollama's /api/embeddings the longer one is meant.
    match, protocol, route = max(found, key=lambda item: len(item[0][0]))
    segments = {name: unquote(value) for name, value in match.groupdict().items() if value}
    return Fallback(protocol, route, Target(segments))
