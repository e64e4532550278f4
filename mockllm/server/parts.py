"""The parts of a server, each given what it works with. Imported when the server listens already,
for it needs nearly everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mockllm.core.record import record
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
    from mockllm.server.state.shared_state import SharedState


@record
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
        return own_figures() if state is None else await state.all_figures()

    access = ControlAccess(options.host, options.allowed_hosts, options.allowed_origins)
    answers = Answers(scenarios, options, access, streaming)
    sessions.on_evicted = answers.assigned.evict
    state = None
    control = Control(sessions, answers.assigned, PROTOCOLS, answers.player_of, options.paths)
    readiness = Readiness()
    if options.state:
        from mockllm.server.state.shared_sessions import SharedSessions
        from mockllm.server.state.shared_state import SharedState, store_of

        notice = options.notice or (lambda _: None)
        state = SharedState(store_of(options.state), notice, own_figures, metrics.note_store_error)
        control.sessions = SharedSessions(state, answers.assigned, lambda: answers.player)
        answers.share(control.sessions)
        readiness.checks.append(state.problem)
    view = ServerView(answers, control.sessions, options.page)
    requests = ServerRequests(answers, control, access, view, readiness, figures)
    handler = Handler(options, answers, sessions, state, requests, view, metrics, streaming)
    return ServerParts(handler, answers, readiness, view, streaming, state)
