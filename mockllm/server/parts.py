"""The parts of a server, each given what it works with. Imported when the server listens already,
for it needs nearly everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mockllm.protocols import PROTOCOLS
from mockllm.replay.sessions.session import Sessions
from mockllm.scenario.model import Scenario
from mockllm.server.answers import Answers
from mockllm.server.control.access import ControlAccess
from mockllm.server.control.metrics import Figures
from mockllm.server.control.routes import Control
from mockllm.server.control.server_requests import Readiness, ServerRequests
from mockllm.server.control.server_view import ServerView
from mockllm.server.handler import Handler
from mockllm.server.options import ServerOptions

if TYPE_CHECKING:
    from mockllm.server.state.shared_answers import SharedAnswers
    from mockllm.server.state.shared_state import SharedState


@dataclass(frozen=True, slots=True)
class ServerParts:
    """The parts of one server.

    Args:
        state: what other processes share; None: nothing is shared.
    """

    handler: Handler
    answers: Answers
    readiness: Readiness
    view: ServerView
    streaming: set[asyncio.Task[object]]
    state: SharedState | None


def make_parts(
    scenarios: Iterable[Scenario], options: ServerOptions, sessions: Sessions
) -> ServerParts:
    """The parts of a server."""
    streaming: set[asyncio.Task[object]] = set()
    metrics = Figures()

    def own_figures() -> Figures:
        return metrics.copy(len(streaming), sessions.dropped)

    async def figures() -> Figures:
        return own_figures() if shared is None else await shared.state.all_figures()

    answers = Answers(scenarios, options, streaming)
    sessions.on_evicted = answers.assigned.evict
    shared = _shared(answers, options, metrics) if options.state else None
    control = Control(sessions, answers.assigned, PROTOCOLS, answers.player_of, options.paths)
    access = ControlAccess(options.host, options.allowed_hosts, options.allowed_origins)
    readiness = Readiness()
    if shared is not None:
        from mockllm.server.state.shared_sessions import SharedSessions

        answers.share(shared)
        control.sessions = SharedSessions(shared)
        shared.state.figures = own_figures
        readiness.checks.append(shared.state.problem)
    view = ServerView(answers, control.sessions, options.page)
    requests = ServerRequests(answers, control, access, view, readiness, figures)
    handler = Handler(options, answers, sessions, shared, requests, view, metrics, streaming)
    state = None if shared is None else shared.state
    return ServerParts(handler, answers, readiness, view, streaming, state)


def _shared(answers: Answers, options: ServerOptions, metrics: Figures) -> SharedAnswers:
    """Sessions in a store that other processes use, too."""
    from mockllm.server.state.shared_answers import SharedAnswers
    from mockllm.server.state.shared_state import SharedState, store_of

    notice = options.notice or (lambda _: None)
    return SharedAnswers(
        SharedState(store_of(options.state), notice),
        answers.assigned,
        lambda: answers.player,
        metrics.note_store_error,
    )
