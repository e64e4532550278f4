"""Requests for control routes: who sends them, preflights, and what probes and Prometheus read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from mockllm.core.timed_bytes import TimedBytes
from mockllm.errors import RequestError
from mockllm.replay.compilation.http_answer import (
    HttpAnswer,
    bytes_answer,
    json_answer,
    without_body,
)
from mockllm.replay.player import Player
from mockllm.replay.sessions.exchange import Sent
from mockllm.server.control.access import ControlAccess
from mockllm.server.control.metrics import Figures, render
from mockllm.server.control.routes import CONTROL_PREFIX, Control
from mockllm.server.control.server_view import ServerView
from mockllm.server.http.body_reading import closes
from mockllm.server.http.delivery import deliver
from mockllm.server.http.journal_delivery import deliver_parts
from mockllm.server.readiness import Readiness

__all__ = ["ControlAnswers"]

_PAGE = CONTROL_PREFIX + "ui"

_OPEN = frozenset(CONTROL_PREFIX + name for name in ("health", "ready", "metrics"))
"""The routes for probes and Prometheus, which use the address of a pod or container. They answer
under every name of the server, and tell nothing that a client sent."""


class ControlAnswers:
    """Answers the requests for control routes that `access` lets in.

    Args:
        figures: the figures of this process.
        view: has the live page, if there is one.
    """

    def __init__(
        self,
        control: Control,
        access: ControlAccess,
        figures: Callable[[], Figures],
        view: ServerView,
    ) -> None:
        self.control = control
        self._access = access
        self.readiness = Readiness()
        self.view = view

        async def own() -> Figures:
            return figures()

        self.gather: Callable[[], Awaitable[Figures]] = own
        """The figures that `metrics` shows; where several processes are one server, of all."""

    async def respond(
        self,
        request: web.BaseRequest,
        sent: Sent,
        player: Player,
        target: str,
        headers: Mapping[str, str],
        session: str | None,
        read_body: Callable[[], Awaitable[bytes]],
    ) -> web.StreamResponse:
        """Sends the answer to a request.

        Args:
            sent: of the answer, which stands in no journal.
            player, headers, session: as of `Control.handle`.
            target: path and query, without the session prefix.
        """
        own = {"cache-control": "no-store", **self._access.response_headers(headers)}
        method = request.method
        try:
            body = await read_body()
            path = target.partition("?")[0].rstrip("/")
            if path in _OPEN and method in ("GET", "HEAD"):
                answer = await self._open(path, player, headers, own)
                if method == "HEAD":
                    answer = without_body(answer)
                return await deliver(request, answer, sent)
            self._access.check(headers)
            preflight = self._access.preflight(headers) if method == "OPTIONS" else None
            if preflight is not None:
                return await deliver(request, json_answer(200, {}, preflight), sent)
            if path == _PAGE or path.startswith(f"{_PAGE}/"):
                return await self._live_page(request, sent, target, headers, own)
            status, value = await self.control.handle(
                player, method, target, headers, body, session
            )
        except RequestError as error:
            refusal = json_answer(error.status, _error(error), own)
            return await deliver(request, refusal, sent, close=closes(error))
        if isinstance(value, dict):
            return await deliver(request, json_answer(status, value, own), sent)
        return await deliver_parts(request, own, value, sent)

    async def _live_page(
        self,
        request: web.BaseRequest,
        sent: Sent,
        target: str,
        headers: Mapping[str, str],
        own: Mapping[str, str],
    ) -> web.StreamResponse:
        page = self.view.page()
        if page is None:
            raise RequestError(
                "This server has no live page; `mockllm serve` has one without --no-ui.", status=404
            )
        return await page.respond(request, sent, target, headers, own)

    async def _open(
        self, path: str, player: Player, headers: Mapping[str, str], own: dict[str, str]
    ) -> HttpAnswer:
        if path.endswith("/health"):
            return json_answer(200, self.control.health(player), own)
        if path.endswith("/ready"):
            problems = await self.readiness.problems()
            if problems:
                return json_answer(503, {"status": "not ready", "problems": problems}, own)
            return json_answer(200, {"status": "ready"}, own)
        kind, text = render(await self.gather(), headers.get("accept", ""))
        fields = {"content-type": kind, **own}
        return bytes_answer(200, fields.items(), [TimedBytes(0, text)], streamed=False)


def _error(error: RequestError) -> dict[str, Any]:
    problems = getattr(error, "problems", None)
    listed = {} if problems is None else {"problems": problems}
    return {"error": {"message": error.message, **listed}}
