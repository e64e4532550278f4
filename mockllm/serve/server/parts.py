"""Wires one server: the only place that knows all of its parts.

Imported when the server listens already, for it needs nearly everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from mockllm.core.record import record
from mockllm.play.replay.sessions.session import Sessions
from mockllm.scenario.model import Scenario
from mockllm.serve.server.answers import Answers, DeferredWork
from mockllm.serve.server.control.control_routes import Control, LocalSessions
from mockllm.serve.server.control.server_requests import Readiness, ServerRequests
from mockllm.serve.server.control.server_view import SentAnswers, ServerView
from mockllm.serve.server.exchanges import Delivery, ExchangeLog
from mockllm.serve.server.handler import Handler
from mockllm.serve.server.http.access import ControlAccess
from mockllm.serve.server.metrics.by_model import Models
from mockllm.serve.server.metrics.figures import Figures
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.sessions.session_finder import SessionFinder
from mockllm.serve.server.sources import Sources

if TYPE_CHECKING:
    from mockllm.serve.server.gates import Gates
    from mockllm.serve.server.limits.capacity import Slots
    from mockllm.serve.server.limits.quotas import ServerQuotas
    from mockllm.serve.server.state.shared_sessions import SharedSessions
    from mockllm.serve.server.state.shared_state import SharedState


@record
class ServerParts:
    """The parts of one server that its life needs.

    Args:
        streaming: the tasks whose answers take time.
        state: what other processes share; None: nothing is shared.
    """

    handler: Handler
    control: Control
    sources: Sources
    delivery: Delivery
    sessions: SessionFinder
    readiness: Readiness
    view: ServerView
    streaming: set[asyncio.Task[object]]
    state: SharedState | None


def make_parts(
    scenarios: Iterable[Scenario], options: ServerOptions, sessions: Sessions, began: float
) -> ServerParts:
    """The parts of a server; `began` is when it started, in seconds of `time.perf_counter`."""
    streaming: set[asyncio.Task[object]] = set()
    metrics = Figures(models=Models() if options.counts_models else None)
    slots: Slots | None = None
    if options.capacity is not None:
        from mockllm.serve.server.limits.capacity import Slots  # few servers need it

        slots = Slots(options.capacity, streaming)

    def waiting() -> int:
        return 0 if slots is None else slots.waiting

    def running_answers() -> int:
        return len(streaming) - waiting()

    def own_figures() -> Figures:
        return metrics.copy(running_answers(), sessions.dropped, waiting())

    async def figures() -> Figures:
        return own_figures() if state is None else await state.all_figures()

    access = ControlAccess(options.host, options.allowed_hosts, options.allowed_origins)
    sources = Sources(scenarios, options, running_answers, began)
    sessions.on_evicted = sources.setups.evict
    readiness = Readiness()
    state: SharedState | None = None
    shared: SharedSessions | None = None
    if options.state:
        from mockllm.serve.server.state.shared_sessions import SharedSessions
        from mockllm.serve.server.state.shared_state import SharedState, store_of

        notice = options.notice or (lambda _: None)
        state = SharedState(store_of(options.state), notice, own_figures, metrics.note_store_error)
        shared = SharedSessions(state, sources.setups, lambda: sources.player)
        readiness.checks.append(state.problem)
    quotas: ServerQuotas | None = None
    if options.quotas:
        from mockllm.serve.server.limits.quotas import ServerQuotas  # few servers need it

        buckets = () if state is None else (state.now, state.take)
        quotas = ServerQuotas(options.quotas, *buckets)
    local = LocalSessions(sessions)

    @cache
    def gates() -> Gates:
        from mockllm.serve.server.gates import Gates  # few scenarios have some

        return Gates(sessions, state)

    control = Control(sources, sessions, local if shared is None else shared, gates)
    sent = None if options.page is None else SentAnswers()
    view = ServerView(sources, control.sessions, options.page, sent)
    log = ExchangeLog(sources, sessions, state, metrics, view)
    delivery = Delivery(log, streaming, gates)
    finder = SessionFinder(options, sources.setups)
    deferred = DeferredWork(streaming, state)
    handler = Handler(
        sources,
        ServerRequests(sources, control, access, view, readiness, figures),
        finder,
        Answers(sources, access, deferred),
        delivery,
        shared,
        quotas,
        slots,
        deferred,
    )
    return ServerParts(
        handler, control, sources, delivery, finder, readiness, view, streaming, state
    )
