"""The way of a request through a server, from top to bottom: received, control or API, session,
quota, slot, route or play, recorded, delivered.

`make_parts` builds it once. Stages that a server is not configured for (`stages`) are not in it.
Nothing here knows a protocol.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from aiohttp import web

from mockllm.core.errors import RequestError
from mockllm.play.matching.route_selection import RouteRequest
from mockllm.play.replay.call import Answered, refuse
from mockllm.play.replay.sessions.exchange import Played, Sent
from mockllm.play.replay.sessions.shared_session import StateAwayError
from mockllm.serve.interception.headers import ORIGIN_HEADER
from mockllm.serve.server import stages
from mockllm.serve.server.answers import Answers, DeferredWork
from mockllm.serve.server.control.server_requests import OWN_PATHS, ServerRequests
from mockllm.serve.server.exchanges import Delivery
from mockllm.serve.server.http.request_reading import Arrival, closes, opens_websocket
from mockllm.serve.server.request_context import Chosen, RequestContext
from mockllm.serve.server.routing import Endpoint
from mockllm.serve.server.sessions.session_finder import SessionFinder
from mockllm.serve.server.sources import Sources

if TYPE_CHECKING:
    from mockllm.serve.server.limits.capacity import Slots
    from mockllm.serve.server.limits.quotas import ServerQuotas
    from mockllm.serve.server.sockets import Sockets
    from mockllm.serve.server.state.shared_sessions import SharedSessions


class Handler:
    """Handles the requests of one server.

    Args:
        requests: answers those about the server itself.
        shared, quotas, slots: None where nothing is shared, or limited.
    """

    def __init__(
        self,
        sources: Sources,
        requests: ServerRequests,
        sessions: SessionFinder,
        answers: Answers,
        delivery: Delivery,
        shared: SharedSessions | None,
        quotas: ServerQuotas | None,
        slots: Slots | None,
        deferred: DeferredWork,
    ) -> None:
        self._sources, self._requests, self._sessions = sources, requests, sessions
        self._answers, self._delivery = answers, delivery
        self._respond: stages.Respond = self._answer
        self._choose: stages.Choose = self._route
        self._play: stages.Play = answers.play
        if quotas is not None:
            self._play = partial(stages.settle, quotas, self._play)
        if slots is not None:
            self._play = partial(stages.take_slot, slots, delivery.log, self._play)
        if quotas is not None:
            self._play = partial(stages.meter, quotas, self._play)
        if shared is not None:
            self._choose = partial(stages.share, shared, sources, self._choose)
            self._respond = partial(stages.hold, shared, self._respond)
        self._deferred = deferred
        self._sockets: Sockets | None = None

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Receives a request, which is about the server itself, or belongs to a session."""
        arrival = Arrival(request)
        if arrival.method == "OPTIONS" or OWN_PATHS.fullmatch(arrival.path):
            sent = Sent(arrival.clock)
            shown = self._requests.answer(arrival, sent)
            if shown is not None:
                return await self._delivery.show(arrival, sent, shown)
        if self._sources.options.session_in_body is not None:
            await self._sessions.read_body(arrival, self._sources.options.session_in_body)
        name, refusal = self._sessions.find(arrival)
        session, player = self._delivery.log.session(name), self._sources.player
        context = RequestContext(arrival, session, player, refusal)
        found = self._find_socket(context) if opens_websocket(arrival.headers) else None
        if found is not None:
            return await self._serve_socket(context, found)
        return await self._respond(context)

    async def _serve_socket(
        self, context: RequestContext, found: Endpoint | RouteRequest
    ) -> web.StreamResponse:
        arrival = context.arrival
        try:
            at = arrival.clock - self._sources.began
            fault = context.player.opening_fault(arrival.headers, context.session, at)
        except RequestError as refusal:
            context.refusal = refusal
            return await self._respond(context)
        if self._sockets is None:
            from mockllm.serve.server.sockets import Sockets  # few servers need it

            self._sockets = Sockets(self._delivery, self._deferred, self._respond)
        if isinstance(found, RouteRequest):
            return await self._sockets.play(context, found)
        return await self._sockets.serve(context, found, fault)

    async def close(self) -> None:
        """Ends the WebSockets that are open."""
        if self._sockets is not None:
            await self._sockets.close()

    def _find_socket(self, context: RequestContext) -> Endpoint | RouteRequest | None:
        """The endpoint that the messages of a WebSocket are for, or the opening of one on which a
        scenario is played; None: its request is answered as others are, or passed on, or
        refused."""
        if context.refusal is not None:
            return None
        try:
            self._enter(context)
            opening = self._answers.find_opening(context)
        except RequestError as error:
            context.refusal = error
            return None
        return self._answers.find_socket(context) if opening is None else opening

    async def _answer(self, context: RequestContext) -> web.StreamResponse:
        """Finds the answer to a request, records both, and delivers it."""
        try:
            return await self._delivery.send(context, await self._find_answer(context))
        finally:
            if context.slot is not None:
                context.slot.leave()

    async def _find_answer(self, context: RequestContext) -> Chosen:
        """The answer to a request; where mockllm itself fails, an error that says so."""
        try:
            if context.refusal is not None:
                return self._refuse(context, context.refusal)
            return await self._choose(context)
        except ConnectionResetError:
            raise
        except Exception as error:  # noqa: BLE001 - of mockllm itself: it is said and counted
            return self._answers.fail(context, error)

    async def _route(self, context: RequestContext) -> Chosen:
        """Finds who answers, in the player and the recorder of the session."""
        arrival = context.arrival
        try:
            self._enter(context)
            if context.socket is None:  # a message belongs to the path of its WebSocket
                find = self._sources.routes.find
                context.endpoint = find(arrival.method, arrival.path, arrival.headers)
            chosen = await self._answers.route(context)
            if chosen is None:
                chosen = await self._call(context)
        except StateAwayError:
            raise
        except RequestError as error:
            chosen = self._refuse(context, error)
        return chosen

    def _enter(self, context: RequestContext) -> None:
        """Finds the player and the recorder of the session."""
        sources, name = self._sources, context.session.name
        setup = sources.setups.find(name)
        context.player, context.proxy = sources.player, sources.proxy
        if setup is not None:
            context.player, context.proxy = sources.of_session(name, setup)

    async def _call(self, context: RequestContext) -> Chosen:
        """Looks an answer up, or plays one, within the limits of the server."""
        call, operation = await self._answers.read_call(context)
        if operation != "generate":
            return await self._answers.look_up(context, call, operation)
        answered = await self._play(context, call)
        return self._answers.forward_refused(context, call, answered)

    def _refuse(self, context: RequestContext, error: RequestError) -> Answered:
        """The error answer to a request, in the form of the API that its path belongs to."""
        endpoint, arrival = context.endpoint, context.arrival
        nearest = self._sources.routes.nearest
        shape = endpoint.protocol if endpoint else nearest(arrival.path, arrival.headers)
        context.closes = closes(error)
        answered = refuse(shape, error, Played(api=context.api))
        if error is context.refusal and ORIGIN_HEADER in arrival.headers:
            answered = replace(answered, answer=answered.answer.hidden_from_pages())
        return answered
