"""Who answers a request: a scenario, a service that is recorded, or an error; nothing is sent here.

Nothing here knows a protocol. What cannot be answered at once is played again when a pure core has
what it says it needs. Files are read, and long searches made, in threads: a slow disk holds up the
requests that need it, and no other. Operations on shared state are carried out by its store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from mockllm.core.errors import RequestError, ScenarioError
from mockllm.core.http import Target
from mockllm.core.later import NotDoneError, deferring
from mockllm.core.record import record
from mockllm.play.matching.index import ScenarioIndex
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.call import Answered, ApiCall, refuse
from mockllm.play.replay.compilation.http_answer import HttpAnswer, error_at
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.exchange import Played
from mockllm.play.replay.sessions.session import Session
from mockllm.play.replay.sessions.shared_session import (
    SharedSession,
    StateAwayError,
    StateNotReadError,
    StateOperation,
)
from mockllm.scenario.ignoring import with_ignored
from mockllm.scenario.model import Scenario
from mockllm.serve.server.control.access import ControlAccess
from mockllm.serve.server.control.session_setup import SessionRequest, SessionSetups, session_gone
from mockllm.serve.server.http.request_reading import Arrival, closes, opens_websocket
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.routing import Endpoint, PlainRoutes, Routes, path_routes
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Operation, WireProtocol

if TYPE_CHECKING:
    from mockllm.serve.server.limits.capacity import Slots
    from mockllm.serve.server.limits.quotas import MeteredCall, ServerQuotas
    from mockllm.serve.server.options import RecordOptions
    from mockllm.serve.server.recording.proxy import Proxy
    from mockllm.serve.server.recording.recorded_lines import RecordedLines
    from mockllm.serve.server.state.shared_sessions import SharedSessions
    from mockllm.serve.server.state.shared_state import SharedState


@record
class Forward:
    """Says that the real service of a protocol is to answer; it is recorded."""

    proxy: Proxy
    protocol: WireProtocol
    origin: str = ""


class Chosen(NamedTuple):
    """The answer that was chosen for a request.

    Args:
        target: of a request for an answer, as its path and query give it.
        close: whether the connection has to be closed afterwards.
    """

    answer: HttpAnswer | Forward
    played: Played
    target: Target | None = None
    close: bool = False


_PRIVATE_OPERATIONS: frozenset[Operation] = frozenset(
    (
        *("response", "delete_response", "cancel_response", "input_items"),
        *("files", "file", "file_content", "delete_file"),
        *("batches", "batch", "batch_results", "cancel_batch", "delete_batch"),
    )
)
"""The operations that show what another client sent. The ids of answers are the same on every
server, so that any page could name one."""

_NO_WEBSOCKETS = (
    "mockllm does not play WebSockets yet, and `mockllm record` passes them on without recording "
    "them. Let the client speak HTTP, as most SDKs do unless they are told otherwise; or let it "
    "reach the service: name the host in NO_PROXY."
)

_DEFAULT_SETUP = SessionRequest()
"""A session like all others of the server."""


class Answers:
    """Decides who answers the requests of one server.

    Args:
        began: when that started, in seconds of `time.perf_counter`.
    """

    def __init__(
        self,
        scenarios: Iterable[Scenario],
        options: ServerOptions,
        access: ControlAccess,
        streaming: set[asyncio.Task[object]],
        began: float,
    ) -> None:
        self.options = options
        self._began = began
        self._access, self._streaming = access, streaming
        self._slots = self._make_slots()
        self._scenarios = tuple(scenarios)
        self.player = self._player(self._scenarios)
        self.proxy: Proxy | None = None
        self.recorded: RecordedLines | None = None
        """What the recorder reported, for the live page; None where nothing is recorded."""
        self.assigned = SessionSetups(self._player)
        self.routes = Routes(PROTOCOLS, path_routes(PROTOCOLS.addresses, options.paths))
        self._deferred = DeferredWork(streaming)
        self.plain = PlainRoutes(self.routes, fallback=bool(options.fallback))
        self._shared: SharedSessions | None = None
        self._quotas = self._make_quotas()

    def _make_slots(self) -> Slots | None:
        if self.options.capacity is None:
            return None
        from mockllm.serve.server.limits.capacity import Slots  # few servers need it

        return Slots(self.options.capacity, self._streaming)

    def _make_quotas(self, state: SharedState | None = None) -> ServerQuotas | None:
        if not self.options.quotas:
            return None
        from mockllm.serve.server.limits.quotas import ServerQuotas  # few servers need it

        if state is None:
            return ServerQuotas(self.options.quotas)
        return ServerQuotas(self.options.quotas, state.now, state.take)

    def _player(
        self,
        scenarios: Iterable[Scenario] | ScenarioIndex,
        session: SessionRequest = _DEFAULT_SETUP,
    ) -> Player:
        """A player with the options of the server and of a session."""
        options = self.options
        if options.ignore and not isinstance(scenarios, ScenarioIndex):
            scenarios = [with_ignored(scenario, options.ignore) for scenario in scenarios]
        return Player(
            scenarios,
            strict=options.strict,
            fallback=options.fallback,
            quirks=(*options.quirks, *session.quirks),
            named=session.named,
            speed=options.speed if session.speed is None else session.speed,
            faults=options.faults if session.faults is None else session.faults,
            latency=options.latency if session.latency is None else session.latency,
            running=self._running,
        )

    def _running(self) -> int:
        """The number of answers that take time and are on their way."""
        return len(self._streaming) - self.waiting

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a slot."""
        return 0 if self._slots is None else self._slots.waiting

    def share(self, shared: SharedSessions) -> None:
        """Plays with state that other processes share."""
        self._shared = shared
        self._deferred = DeferredWork(self._streaming, shared.state.carry_out)
        self._quotas = self._make_quotas(shared.state)

    def reload(self, scenarios: Iterable[Scenario]) -> None:
        """Serves other scenarios from the next request on."""
        self._scenarios = tuple(scenarios)
        self.player = self._player(self._scenarios)

    def start_recording(self, options: RecordOptions) -> None:
        """Lets real services answer, as the options say, and records what they do.

        Raises:
            ScenarioError: what was recorded before cannot be loaded.
        """
        from mockllm.serve.server.recording.proxy import Proxy

        names = [scenario.name for scenario in self._scenarios]
        if self.options.page is not None and options.mode != "none":
            from mockllm.serve.server.recording.recorded_lines import RecordedLines

            self.recorded = RecordedLines(options)
            options = self.recorded.options
        self.proxy = Proxy(options, self._serving, names, self.options.faults)
        self.proxy.patience = self.options.patience
        self.proxy.began = self._began

    async def close(self) -> None:
        """Waits until everything that was recorded is on the disk."""
        await self.assigned.close()
        if self.proxy is not None:
            await self.proxy.close()

    def _serving(self, recorded: tuple[Scenario, ...]) -> Callable[[], None]:
        """A function that serves recorded scenarios beside the others; they are indexed before, so
        that the event loop need not wait for it."""
        by_name = {scenario.name: scenario for scenario in (*self._scenarios, *recorded)}
        player = self._player(by_name.values())

        def swap() -> None:
            self.player = player

        return swap

    def player_of(self, session: str) -> Player:
        """The player that decides about the answers in a session."""
        own = self.assigned.find(session)
        return self.player if own is None else self.assigned.player(own, self.player)

    def refusal(self, path: str, error: RequestError, known: Played | None = None) -> Answered:
        """The error answer in the form of the API that has a path."""
        return refuse(self.routes.nearest(path), error, known or Played())

    def api_and_target(self, arrival: Arrival) -> tuple[str | None, Target | None]:
        """The API of a request, and for a request for an answer what its path and query say."""
        endpoint = self.routes.find(arrival.method, arrival.path, arrival.headers)
        if endpoint is None:
            return None, None
        return endpoint.protocol.name, _target(endpoint)

    def answer(self, arrival: Arrival, session: Session) -> Awaitable[Chosen]:
        """The answer to a request."""
        if self._shared is None or not isinstance(session, SharedSession):
            return self._answer(arrival, session)
        return self._answer_shared(self._shared, arrival, session)

    async def _answer_shared(
        self, shared: SharedSessions, arrival: Arrival, session: SharedSession
    ) -> Chosen:
        """The answer to a request of a session that other processes share."""
        try:
            await shared.refresh(session.name)
            chosen = await self._answer(arrival, session)
            await shared.state.keep(session)
        except RequestError as error:
            session.begin()
            answered = self.refusal(arrival.path, error)
            if isinstance(error, StateAwayError):
                counted = error.may_count or session.is_counted
                played = replace(answered.played, outcome="error", counted=counted)
                answered = replace(answered, played=played)
                shared.state.failed()
            return _choice(answered)
        return chosen

    async def _answer(self, arrival: Arrival, session: Session) -> Chosen:
        player, proxy = self.player, self.proxy
        own = self.assigned.find(session.name)
        if own is not None:
            player = self.assigned.player(own, player)
            proxy = own.proxy or (None if own.is_alone else proxy)
            if own.gone:
                return _choice(self.refusal(arrival.path, session_gone(session.name, own.why)))
        endpoint = self.routes.find(arrival.method, arrival.path, arrival.headers)
        forwards_all = proxy is not None and proxy.forwards_all
        routed = not forwards_all and self.plain.has(player, arrival.method, arrival.path, endpoint)
        try:
            if (
                opens_websocket(arrival.headers)
                and not routed
                and (proxy is None or proxy.mode == "none")
            ):
                raise RequestError(_NO_WEBSOCKETS, status=501, code="websocket")
            # Where a scenario has the route, `_answer_plain` asks the service: only if the
            # conditions of the scenario do not hold.
            if proxy is not None and not routed:
                forward = await self._forward_if_unmatched(proxy, arrival, endpoint, session)
                if forward is not None:
                    return forward
            if endpoint is None or routed:
                plain = await self._answer_plain(arrival, session, player, proxy, endpoint)
                if plain is not None:
                    return plain
                assert endpoint is not None
        except StateAwayError:
            raise
        except RequestError as error:
            shape = self.routes.nearest(arrival.path) if endpoint is None else endpoint.protocol
            return _choice(refuse(shape, error), close=closes(error))
        return await self._answer_call(arrival, session, player, proxy, endpoint)

    async def _answer_call(
        self,
        arrival: Arrival,
        session: Session,
        player: Player,
        proxy: Proxy | None,
        endpoint: Endpoint,
    ) -> Chosen:
        """The answer to a request for a path of an API."""
        protocol, target = endpoint.protocol, _target(endpoint)
        place = endpoint.target
        if arrival.query:
            place = Target(place.segments, place.method, arrival.query)
        try:
            body = arrival.body_if_complete(self.options.max_body) or await self.body(arrival)
            if proxy is not None and proxy.forwards_all:
                return self._forward(arrival, proxy, protocol, Played(api=protocol.name), target)
            if endpoint.operation in _PRIVATE_OPERATIONS:
                self._access.check(arrival.headers, "Look-ups of answers do")
            if protocol.guard is not None and self.options.strict:
                protocol.guard(arrival.headers, place)
        except RequestError as error:
            refusal = refuse(protocol, error, Played(api=protocol.name))
            return _choice(refusal, target, closes(error))
        raw_path, at = arrival.request.raw_path, arrival.clock - self._began
        sent = (protocol, place, arrival.headers, body, session, raw_path, at)
        if endpoint.operation != "generate":
            call = ApiCall(*sent, base=arrival.base, received_at=self._time(arrival))
            look_up = partial(player.look_up, call, endpoint.operation)
            return _choice(await self._deferred.play(player, session, look_up))
        call = ApiCall(*sent)
        metered: MeteredCall | None = None
        if self._quotas is not None:
            metered = await self._quotas.meter(call)
            if not metered.granted:
                refusal = metered.refusal()
                answer = error_at(refusal.answer, protocol, place)
                return Chosen(answer, refusal.played, target)
        if self._slots is not None and (why := await self._why_full(self._slots, arrival)):
            refusal = self._slots.refusal(protocol, why)
            return Chosen(error_at(refusal.answer, protocol, place), refusal.played, target)
        answered = await self._deferred.play(player, session, partial(player.play, call))
        answer, played = self._rewrite_urls(arrival, answered.answer), answered.played
        is_refused = played.outcome in ("unmatched", "invalid")
        if is_refused and proxy is not None and proxy.serves(protocol, arrival.origin):
            return self._forward(arrival, proxy, protocol, played, target)
        # A recorded error is played byte by byte; one that is made has the form of its target.
        if answer.status >= 400 and played.recorded != "exact":
            answer = error_at(answer, protocol, place)
        if self._quotas is not None and metered is not None:
            answer = await self._quotas.settle(metered, answer)
        return Chosen(answer, played, target)

    async def _why_full(self, slots: Slots, arrival: Arrival) -> str:
        """Takes a slot for a request, perhaps after a wait; returns why it gets none, or ""."""
        arrival.slot = slots.enter()
        return slots.full if arrival.slot is None else await arrival.slot.wait(arrival.request)

    async def _answer_plain(
        self,
        arrival: Arrival,
        session: Session,
        player: Player,
        proxy: Proxy | None,
        endpoint: Endpoint | None,
    ) -> Chosen | None:
        """The answer to a route that is no path of an API, or that scenarios may answer. None where
        the endpoint of the path answers.

        Raises:
            RequestError: several scenarios answer equally well, or the file with the body of the
                answer cannot be read.
        """
        body = await self.body(arrival)
        query = arrival.request.raw_path.partition("?")[2]
        sent = RouteRequest(arrival.method, arrival.path, query, arrival.headers, body)
        play = partial(player.routes.play, sent, session, self._time(arrival))
        try:
            answered = await self._deferred.play(player.routes, session, play)
        except ScenarioError as error:
            raise RequestError(f"The answer cannot be read: {error}", status=500) from None
        if answered is not None:
            answered = replace(answered, answer=self._rewrite_urls(arrival, answered.answer))
            return _choice(self.plain.without_faults(answered, arrival.headers))
        forward = None
        if proxy is not None:
            forward = await self._forward_if_unmatched(proxy, arrival, endpoint, session)
        # Where scenarios have the route of a job, the jobs of the service do not answer it.
        is_job = endpoint is not None and endpoint.operation in endpoint.protocol.jobs
        if forward is not None or (endpoint is not None and not is_job):
            return forward
        return _choice(
            self.plain.without_faults(self.plain.answer_unmatched(player, sent), arrival.headers)
        )

    async def _forward_if_unmatched(
        self, proxy: Proxy, arrival: Arrival, endpoint: Endpoint | None, session: Session
    ) -> Chosen | None:
        """Forwards look-ups, and paths not known here, to the service, if there is one."""
        origin = arrival.origin
        # The paths of files and batches belong to several APIs: the headers say to which service.
        if endpoint is not None and endpoint.operation not in endpoint.protocol.jobs:
            protocol = endpoint.protocol
            stored = protocol.stored
            id = endpoint.target.segments.get(stored.segment, "") if stored is not None else ""
            if endpoint.operation == "generate":
                return None
            known = await self._deferred.play(self, session, partial(session.answer, id))
            if known is not None:
                return None
            if proxy.serves(protocol, origin):
                return self._forward(arrival, proxy, protocol, Played(api=protocol.name))
        if origin and proxy.mode != "none":
            return self._forward(arrival, proxy, self.routes.nearest(arrival.path), Played())
        service = proxy.service_for(arrival.path, arrival.headers)
        return None if service is None else self._forward(arrival, proxy, service, Played())

    def _forward(
        self,
        arrival: Arrival,
        proxy: Proxy,
        protocol: WireProtocol,
        played: Played,
        target: Target | None = None,
    ) -> Chosen:
        """Lets the service answer. What a page sends to this server goes no further, unless its
        origin is allowed; what it sends to a service, through a proxy that the user of the browser
        has chosen, does.
        """
        if not arrival.origin:
            try:
                self._access.check_page(arrival.headers, "Services do")
            except RequestError as error:
                return _choice(refuse(protocol, error, Played(api=played.api)), target)
        return Chosen(Forward(proxy, protocol, arrival.origin), played, target)

    def _rewrite_urls(self, arrival: Arrival, answer: HttpAnswer) -> HttpAnswer:
        """The answer with URLs of this server in its headers, not of the recorded service. A client
        that believes to speak to the service reaches this server by those, too."""
        if not answer.service or arrival.origin:
            return answer
        return answer.with_base_url(arrival.base)

    def accept_origin(self, arrival: Arrival, session: str) -> None:
        """Takes the origin that a request names in a header.

        Raises:
            RequestError: somebody else than a library that is redirected names it, or it is not
                intercepted.
        """
        options, setup = self.options.intercept, self.assigned.find(session)
        arrival.accept_origin("" if options is None else options.key)
        if setup is not None and setup.gone:
            return  # which is what the answer says
        hosts = (options and options.hosts, setup and setup.hosts)
        if not any(known and known.has_url(arrival.origin) for known in hosts):
            raise RequestError(
                f"{arrival.origin} is not intercepted here.", status=403, code="not_intercepted"
            )

    def _time(self, arrival: Arrival) -> float:
        """When a request arrived, by the clock of all processes that share the state."""
        return arrival.at + (0.0 if self._shared is None else self._shared.state.store.clock_offset)

    async def body(self, arrival: Arrival) -> bytes:
        """The body of a request.

        Raises:
            RequestError: it is too large, or cannot be read.
        """
        return await arrival.read(self.options.max_body, self.options.patience)


