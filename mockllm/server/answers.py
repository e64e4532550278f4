"""Who answers a request: a scenario, a service that is recorded, or an error; nothing is sent here.

Nothing here knows a protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from aiohttp import web

from mockllm.errors import NoMatchError, RequestError
from mockllm.matching.routes import RouteRequest
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import WireProtocol
from mockllm.replay.call import Call, TapeNotReadError
from mockllm.replay.compilation.http_answer import HttpAnswer, in_list
from mockllm.replay.faults.fault_plan import FaultPlan
from mockllm.replay.kinds import make_player
from mockllm.replay.player import Player
from mockllm.replay.sessions.session import Exchange, Session
from mockllm.scenario.model import Scenario
from mockllm.server.control.routes import gone
from mockllm.server.control.session_setup import SessionSetups
from mockllm.server.http.body_reading import arrived, closes, read_body
from mockllm.server.http.request_target import split_target
from mockllm.server.options import ServerOptions
from mockllm.server.routing.path_templates import path_routes
from mockllm.server.routing.plain_routes import PlainRoutes
from mockllm.server.routing.routes import Endpoint, Routes
from mockllm.server.tape_reads import NO_TAPES, TapeReads

if TYPE_CHECKING:
    from mockllm.matching.index import ScenarioIndex
    from mockllm.server.options import RecordOptions
    from mockllm.server.recording.proxy import Proxy
    from mockllm.server.recording.recorded_lines import RecordedLines

__all__ = ["Answers", "Forward"]

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Forward:
    """Says that the real service of a protocol is to answer; it is recorded."""

    proxy: Proxy
    protocol: WireProtocol


class Answers:
    """Decides who answers the requests of one server.

    Args:
        streaming: the tasks that a server which stops waits for.
    """

    def __init__(
        self,
        scenarios: Iterable[Scenario],
        options: ServerOptions,
        streaming: set[asyncio.Task[object]],
    ) -> None:
        self.options = options
        self._streaming = streaming
        self._scenarios = tuple(scenarios)
        self.player = self._player(self._scenarios)
        self.proxy: Proxy | None = None
        self.recorded: RecordedLines | None = None
        """What the recorder reported, for the live page; None where nothing is recorded."""
        self.assigned = SessionSetups(self._player)
        self.routes = Routes(PROTOCOLS.values(), path_routes(PROTOCOLS, options.paths))
        self._tape_reads = TapeReads()
        self.plain = PlainRoutes(self.routes, self._tape_reads, fallback=options.fallback)

    def _player(
        self,
        scenarios: Iterable[Scenario] | ScenarioIndex,
        named: str | None = None,
        quirks: Iterable[str] = (),
        in_order: bool = False,
        faults: FaultPlan | None = None,
    ) -> Player:
        """A player with the options of the server.

        Args:
            named, quirks: as of `Player`.
            in_order: whether recordings of the same request are played in their order.
            faults: None: those of the server.
        """
        options = self.options
        return make_player(
            scenarios,
            strict=options.strict,
            fallback=options.fallback,
            quirks=(*options.quirks, *quirks),
            named=named,
            speed=options.speed,
            in_order=in_order,
            plan=options.faults if faults is None else faults,
        )

    def reload(self, scenarios: Iterable[Scenario]) -> None:
        """Serves other scenarios from the next request on."""
        self._scenarios = tuple(scenarios)
        self.player = self._player(self._scenarios)

    def start_recording(self, options: RecordOptions) -> None:
        """Lets real services answer, as the options say, and records what they do.

        Raises:
            ScenarioError: what was recorded before cannot be loaded.
        """
        from mockllm.server.recording.proxy import Proxy

        names = [scenario.name for scenario in self._scenarios]
        if self.options.page is not None and options.mode != "none":
            from mockllm.server.recording.recorded_lines import RecordedLines

            self.recorded = RecordedLines(options)
            options = self.recorded.options
        self.proxy = Proxy(options, self._serving, names, self.options.faults)
        self.proxy.patience = self.options.patience

    async def close(self) -> None:
        """Waits until everything that was recorded is on the disk."""
        await self.assigned.close()
        if self.proxy is not None:
            await self.proxy.close()

    def _serving(self, recorded: tuple[Scenario, ...]) -> Callable[[], None]:
        """What serves recorded scenarios beside the others; they are indexed before, so that
        the event loop need not wait for it."""
        by_name = {scenario.name: scenario for scenario in (*self._scenarios, *recorded)}
        player = self._player(by_name.values())

        def swap() -> None:
            self.player = player

        return swap

    def player_of(self, session: str) -> Player:
        """What decides about the answers in a session."""
        own = self.assigned.find(session)
        return self.player if own is None else self.assigned.player(own, self.player)

    def refusal(self, target: str, error: RequestError, exchange: Exchange) -> HttpAnswer:
        """The error answer in the form of the API that has the path of a target."""
        shape = self.routes.nearest(target.partition("?")[0])
        return self.player.refuse(shape, error, exchange)

    async def answer(
        self,
        request: web.BaseRequest,
        target: str,
        headers: Mapping[str, str],
        session: Session,
        exchange: Exchange,
    ) -> tuple[HttpAnswer | Forward, bool]:
        """The answer, and whether the connection has to be closed after it.

        Args:
            target: path and query, without the session prefix.
        """
        path, query = split_target(target)
        player, proxy = self.player, self.proxy
        own = self.assigned.find(session.name)
        if own is not None:
            player = self.assigned.player(own, player)
            proxy = own.proxy or (None if own.is_alone else proxy)
            if own.gone:
                refusal = gone(session.name)
                return player.refuse(self.routes.nearest(path), refusal, exchange), False
        endpoint = self.routes.find(request.method, path, headers)
        forwards_all = proxy is not None and proxy.forwards_all
        routed = not forwards_all and self.plain.has(player, request.method, path, endpoint)
        if proxy is not None and not routed:
            try:
                forward = self._passing(proxy, path, headers, endpoint, session)
            except RequestError as error:
                return player.refuse(self.routes.nearest(path), error, exchange), False
            if forward is not None:
                return forward, False
        if endpoint is None or routed:
            plain = await self._answer_plain(
                request, path, headers, session, exchange, player, proxy, endpoint
            )
            if plain is not None:
                return plain
            assert endpoint is not None
        protocol, place = endpoint.protocol, endpoint.target
        exchange.api = protocol.name
        if endpoint.operation == "generate":
            exchange.target = place
        if query:
            place = replace(place, query=query)
        try:
            if not routed:  # or it is read
                exchange.body = exchange.body or (
                    arrived(request, self.options.max_body) or await self.body(request, headers)
                )
            if proxy is not None and proxy.forwards_all:
                return Forward(proxy, protocol), False
            if protocol.guard is not None and self.options.strict:
                protocol.guard(headers, place)
        except RequestError as error:
            return player.refuse(protocol, error, exchange), closes(error)
        call = Call(protocol, place, headers, session, exchange, NO_TAPES, request.raw_path)
        if endpoint.operation == "generate":
            try:
                answer = player.play(call)
            except TapeNotReadError as missing:
                answer = await self._finished(self._tape_reads.play(player, call, missing))
            made = answer.status >= 400 and exchange.recorded != "exact"
            if made and protocol.lists_errors and protocol.lists_errors(place):
                answer = in_list(answer)
            refused = exchange.outcome in ("unmatched", "invalid")
            if refused and proxy is not None and proxy.serves(protocol):
                return Forward(proxy, protocol), False
            return answer, False
        return player.look_up(call, endpoint.operation), False

    async def _answer_plain(
        self,
        request: web.BaseRequest,
        path: str,
        headers: Mapping[str, str],
        session: Session,
        exchange: Exchange,
        player: Player,
        proxy: Proxy | None,
        endpoint: Endpoint | None,
    ) -> tuple[HttpAnswer | Forward, bool] | None:
        """As `_answer`, for a route that is no path of an API, or that scenarios may answer. None
        where the endpoint of the path answers; the body is read then."""
        shape = self.routes.nearest(path) if endpoint is None else endpoint.protocol
        try:
            exchange.body = exchange.body or await self.body(request, headers)
            query = request.raw_path.partition("?")[2]
            sent = RouteRequest(request.method, path, query, headers, exchange.body)
            answer = await self._finished(self.plain.play(player, sent, session, exchange))
            forward = None
            if answer is None and proxy is not None:
                forward = self._passing(proxy, path, headers, endpoint, session)
        except RequestError as error:
            unmatched = isinstance(error, NoMatchError)
            refusal = player.refuse(shape, error, exchange, unmatched=unmatched)
            return refusal, closes(error)
        if answer is None and forward is None and endpoint is not None:
            return None
        return answer or forward or self.plain.unanswered(player, sent, exchange), False

    async def _finished(self, playing: Awaitable[_Answer]) -> _Answer:
        """An answer for which a tape or a file may be read; a server that stops waits for it."""
        task = asyncio.current_task()
        assert task is not None
        self._streaming.add(task)
        try:
            return await playing
        finally:
            self._streaming.discard(task)

    def _passing(
        self,
        proxy: Proxy,
        path: str,
        headers: Mapping[str, str],
        endpoint: Endpoint | None,
        session: Session,
    ) -> Forward | None:
        """Whether a service answers what calls no model: look-ups, and paths not known here.

        Raises:
            RequestError: no one service is meant by the path and the headers.
        """
        if endpoint is not None:
            protocol = endpoint.protocol
            stored = protocol.stored
            id = endpoint.target.segments.get(stored.segment, "") if stored is not None else ""
            if endpoint.operation == "generate" or session.answer(id) is not None:
                return None
            if proxy.serves(protocol):
                return Forward(proxy, protocol)
        service = proxy.service_for(path, headers)
        return None if service is None else Forward(proxy, service)

    async def body(self, request: web.BaseRequest, headers: Mapping[str, str]) -> bytes:
        limit = self.options.max_body
        error = RequestError(
            f"The request body is larger than {limit} bytes. Send less, or serve with a larger "
            "--max-body.",
            status=413,
            code="request_too_large",
        )
        if int(headers.get("content-length", "0")) > limit:
            raise error
        if headers.get("expect", "").lower() == "100-continue" and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            body = await read_body(request, limit, self.options.patience)
        except web.HTTPRequestEntityTooLarge:
            raise error from None
        if len(body) > limit:
            raise error
        return body
