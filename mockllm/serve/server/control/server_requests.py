"""Requests about the server itself: control routes, probes, the live page, preflights, and the page
at `/`.

That page says what this server is, what it serves, and where the documentation is. It is for people
with a browser or curl. Clients that accept no page get the error of an unknown route, as for any
other path.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from mockllm.core import documentation
from mockllm.core.errors import RequestError
from mockllm.core.http import TimedBytes
from mockllm.core.record import record
from mockllm.play.replay.compilation.http_answer import CORS, HttpAnswer, bytes_answer, json_answer
from mockllm.play.replay.sessions.exchange import Sent
from mockllm.serve.interception.headers import DEFAULT, SESSION_HEADER
from mockllm.serve.server.control.control_routes import CONTROL_PREFIX, Control, base_urls
from mockllm.serve.server.control.server_view import ServerView
from mockllm.serve.server.http.access import ControlAccess, preflight_headers
from mockllm.serve.server.http.addresses import url_of
from mockllm.serve.server.http.delivery import deliver, deliver_parts
from mockllm.serve.server.http.request_reading import Arrival, closes
from mockllm.serve.server.metrics.figures import Figures
from mockllm.serve.server.metrics.names import CONTENT_TYPE, render
from mockllm.serve.server.sources import Sources
from mockllm.wire.protocols.environment import client_base_urls


@dataclass(slots=True)
class Readiness:
    """The reasons why a server cannot answer yet. Its scenarios are loaded before it listens.

    Args:
        stopping: whether it stops: open streams go on, and no other request is answered.
        checks: each returns why a part of the server is not ready, in words that anyone may read,
            or None where it is.
    """

    stopping: bool = False
    checks: list[Callable[[], Awaitable[str | None]]] = field(default_factory=list)

    async def problems(self) -> list[str]:
        """Why the server is not ready; [] where it is."""
        problems = []
        for check in tuple(self.checks):
            problem = await check()
            if problem is not None:
                problems.append(problem)
        if self.stopping:  # after the checks, which may take time
            problems.append("the server stops")
        return problems


_PAGE = CONTROL_PREFIX + "ui"

_METRICS = "/metrics"
"""Where Prometheus looks if it is told nothing else, as for vLLM."""

OWN_PATHS = re.compile(rf"/|{_METRICS}|{CONTROL_PREFIX}.*", re.DOTALL)
"""The paths of requests that may be about the server itself."""

_PROBES = frozenset((_METRICS, *(CONTROL_PREFIX + name for name in ("health", "ready", "metrics"))))
"""The routes for probes and Prometheus, which use the address of a pod or container. They answer
under every name of the server, and tell nothing that a client sent."""


@record
class ServerRequests:
    """Answers requests about the server."""

    sources: Sources
    control: Control
    access: ControlAccess
    view: ServerView
    readiness: Readiness
    figures: Callable[[], Awaitable[Figures]]

    def answer(self, arrival: Arrival, sent: Sent) -> Awaitable[web.StreamResponse] | None:
        """The response to a request about the server itself; None for all others. Only preflights
        and requests for `OWN_PATHS` may be about it."""
        request, session = arrival.request, arrival.session
        in_path = request.raw_path.endswith(f"/s/{session}{arrival.target}")
        if arrival.path.startswith(CONTROL_PREFIX) or (
            arrival.path == _METRICS and self._is_free(arrival)
        ):
            named = in_path or SESSION_HEADER in arrival.headers
            return self._respond(arrival, sent, session if named else None)
        if arrival.method == "OPTIONS":
            return deliver(request, json_answer(200, {}, preflight_headers(arrival.headers)), sent)
        if arrival.path == "/" and wants_page(arrival.headers) and self._is_free(arrival):
            page = front_page(
                request,
                arrival.headers,
                f"/s/{session}" if in_path else "",
                len(self.sources.player_of(session).served.scenarios),
                ui=self.sources.options.page is not None,
            )
            return deliver(request, page, sent)
        return None

    def _is_free(self, arrival: Arrival) -> bool:
        """Whether the server itself may answer at a path outside of the control routes: no scenario
        has this route, and no service answers."""
        sources, session = self.sources, arrival.session
        setup = sources.setups.find(session)
        if arrival.method not in ("GET", "HEAD"):
            return False
        if sources.proxy is not None or (setup is not None and (setup.gone or setup.proxy)):
            return False
        if self.control.sessions.shared and session != DEFAULT:
            return False  # its scenarios may not be here yet
        return not sources.plain.has(sources.player_of(session), arrival, None)

    async def _respond(
        self, arrival: Arrival, sent: Sent, session: str | None
    ) -> web.StreamResponse:
        """Sends the answer of a control route, a probe or the live page."""
        request, headers, method = arrival.request, arrival.headers, arrival.method
        fields = {"cache-control": "no-store", **self.access.response_headers(headers)}
        try:
            options = self.sources.options
            await arrival.read(options.max_body, options.patience)
            path = arrival.path.rstrip("/")
            if path in _PROBES and method in ("GET", "HEAD"):
                return await deliver(request, await self._probe(path, fields), sent)
            self.access.check(headers, follows_link=method == "GET" and path == _PAGE)
            preflight = self.access.preflight(headers) if method == "OPTIONS" else None
            if preflight is not None:
                return await deliver(request, json_answer(200, {}, preflight), sent)
            if path == _PAGE or path.startswith(f"{_PAGE}/"):
                page = self.view.page()
                if page is None:
                    raise RequestError(
                        "This server has no live page; `mockllm serve` has one without --no-ui.",
                        status=404,
                    )
                return await page.respond(arrival, sent, fields)
            status, value = await self.control.handle(arrival, session)
        except RequestError as error:
            refusal = json_answer(error.status, _error(error), fields)
            return await deliver(request, refusal, sent, close=closes(error))
        if isinstance(value, dict):
            return await deliver(request, json_answer(status, value, fields), sent)
        return await deliver_parts(request, fields, value, sent)

    async def _probe(self, path: str, fields: dict[str, str]) -> HttpAnswer:
        if path.endswith("/health"):
            return json_answer(200, self.control.health(), fields)
        if path.endswith("/ready"):
            problems = await self.readiness.problems()
            if problems:
                return json_answer(503, {"status": "not ready", "problems": problems}, fields)
            return json_answer(200, {"status": "ready"}, fields)
        head = {"content-type": CONTENT_TYPE, **fields}
        text = TimedBytes(0, render(await self.figures(), self.sources.options.metrics))
        return bytes_answer(200, head.items(), [text], streamed=False)


def _error(error: RequestError) -> dict[str, Any]:
    problems = getattr(error, "problems", None)
    listed = {} if problems is None else {"problems": problems}
    return {"error": {"message": error.message, **listed}}


_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?")
_PAGES = ("server", "scenarios", "cli")


def wants_page(headers: Mapping[str, str]) -> bool:
    """Whether the client of a request for `/` takes a page or a text."""
    accepted = headers.get("accept", "*/*").lower()
    return any(kind in accepted for kind in ("text/html", "text/plain", "text/*", "*/*"))


def front_page(
    request: web.BaseRequest,
    headers: Mapping[str, str],
    session: str,
    count: int,
    *,
    ui: bool = True,
) -> HttpAnswer:
    """The page, as text."""
    host = headers.get("host", "")
    root = f"{request.scheme}://{host}" if _HOST.fullmatch(host) else _address(request)
    played = f"It plays {count} scenario{'s' * (count != 1)}"
    lines = [
        f"This is mockllm, a mock server for LLM clients. {played} as the streams of these APIs.",
        "No model is called; any API key will do.",
        "",
        "Base URLs for clients:",
    ]
    for base in client_base_urls(base_urls(root + session)):
        setting = f"{base.variable}={base.url}" if base.variable else base.url
        lines.append(f"  {setting}  # {', '.join(base.apis)}")
    lines += ["", "About this server:"]
    lines += [f"  {root}{path}  # {what}" for path, what in (_ROUTES if ui else _ROUTES[1:])]
    lines += ["", "Documentation:", *(f"  {documentation.page(name)}" for name in _PAGES), ""]
    fields = {"content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff"}
    data = "\n".join(lines).encode()
    return bytes_answer(200, {**fields, **CORS}.items(), [TimedBytes(0, data)], streamed=False)


def _address(request: web.BaseRequest) -> str:
    """The URL of the server, for a request whose `Host` is none."""
    transport = request.transport
    name = None if transport is None else transport.get_extra_info("sockname")
    return "http://127.0.0.1" if name is None else url_of(*name[:2])


_ROUTES = (
    ("/_mockllm/ui", "a live page: requests, answers and scenarios"),
    ("/_mockllm/scenarios", "the scenarios"),
    ("/_mockllm/journal", "the requests so far"),
    ("/_mockllm/health", "whether the server answers"),
    ("/metrics", "figures for Prometheus"),
)
