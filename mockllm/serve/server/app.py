"""The server's life: it binds, listens and stops.

Only what listening needs is imported here; `parts`, with the protocols and all the rest, comes
in when the server listens already, or when something asks for it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aiohttp import web

from mockllm.play.replay.fault_plan import read_plan
from mockllm.play.replay.latency.schedule import LatencyPlan
from mockllm.scenario.model import Scenario, Timing, TurnSpec
from mockllm.scenario.part_model import members, takes_time
from mockllm.serve.server.http.addresses import further_urls, reachable, url_of
from mockllm.serve.server.http.aiohttp_internals import (
    close_after_last,
    is_to_proxy,
    low_level_server,
    proxy_connections,
    take_no_more_requests,
)
from mockllm.serve.server.options import InterceptOptions, RecordOptions, ServerOptions

if TYPE_CHECKING:
    import ssl

    from mockllm.core.errors import Problem
    from mockllm.play.replay.player import Player
    from mockllm.play.replay.sessions.session import Sessions
    from mockllm.serve.interception.authority import Authority
    from mockllm.serve.interception.hosts import Hosts
    from mockllm.serve.server.forward_proxy import ForwardProxy
    from mockllm.serve.server.parts import ServerParts

_CLEAN_UP = 0.05
"""How long aiohttp may wait for connections, in seconds, when the grace is over."""


class MockServer:
    """Serves scenarios over HTTP.

    Use as `await server.start()`, then `server.url`, then `await server.stop()`.
    """

    def __init__(self, scenarios: Iterable[Scenario], options: ServerOptions | None = None) -> None:
        self.options = options or ServerOptions()
        self.url = ""
        self.lost = 0
        """How many journal entries were lost at the end, as the state store was away."""
        self._scenarios = tuple(scenarios)
        self._began = time.perf_counter()
        self._listening: asyncio.Server | None = None
        self._server: web.Server | None = None
        self.proxy_url = ""
        """Of the forward proxy; "" without one."""
        self.authority: Authority | None = None
        """Signs for the hosts that the forward proxy intercepts, and for this server where clients
        may speak TLS to it; None without either."""
        self._secured: ssl.SSLContext | None = None
        """Of connections that begin with TLS; None where they may not."""
        self._opening: set[asyncio.Task[None]] = set()
        """Connections that have not begun yet."""
        self._forward_proxy: ForwardProxy | None = None
        self._proxying: asyncio.Server | None = None

    @cached_property
    def sessions(self) -> Sessions:
        """All sessions, with their journals."""
        from mockllm.play.replay.sessions.session import Sessions

        return Sessions()

    @cached_property
    def _parts(self) -> ServerParts:
        from mockllm.serve.server.parts import make_parts

        return make_parts(self._scenarios, self.options, self.sessions, self._began)

    @property
    def player(self) -> Player:
        """The player that decides about answers; another one after each reload."""
        return self._parts.sources.player

    @property
    def has_pauses(self) -> bool:
        """Whether any of its answers has pauses, so far as its scenarios show it."""
        served = self.options.latency.latency
        return self.options.speed > 0 and (
            served is not None or any(map(_has_pauses, self._scenarios))
        )

    @property
    def base_urls(self) -> dict[str, str]:
        """The base URL to give to a client of each protocol."""
        from mockllm.serve.server.control.control_routes import base_urls

        return base_urls(self.url)

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Its URLs for other machines, where it listens on all addresses of this one."""
        port = urlsplit(self.url).port
        return () if port is None else further_urls(self.options.host, port)

    def reload(self, scenarios: Iterable[Scenario]) -> None:
        """Serves other scenarios from the next request on; sessions go on."""
        self._parts.sources.reload(scenarios)
        self._parts.view.note_reload(())

    def note_problems(self, problems: Sequence[Problem]) -> None:
        """Notes why changed files are not served; the live page shows it."""
        self._parts.view.note_reload(problems)

    def assign(
        self,
        session: str,
        scenarios: Iterable[Scenario],
        *,
        named: str | None = None,
        quirks: Iterable[str] = (),
        record: RecordOptions | None = None,
        faults: Iterable[str] = (),
        latency: str | None = None,
        hosts: Hosts | None = None,
        speed: float | None = None,
    ) -> None:
        """Serves a session from scenarios of its own, from the next request on.

        Args:
            named: the one that answers every request that names none.
            quirks: what every streamed answer has, besides those of the server.
            record: what is recorded in this session from now on, and from where; None leaves
                that as it is. What is recorded does not answer before it is assigned. It ends
                with `end_recording`. To be called in the event loop.
            faults: what breaks on the way of its answers, as `mockllm serve --fault` has it; one of
                them is drawn for each answer.
            latency: how long its answers take, as `mockllm serve --latency` has it; None: as those
                of the server.
            hosts: whose requests this process redirects to the session, besides those that the
                server intercepts.
            speed: of its timed streams; None: that of the server.

        Raises:
            ScenarioError: what is in the folder of `record` cannot be loaded.
            UsageError: a fault or the latency is wrong.
        """
        from mockllm.serve.server.sessions.session_setup import SessionRequest

        paced = None
        if latency is not None:
            from mockllm.play.replay.latency.files import read_latency_option

            paced = LatencyPlan(read_latency_option(latency))
        own = SessionRequest(
            scenarios=tuple(scenarios),
            quirks=tuple(quirks),
            named=named,
            faults=read_plan(faults) if faults else None,
            latency=paced,
            speed=speed,
        )
        self._parts.sources.setups.assign(session, own, record, hosts)

    async def end_recording(self, session: str) -> None:
        """Asks no service any more in a session. What it recorded is on the disk afterwards, of
        streams that are still open what came so far."""
        await self._parts.sources.setups.end_recording(session)

    async def release(self, session: str, gate: str) -> None:
        """Opens a gate of a session, for the answers that wait there and for later ones.

        Raises:
            RequestError: none of its scenarios has the gate.
        """
        await self._parts.control.release(session, gate)

    async def wait_for_gate(self, session: str, gate: str, seconds: float) -> bool | None:
        """Waits until an answer waits at a gate; whether one does. None: the gate is open.

        Raises:
            RequestError: none of the session's scenarios has the gate.
        """
        found = await self._parts.control.show_gate(session, gate, seconds)
        return None if found["open"] else bool(found["waiting"])

    def forget(self, session: str) -> None:
        """Forgets a session: its journal, and the scenarios that were assigned to it."""
        self._parts.sources.setups.release(session)
        self.sessions.delete(session)

    def end(self, session: str, why: str = "") -> None:
        """Forgets a session that is over, and refuses its later requests.

        Args:
            why: a sentence for the error; default: that its test is over, or it was evicted.
        """
        self.forget(session)
        self._parts.sources.setups.note_gone(session, why)

    def begin_running(self, session: str) -> None:
        """From now on, a session is that of the running test (`RUNNING`): requests belong to it
        that have no other, on connections that begin now. To be called in the event loop."""
        assert self._server is not None
        self._parts.sessions.begin_running(session, self._server.connections)

    def end_running(self, session: str) -> None:
        """The test of a session runs no more; that in which it began does again."""
        self._parts.sessions.end_running(session)

    def break_off(self, session: str) -> None:
        """Ends the connections on which an answer of a session is not over. To be called in the
        event loop."""
        known = self.sessions.find(session)
        if known is None or self._server is None:
            return
        ports = {entry.received.connection for entry in known.journal if entry.in_use}
        for connection in tuple(self._server.connections):
            transport = connection.transport
            if transport is not None and transport.get_extra_info("peername")[1] in ports:
                transport.abort()

    def player_of(self, session: str) -> Player:
        """The player that decides about the answers in a session."""
        return self._parts.sources.player_of(session)

    async def start(self) -> None:
        """Binds and listens; `url` is known afterwards.

        Raises:
            OSError: the address is taken, or not allowed.
            UsageError: a path or an origin of the options is wrong.
        """
        self._began = time.perf_counter()
        if self.options.paths or self.options.allowed_origins:
            _ = self._parts  # which checks them
        if self.options.record is not None:
            self._parts.sources.start_recording(self.options.record)
        if self.options.state:
            await self._share()
        faults = self.options.faults
        self._server = low_level_server(
            self._handle,
            limit=faults.limit,
            waits=faults.waits,
            malformed=lambda *error: self._parts.delivery.refuse_malformed(*error),
            patience=self.options.patience,
            gave_up=lambda: self._parts.delivery.gave_up(),
        )
        try:
            self._listening = await self._listen(self._server)
        except OSError:
            await self._close()
            raise
        host, port = self._listening.sockets[0].getsockname()[:2]
        self.url = url_of(reachable(host), port, secured=self.options.tls)
        if self.options.intercept is not None and self.options.intercept.proxy_port is not None:
            await self.open_proxy(self.options.intercept, self.options.intercept.proxy_port)

    async def take_tls(self) -> Authority | None:
        """Lets clients begin with TLS on the server's own port, from now on: some dial nothing
        else. `url` stays that of plain HTTP. Returns what they have to trust; None, and nothing
        changes, without the library that makes certificates."""
        if find_spec("trustme") is None:
            return None
        from mockllm.serve.interception.authority import Authority

        self.authority = self.authority or Authority()
        if not self.options.tls and sys.platform != "win32":  # whose loop shows no first byte
            self._secured = self.authority.by_name()
        return self.authority

    async def open_proxy(self, options: InterceptOptions, port: int = 0) -> Authority:
        """Lets clients reach the server through a forward proxy; `proxy_url` is known afterwards.
        Returns what its clients have to trust.

        Raises:
            OSError: the address is taken.
            UsageError: the library that makes certificates is missing, or the proxy has no password
                and listens beyond this machine.
        """
        from mockllm.serve.interception.authority import Authority
        from mockllm.serve.server.forward_proxy import ForwardProxy, check_reach

        assert self._server is not None
        assert self._listening is not None
        check_reach(self.options.host, options.password)
        self.authority = self.authority or Authority()
        proxy = self._forward_proxy = ForwardProxy(
            options,
            self.authority,
            self._server,
            self._parts.handler.handle,
            # What is recorded is real traffic: the rest of it is to go on.
            tunnels=options.tunnels or self.options.record is not None,
            notice=self.options.notice or _say_nothing,
            patience=self.options.patience,
            gave_up=self._parts.delivery.gave_up,
        )
        self._proxying = await asyncio.get_running_loop().create_server(
            proxy_connections(self._server), self.options.host, port, backlog=4096
        )
        sockets = (*self._listening.sockets, *self._proxying.sockets)
        proxy.own_ports = {listening.getsockname()[1] for listening in sockets}
        host, port = self._proxying.sockets[0].getsockname()[:2]
        self.proxy_url = url_of(reachable(host), port)
        return self.authority

    async def _listen(self, server: web.Server) -> asyncio.Server:
        options, loop = self.options, asyncio.get_running_loop()
        secured = None
        if options.tls:
            from mockllm.serve.interception.authority import Authority

            self.authority = Authority()
            secured = self.authority.by_name()
        if options.listener is not None:
            where: dict[str, Any] = {"sock": options.listener}
        else:
            where = {"host": options.host, "port": options.port}
            where["reuse_port"] = options.reuse_port or None

        def connect() -> asyncio.Protocol:
            if self._secured is None:
                return server()
            from mockllm.serve.interception.handshake import EitherConnection

            notice = options.notice or _say_nothing
            return EitherConnection(self._secured, server, options.patience, self._opening, notice)

        return await loop.create_server(
            connect,
            **where,
            backlog=4096,
            ssl=secured,
            ssl_handshake_timeout=options.patience if options.tls else None,
        )

    async def _share(self) -> None:
        from mockllm.core.errors import UsageError
        from mockllm.serve.server.state.store import StoreError

        assert self._parts.state is not None
        try:
            await self._parts.state.open()
        except StoreError as error:
            raise UsageError(f"--state: {error}") from None

    async def stop(self) -> None:
        """Stops listening, lets open streams go on for `grace` seconds, then cuts them."""
        listening, self._listening = self._listening, None
        if listening is None or self._server is None:
            return
        await _stop_listening(listening)
        if self._proxying is not None:
            await _stop_listening(self._proxying)
        for opening in tuple(self._opening):
            opening.cancel()
        await take_no_more_requests(self._server)
        self._parts.readiness.stopping = True
        self._parts.view.close()
        try:
            if streaming := set(self._parts.streaming):
                await asyncio.wait(streaming, timeout=self.options.grace)
        finally:
            self._parts.delivery.log.cutting = True
        for task in tuple(self._parts.streaming):
            task.cancel()
        await self._parts.handler.close()
        await self._server.shutdown(_CLEAN_UP)
        if self._forward_proxy is not None:
            await self._forward_proxy.close()
        await self._close()

    async def _close(self) -> None:
        """Closes the recorder and the state store, if there are any."""
        await self._parts.sources.close()
        if self._parts.state is not None:
            self.lost = await self._parts.state.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = self._parts.handler.handle
        if self._forward_proxy is not None and is_to_proxy(request):
            answer = self._forward_proxy.handle
        try:
            response = await answer(request)
        except ConnectionResetError:
            # A client that leaves is nothing to log as an error of the server, as aiohttp would.
            raise asyncio.CancelledError from None
        close_after_last(request)
        return response


async def _stop_listening(listening: asyncio.Server) -> None:
    """Accepts no connection any more. `close` alone loses those that were accepted just before:
    asyncio makes no transport for them then, and their clients wait until the garbage collector
    closes their sockets."""
    loop = asyncio.get_running_loop()
    for sock in listening.sockets:
        loop.remove_reader(sock)
    await asyncio.sleep(0)
    listening.close()


def _say_nothing(_line: str) -> None:
    """A notice that nobody reads."""


def _has_pauses(scenario: Scenario) -> bool:
    """Whether any answer of a scenario has pauses, as written or as it was recorded."""
    turns = (inner for turn in scenario.turns for inner in turn.every())
    defaults = scenario.defaults
    return bool(defaults.every or defaults.ttft or defaults.latency) or any(map(_is_paused, turns))


def _is_paused(turn: TurnSpec) -> bool:
    timing = turn.timing or Timing()
    replies = (turn.reply, *(choice.reply for choice in turn.choices))
    return (
        turn.recorded is not None
        or bool(timing.every or timing.ttft or any(timing.at) or timing.latency)
        or any(takes_time(part) for reply in replies for part in members(reply))
    )
