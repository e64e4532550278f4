"""Finds who answers a request: a service that is recorded, a route of a scenario, or the player.

What cannot be answered at once is played again when a pure core has what it says it needs. Files
are read, and long searches made, in threads: a slow disk holds up the requests that need it, and no
other. Operations on shared state are carried out by its store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mockllm.core.errors import NoMatchError, RequestError, ScenarioError
from mockllm.core.http import Target
from mockllm.core.later import NotDoneError, deferring
from mockllm.play.matching.route_selection import OPENING, RouteRequest
from mockllm.play.replay.call import Answered, ApiCall, refuse
from mockllm.play.replay.compilation.http_answer import error_at
from mockllm.play.replay.sessions.exchange import NOTHING, Played
from mockllm.play.replay.sessions.session import Session
from mockllm.play.replay.sessions.shared_session import SharedSession, StateNotReadError
from mockllm.serve.server.failures import failure, too_deep
from mockllm.serve.server.http.access import ControlAccess
from mockllm.serve.server.http.request_reading import Arrival, opens_websocket
from mockllm.serve.server.request_context import Chosen, Forward, RequestContext
from mockllm.serve.server.routing import Endpoint
from mockllm.serve.server.sources import Sources
from mockllm.wire.protocols.base import Operation, WireProtocol

if TYPE_CHECKING:
    from mockllm.serve.server.recording.proxy import Proxy
    from mockllm.serve.server.state.shared_state import SharedState

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
    "mockllm plays Responses, Realtime and Live over a WebSocket, and routes of scenarios with "
    "`socket`, as `mockllm record` writes them. Record it; or let the client speak HTTP, as most "
    "SDKs do unless told otherwise; or let it reach the service: name the host in NO_PROXY."
)


_ONLY_WEBSOCKETS = (
    "This API has only WebSockets, and the request does not open one: it has no 'Connection: "
    "Upgrade' and 'Upgrade: websocket'. Let the client connect to a wss or ws URL."
)


class Answers:
    """Finds the answers to the requests of one server.

    Args:
        access: which pages may look answers up, or reach services.
        deferred: does what a call needs before it can be played.
    """

    def __init__(self, sources: Sources, access: ControlAccess, deferred: DeferredWork) -> None:
        self._sources, self._access, self._deferred = sources, access, deferred

    async def route(self, context: RequestContext) -> Chosen | None:
        """The answer of a service, or of a route that is no path of an API or that scenarios have;
        None: the API of the path answers.

        Raises:
            RequestError: nobody may answer.
        """
        if context.play is not None:
            played = await self._deferred.play(self, context.session, context.play)
            return self._sources.plain.without_faults(played, context.arrival.headers)
        arrival, player, proxy = context.arrival, context.player, context.proxy
        if player.has_servers or (proxy is not None and proxy.mcp is not None):
            answered = await self._answer_server(context)
            if answered is not None:
                return answered
        forwards_all = proxy is not None and proxy.forwards_all
        plain = self._sources.plain
        is_routed = not forwards_all and plain.has(player, arrival, context.endpoint)
        if opens_websocket(arrival.headers) and not is_routed and not _records(proxy):
            mismatch = player.routes.index.explain(_opening(arrival)) if player.has_routes else ""
            if mismatch:
                message = f"No scenario answers the WebSocket {arrival.path}. Nearest: {mismatch}."
                raise NoMatchError(message, status=404, code="no_scenario")
            raise RequestError(_NO_WEBSOCKETS, status=501, code="websocket")
        if _is_unopened(context):
            if not is_routed and not _records(proxy):
                raise RequestError(_ONLY_WEBSOCKETS, status=426, code="websocket")
            context.endpoint = None  # a recorder passes on what it does not know
        chosen = None
        # Where a scenario has the route, the service is asked only if the conditions of the
        # scenario do not hold.
        if proxy is not None and not is_routed:
            chosen = await self._forward_if_unmatched(context, proxy)
        if chosen is None and (context.endpoint is None or is_routed):
            chosen = await self._play_route(context)
        endpoint = context.endpoint
        if chosen is None and endpoint is not None:
            _enter_api(context, endpoint)
            if proxy is not None and forwards_all:
                await self._read(arrival)
                known = Played(api=context.api)
                chosen = self._forward(arrival, proxy, endpoint.protocol, known)
        return chosen

    async def _answer_server(self, context: RequestContext) -> Chosen | None:
        """The answer of an MCP server; None where the path is of none."""
        from mockllm.serve.mcp import http_answers  # few scenarios have some

        arrival, player = context.arrival, context.player
        name = http_answers.server_in(arrival.path)
        if name is None or self._sources.plain.has(player, arrival, context.endpoint):
            return None  # a scenario may have the very path
        body, headers = await self._read(arrival), arrival.headers
        proxy = context.proxy
        if proxy is not None and proxy.mcp is not None and name in proxy.mcp.copies:
            self._access.check_page(headers, "MCP servers do")
            known = proxy.mcp.answer(name, arrival.method, headers, body)
            if isinstance(known, Answered):
                return known
            nearest = self._sources.routes.nearest(arrival.path, headers)
            return Forward(proxy, nearest, known, server=name)
        play = partial(
            http_answers.answer,
            player,
            name,
            arrival.method,
            arrival.target,
            headers,
            body,
            context.session,
        )
        answered = await self._deferred.play(player, context.session, play)
        return self._sources.plain.without_faults(answered, headers)

    def find_opening(self, context: RequestContext) -> RouteRequest | None:
        """A request that opens a WebSocket on which a scenario is played; else None.

        Raises:
            RequestError: several scenarios answer equally well.
        """
        proxy, player = context.proxy, context.player
        if not player.has_routes or (proxy is not None and proxy.forwards_all):
            return None
        opening = _opening(context.arrival)
        return opening if player.routes.sockets.answers(opening) else None

    def find_socket(self, context: RequestContext) -> Endpoint | None:
        """The endpoint of a path, or that of the same path over HTTP, where its API has messages,
        no scenario has the route, and no service is recorded; else None."""
        find, path = self._sources.routes.find, context.arrival.path
        opened = find("GET", path)
        is_opened = opened is not None and opened.operation == "generate"
        endpoint = opened if is_opened else find("POST", path)
        if endpoint is None or endpoint.operation != "generate" or _records(context.proxy):
            return None
        is_routed = self._sources.plain.has(context.player, context.arrival, None)
        return None if is_routed or endpoint.protocol.socket is None else endpoint

    async def _play_route(self, context: RequestContext) -> Chosen | None:
        """The answer to a route that is no path of an API, or that scenarios may answer. None where
        the endpoint of the path answers.

        Raises:
            RequestError: several scenarios answer equally well, or the file with the body of the
                answer cannot be read.
        """
        arrival, player, plain = context.arrival, context.player, self._sources.plain
        body = await self._read(arrival)
        query = arrival.request.raw_path.partition("?")[2]
        place = arrival.method, arrival.path, query
        sent = RouteRequest(*place, arrival.headers, body, arrival.host)
        play = partial(player.routes.play, sent, context.session, self._time(arrival))
        try:
            answered = await self._deferred.play(player.routes, context.session, play)
        except ScenarioError as error:
            raise RequestError(f"The answer cannot be read: {error}", status=500) from None
        if answered is None:
            forward, proxy = None, context.proxy
            if proxy is not None:
                forward = await self._forward_if_unmatched(context, proxy)
            # Where scenarios have the route of a job, the jobs of the service do not answer it.
            endpoint = context.endpoint
            is_job = endpoint is not None and endpoint.operation in endpoint.protocol.jobs
            if forward is not None or (endpoint is not None and not is_job):
                return forward
            answered = await self._answer_object(context, sent)
            if answered is None:
                answered = plain.answer_unmatched(player, sent)
        return plain.without_faults(_with_own_urls(arrival, answered), arrival.headers)

    async def _answer_object(
        self, context: RequestContext, request: RouteRequest
    ) -> Answered | None:
        """The answer to a request about objects that clients make; None where it is about none."""
        place, arrival, player = (
            self._sources.plain.find_object(context.player, request),
            context.arrival,
            context.player,
        )
        if place is None:
            return None
        target, base = Target(query=request.parameters), arrival.base
        path, at = arrival.request.raw_path, arrival.clock - self._sources.began
        call = ApiCall(
            place.protocol,
            target,
            request.headers,
            request.body,
            context.session,
            path,
            at,
            base,
            self._time(arrival),
        )
        try:
            if place.route.does != "make":
                self._access.check(arrival.headers, "Look-ups of objects do")
            return await self._deferred.play(
                player, call.session, partial(place.answer, call, player)
            )
        except RequestError as error:
            return refuse(place.protocol, error, Played(api=place.protocol.name))

    async def _forward_if_unmatched(self, context: RequestContext, proxy: Proxy) -> Chosen | None:
        """Forwards look-ups, and paths not known here, to the service, if there is one."""
        arrival, endpoint = context.arrival, context.endpoint
        # The paths of files and batches belong to several APIs: the headers say to which service.
        if endpoint is not None and endpoint.operation not in endpoint.protocol.jobs:
            protocol = endpoint.protocol
            stored = protocol.stored
            id = endpoint.target.segments.get(stored.segment, "") if stored is not None else ""
            if endpoint.operation == "generate":
                return None
            look_up = partial(context.session.answer, id)
            if await self._deferred.play(self, context.session, look_up) is not None:
                return None
            if proxy.serves(protocol, arrival.origin):
                return self._forward(arrival, proxy, protocol, Played(api=protocol.name))
        if arrival.origin and proxy.mode != "none":
            return self._forward(
                arrival, proxy, self._sources.routes.nearest(arrival.path, arrival.headers)
            )
        service = proxy.service_for(arrival.path, arrival.headers)
        return None if service is None else self._forward(arrival, proxy, service)

    def _forward(
        self, arrival: Arrival, proxy: Proxy, protocol: WireProtocol, played: Played = NOTHING
    ) -> Chosen:
        """Lets the service answer. What a page sends to this server goes no further, unless its
        origin is allowed; what it sends to a service, through a proxy that the user of the browser
        has chosen, does.
        """
        if not arrival.origin:
            try:
                self._access.check_page(arrival.headers, "Services do")
            except RequestError as error:
                return refuse(protocol, error, Played(api=played.api))
        return Forward(proxy, protocol, played, arrival.origin)

    async def read_call(self, context: RequestContext) -> tuple[ApiCall, Operation]:
        """The request that a path of an API gets, and what it is for.

        Raises:
            RequestError: its body cannot be read, or nobody may send it.
        """
        arrival, endpoint = context.arrival, context.endpoint
        assert endpoint is not None
        protocol, place = endpoint.protocol, endpoint.target
        if arrival.query:
            place = Target(place.segments, place.method, arrival.query)
        most = self._sources.options.max_body
        body = arrival.body_if_complete(most) or await self._read(arrival)
        if endpoint.operation in _PRIVATE_OPERATIONS:
            self._access.check(arrival.headers, "Look-ups of answers do")
        if protocol.guard is not None and self._sources.options.strict:
            protocol.guard(arrival.headers, place)
        raw_path, at = arrival.request.raw_path, arrival.clock - self._sources.began
        call = ApiCall(protocol, place, arrival.headers, body, context.session, raw_path, at)
        if endpoint.operation != "generate":
            call = call._replace(base=arrival.base, received_at=self._time(arrival))
        elif context.socket is not None:
            call = call._replace(on_socket=True)
        return call, endpoint.operation

    async def look_up(
        self, context: RequestContext, call: ApiCall, operation: Operation
    ) -> Answered:
        """The answer to a look-up of what was answered before."""
        look_up = partial(context.player.look_up, call, operation)
        return await self._deferred.play(context.player, call.session, look_up)

    async def play(self, context: RequestContext, call: ApiCall) -> Answered:
        """The player's answer to a request."""
        play = partial(context.player.play, call)
        answered = await self._deferred.play(context.player, call.session, play)
        answered = _with_own_urls(context.arrival, answered)
        # A recorded error is played byte by byte; one that is made has the form of its target.
        made = answered.played.recorded != "exact"
        return refused_at(call, answered) if made and answered.answer.status >= 400 else answered

    def forward_refused(self, context: RequestContext, call: ApiCall, answered: Answered) -> Chosen:
        """The service in place of an answer that refuses a request, if there is one."""
        proxy, played = context.proxy, answered.played
        if played.outcome not in ("unmatched", "invalid") or proxy is None:
            return answered
        if not proxy.serves(call.protocol, context.arrival.origin):
            return answered
        return self._forward(context.arrival, proxy, call.protocol, played)

    def _read(self, arrival: Arrival) -> Awaitable[bytes]:
        """The body of a request; a `RequestError` says why it cannot be had."""
        options = self._sources.options
        return arrival.read(options.max_body, options.patience)

    def fail(self, context: RequestContext, error: Exception) -> Answered:
        """The answer to a request on which mockllm itself fails."""
        sources, arrival = self._sources, context.arrival
        endpoint = sources.routes.find(arrival.method, arrival.path, arrival.headers)
        if endpoint is not None:
            _enter_api(context, endpoint)
        context.closes = True
        refusal = too_deep(error, arrival.body) or failure(error)
        answered = sources.refusal(arrival.path, refusal, Played(api=context.api))
        if refusal.status >= 500:
            answered = replace(answered, played=replace(answered.played, outcome="failed"))
        return answered

    def _time(self, arrival: Arrival) -> float:
        """When a request arrived, by the clock of all processes that share the state."""
        return arrival.at + self._deferred.clock_offset


