"""Answers to operations besides `generate`: models, counts of tokens, and answers that are stored.

A stored answer is not kept. It is compiled again from the request that the session has kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mockllm.core.jsontext import parse_object
from mockllm.matching.conversation import turn_at
from mockllm.matching.index import ScenarioIndex
from mockllm.matching.select import Selection
from mockllm.protocols.base import Lookup, Operation
from mockllm.protocols.records import StoredAnswers
from mockllm.replay.call import Answered, ApiCall
from mockllm.replay.compilation.compiler import Replayer
from mockllm.replay.compilation.http_answer import CORS, json_answer
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
        if operation == "count_tokens" or (operation == "create" and call.body.strip()):
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
        if scenario is None or exchange.played.position is None or exchange.turn is None:
            return None
        selection = Selection(scenario, exchange.played.position, exchange.turn)
        if turn_at(scenario, exchange.played.position, protocol.name) is None:
            return None
        answer = parse_object(self._replayer.answer(selection, request, protocol).chunks[0].data)
        return Lookup(call.target, request=body, answer={**answer, "id": id})
