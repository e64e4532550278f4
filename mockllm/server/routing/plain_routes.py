"""Answers routes that call no model and that no scenario answers: with `--fallback auto`, or with
the error for a route that nothing answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mockllm.errors import NoMatchError, RequestError
from mockllm.matching.routes import RouteRequest
from mockllm.replay.call import Answered, refused
from mockllm.replay.decision import FAULT_HEADER
from mockllm.replay.fallback_routes import find_fallback
from mockllm.replay.player import Player
from mockllm.replay.sessions.exchange import Played
from mockllm.server.routing.routes import Endpoint, Routes


class PlainRoutes:
    """Answers routes that call no model."""

    def __init__(self, routes: Routes, *, fallback: bool) -> None:
        self._routes = routes
        self._fallback = fallback

    def has(self, player: Player, method: str, path: str, endpoint: Endpoint | None) -> bool:
        """Whether scenarios may answer a path. A path of a model's answers belongs to a scenario
        only if that has exactly this path as its route."""
        if not player.has_routes:
            return False
        index = player.routes.index
        if endpoint is not None and endpoint.operation == "generate":
            return index.fits_whole(method, path)
        return bool(index.fitting(method, path))

    def without_faults(self, answered: Answered, headers: Mapping[str, str]) -> Answered:
        """What a route got; faults that its request asks for cannot strike."""
        if FAULT_HEADER not in headers:
            return answered
        return replace(answered, played=replace(answered.played, missed="the route calls no model"))

    def unanswered(self, player: Player, request: RouteRequest) -> Answered:
        """The answer to a request that no scenario answers, and that is for no path of an API."""
        method, path = request.method, request.path
        fallback = find_fallback(method, path) if self._fallback else None
        if fallback is not None:
            known = Played(api=fallback.protocol.name, model=request.model or None)
            try:
                answer = fallback.answer(request.body, request.parameters)
            except RequestError as error:
                return refused(fallback.protocol, error, known)
            return Answered(answer, replace(known, outcome="played", status=answer.status))
        shape = self._routes.nearest(path)
        mismatch = player.routes.index.explain(request)
        if mismatch:
            message = (
                f"No scenario answers {method} {path}. Nearest: {mismatch}. Change its match, or "
                "add a scenario."
            )
            return refused(shape, NoMatchError(message, status=404, code="no_scenario"))
        other = self._routes.not_allowed(method, path)
        if other is not None:
            wrong_method, allowed = other
            return refused(shape, wrong_method, Played(api=shape.name), [("allow", allowed)])
        unknown = refused(shape, self._routes.unknown(method, path, request.body))
        return replace(unknown, played=replace(unknown.played, outcome="unknown route"))