def _opening(arrival: Arrival) -> RouteRequest:
    query = arrival.request.raw_path.partition("?")[2]
    return RouteRequest(OPENING, arrival.path, query, arrival.headers, b"", arrival.host)


def _records(proxy: Proxy | None) -> bool:
    return proxy is not None and proxy.mode != "none"


def _is_unopened(context: RequestContext) -> bool:
    """Whether a request is for an API that has only WebSockets, and opens none."""
    endpoint = context.endpoint
    if endpoint is None or endpoint.operation != "generate" or context.socket is not None:
        return False
    return endpoint.protocol.address.is_socket


def _enter_api(context: RequestContext, endpoint: Endpoint) -> None:
    """Notes the API that answers, or refuses, from here on."""
    context.api = endpoint.protocol.name
    context.target = endpoint.target if endpoint.operation == "generate" else None


def refused_at(call: ApiCall, answered: Answered) -> Answered:
    """An error in the form that the target of a request has for it."""
    return replace(answered, answer=error_at(answered.answer, call.protocol, call.target))


def _with_own_urls(arrival: Arrival, answered: Answered) -> Answered:
    """An answer with URLs of this server in its headers, not of the recorded service. A client that
    believes to speak to the service reaches this server by those, too."""
    if not answered.answer.service or arrival.origin:
        return answered
    return replace(answered, answer=answered.answer.with_base_url(arrival.base))


_Result = TypeVar("_Result")


class DeferredWork:
    """Plays requests until everything that they need is there. However many wait for the same
    work, it is done once.

    Args:
        waiting: the tasks that wait for work are in it.
        state: carries out the operations of sessions; None: no session is shared.
    """

    def __init__(
        self, waiting: set[asyncio.Task[object]], state: SharedState | None = None
    ) -> None:
        self._waiting, self._state = waiting, state
        self._running: dict[tuple[object, Hashable], asyncio.Task[object]] = {}

    @property
    def clock_offset(self) -> float:
        """Of the clock of all processes that share the state, in seconds."""
        return 0.0 if self._state is None else self._state.store.clock_offset

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
                assert self._state is not None
                assert isinstance(session, SharedSession)
                await self._state.carry_out(session, missing.operations)

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
