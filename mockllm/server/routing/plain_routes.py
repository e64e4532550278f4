"""Answers routes that call no model: from the scenarios with a `route`, with `--fallback auto`, or
with the error for a route that nothing answers.
"""

from __future__ import annotations

from mockllm.errors import NoMatchError, RequestError, ScenarioError
from mockllm.matching.routes import RouteRequest
from mockllm.replay.call import TapeNotReadError
from mockllm.replay.compilation.http_answer import HttpAnswer
from mockllm.replay.fallback_routes import find_fallback
from mockllm.replay.player import Player
from mockllm.replay.request_options import FAULT_HEADER
from mockllm.replay.routes import RouteCall
from mockllm.replay.sessions.exchange import MISSED
from mockllm.replay.sessions.session import Exchange, Session
from mockllm.server.routing.routes import Endpoint, Routes
from mockllm.server.tape_reads import NO_TAPES, TapeReads

__all__ = ["PlainRoutes"]


class PlainRoutes:
    """Answers routes that call no model.

    Args:
        routes: the paths of the APIs.
        reads: reads tapes and files in threads.
        fallback: whether routes without a scenario are answered from the request alone.
    """

    def __init__(self, routes: Routes, reads: TapeReads, *, fallback: bool) -> None:
        self._routes = routes
        self._reads = reads
        self._fallback = fallback

    def has(self, player: Player, method: str, path: str, endpoint: Endpoint | None) -> bool:
        """Whether scenarios may answer a path. A path of a model's answers belongs to a scenario
        only if that has exactly this path as its route."""
        index = player.routes.index
        if not index:
            return False
        if endpoint is not None and endpoint.operation == "generate":
            return index.fits_whole(method, path)
        return bool(index.fitting(method, path))

    async def play(
        self, player: Player, request: RouteRequest, session: Session, exchange: Exchange
    ) -> HttpAnswer | None:
        """The answer of a scenario; None where no scenario matches.

        Raises:
            RequestError: several scenarios answer equally well, or the file with the body of the
                answer cannot be read.
        """
        if FAULT_HEADER in request.headers:
            exchange.problems += (f"{MISSED}the route calls no model",)
        call = RouteCall(request, session, exchange, NO_TAPES)
        try:
            return player.routes.play(call)
        except TapeNotReadError as missing:
            try:
                return await self._reads.play(player.routes, call, missing)
            except ScenarioError as error:
                raise RequestError(f"The answer cannot be read: {error}", status=500) from None

    def unanswered(self, player: Player, request: RouteRequest, exchange: Exchange) -> HttpAnswer:
        """The answer to a request that no scenario answers, and that is for no path of an API."""
        method, path = request.method, request.path
        fallback = find_fallback(method, path) if self._fallback else None
        if fallback is not None:
            exchange.api, exchange.model = fallback.protocol.name, request.model or None
            try:
                answer = fallback.answer(request.body, request.parameters)
            except RequestError as error:
                return player.refuse(fallback.protocol, error, exchange)
            exchange.outcome, exchange.status = "played", answer.status
            return answer
        shape = self._routes.nearest(path)
        mismatch = player.routes.index.explain(request)
        if mismatch:
            message = (
                f"No scenario answers {method} {path}. Nearest: {mismatch}. Change its match, or "
                "add a scenario."
            )
            unmatched = NoMatchError(message, status=404, code="no_scenario")
            return player.refuse(shape, unmatched, exchange, unmatched=True)
        other = self._routes.not_allowed(method, path)
        if other is not None:
            refused, allowed = other
            exchange.api = shape.name
            return player.refuse(shape, refused, exchange, headers=[("allow", allowed)])
        unknown = self._routes.unknown(method, path, request.body)
        refusal = player.refuse(shape, unknown, exchange)
        exchange.outcome = "unknown route"
        return refusal