def _choice(answered: Answered, target: Target | None = None, close: bool = False) -> Chosen:
    return Chosen(answered.answer, answered.played, target, close)


def _target(endpoint: Endpoint) -> Target | None:
    return endpoint.target if endpoint.operation == "generate" else None


_Result = TypeVar("_Result")

CarryOut = Callable[[SharedSession, Sequence[StateOperation]], Awaitable[None]]
"""Carries out an operation on shared state; its outcome is known to the session afterwards."""


class DeferredWork:
    """Plays requests until everything that they need is there. However many wait for the same
    work, it is done once."""

    def __init__(
        self, waiting: set[asyncio.Task[object]], carry_out: CarryOut | None = None
    ) -> None:
        self._waiting = waiting
        self._carry_out = carry_out
        self._running: dict[tuple[object, Hashable], asyncio.Task[object]] = {}

    async def play(
        self, owner: object, session: Session, function: Callable[[], _Result]
    ) -> _Result:
        """The result of a function, called again whenever something that it needs is there."""
        outcomes: dict[Hashable, Callable[[], Any]] = {}
        while True:
            if isinstance(session, SharedSession):
                session.begin()
            try:
                with deferring(outcomes):
                    return function()
            except NotDoneError as missing:
                outcomes[missing.key] = await self._finish(owner, missing)
            except StateNotReadError as missing:
                assert self._carry_out is not None
                assert isinstance(session, SharedSession)
                await self._carry_out(session, missing.operations)

    async def _finish(self, owner: object, missing: NotDoneError) -> Callable[[], Any]:
        key = (owner, missing.key)
        work = self._running.get(key)
        if work is None:
            work = self._running[key] = asyncio.create_task(asyncio.to_thread(missing.read))
            work.add_done_callback(partial(self._end, key))
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            # A client that leaves ends its own request; others may wait for the same work.
            await asyncio.wait([work])
        finally:
            self._waiting.discard(task)
        return work.result

    def _end(self, key: tuple[object, Hashable], task: asyncio.Task[object]) -> None:
        del self._running[key]
        if not task.cancelled():
            task.exception()  # or asyncio logs it where every client has left
