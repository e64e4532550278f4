"""Requests about the server itself: control routes, preflights, and the page at `/`."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import partial

from aiohttp import web

from mockllm.protocols import PROTOCOLS
from mockllm.replay.compilation.http_answer import json_answer, without_body
from mockllm.replay.sessions.exchange import Sent
from mockllm.server.answers import Answers
from mockllm.server.arrival import Arrival
from mockllm.server.control.access import preflight_headers
from mockllm.server.control.front_page import front_page, wants_page
from mockllm.server.control.responses import ControlAnswers
from mockllm.server.control.routes import CONTROL_PREFIX
from mockllm.server.http.delivery import deliver
from mockllm.server.http.request_target import SESSION_HEADER

__all__ = ["About"]


class About:
    """Finds what answers a request about the server.

    Args:
        control: answers the control routes.
    """

    def __init__(self, control: ControlAnswers, answers: Answers) -> None:
        self._control = control
        self._answers = answers

    @staticmethod
    def may_answer(method: str, path: str) -> bool:
        """Whether `answer` is to be called: it costs less to find out here."""
        return path == "/" or path.startswith(CONTROL_PREFIX) or method == "OPTIONS"

    def answer(
        self,
        arrival: Arrival,
        sent: Sent,
    ) -> Awaitable[web.StreamResponse] | None:
        """What answers a request about the server itself; None for all others."""
        request, headers, target = arrival.request, arrival.headers, arrival.target
        path, session = arrival.path, arrival.session
        named = request.raw_path.endswith(f"/s/{session}{target}")
        if path.startswith(CONTROL_PREFIX):
            return self._control.respond(
                request,
                sent,
                self._answers.player,
                target,
                headers,
                session if named or SESSION_HEADER in headers else None,
                partial(self._answers.body, arrival),
            )
        if request.method == "OPTIONS":
            preflight = json_answer(200, {}, preflight_headers(headers))
            return deliver(request, preflight, sent)
        if path == "/" and self._shows_front_page(request.method, session, headers):
            count = len(self._answers.player_of(session).served.scenarios)
            root = f"/s/{session}" if named else ""
            ui = self._answers.options.page is not None
            page = front_page(request, headers, root, PROTOCOLS, count, ui=ui)
            return deliver(request, without_body(page) if request.method == "HEAD" else page, sent)
        return None

    def _shows_front_page(self, method: str, session: str, headers: Mapping[str, str]) -> bool:
        """Whether a request for `/` gets the page about the server: no scenario has this route, no
        service answers, and the client takes a page."""
        answers = self._answers
        own = answers.assigned.find(session)
        if method not in ("GET", "HEAD") or not wants_page(headers) or answers.proxy is not None:
            return False
        if own is not None and (own.gone or own.proxy is not None):
            return False
        shared = self._control.control.shared is not None
        if shared and session != "default":  # its scenarios may not be here yet
            return False
        return not answers.plain.has(answers.player_of(session), method, "/", None)
