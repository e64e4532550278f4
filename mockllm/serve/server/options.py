"""The options of a server. Only data may live here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Literal, Protocol

from mockllm.core.record import record
from mockllm.play.replay.fault_plan import NO_PLAN, FaultPlan
from mockllm.play.replay.latency.schedule import NO_LATENCY, LatencyPlan
from mockllm.scenario.model import Ignored
from mockllm.scenario.part_model import AutoPart

if TYPE_CHECKING:
    from socket import socket

    from aiohttp import web

    from mockllm.play.replay.quota_plan import Quota
    from mockllm.play.replay.sessions.exchange import Exchange, Sent
    from mockllm.record.recording.drafting.draft import Line
    from mockllm.record.recording.drafting.matches import MatchRule
    from mockllm.record.redaction.rules import Rules
    from mockllm.serve.interception.hosts import Hosts
    from mockllm.serve.server.http.request_reading import Arrival
    from mockllm.serve.server.limits.capacity import Capacity


MetricNames = Literal["mockllm", "vllm", "otel"]
"""Whose names the figures for Prometheus have; `otel` are the conventions of OpenTelemetry."""

PATIENCE = 60.0
"""For how long nothing may arrive of a request whose head or body is not whole, in seconds."""

RecordMode = Literal["none", "once", "new_episodes", "all", "add"]
"""Which exchanges are recorded: none; all, if the folder was empty at the start; those that no
scenario answers; all, replacing earlier recordings; all, beside earlier recordings."""


@record
class RecordOptions:
    """Recording: where from, and where to.

    Args:
        folder: of the recorded scenarios.
        upstreams: the base URL of the real service, by the name of the API.
        match: the conditions that a recorded scenario has; None for the default.
        rules: what is secret besides the built-in patterns; None for nothing.
        trust_env: reach the services through the proxies that the environment names.
        report: called with a line for each recorded exchange.
        waiting: called with the number of exchanges that are not written yet, if that is more than
            a second's work.
        option: the option that names a service, for messages.
        max_recorded: the most bytes of a request's body, and of an answer's, that are recorded.
        most_waiting: if more bytes of exchanges wait to be written, new requests wait too.
        apart: redact and write in a process of its own, so that no stream waits for that.
        servers: the URLs of the MCP servers that are recorded, by name.
    """

    folder: Path
    upstreams: Mapping[str, str] = field(default_factory=dict)
    mode: RecordMode = "add"
    match: MatchRule | None = None
    rules: Rules | None = None
    trust_env: bool = False
    report: Callable[[Line], None] | None = None
    waiting: Callable[[int], None] | None = None
    option: str = "--upstream"
    max_recorded: int = 256 * 1024 * 1024
    most_waiting: int = 64 * 1024 * 1024
    apart: bool = False
    servers: Mapping[str, str] = field(default_factory=dict)


class Page(Protocol):
    """A page that shows what the server does."""

    async def respond(
        self, arrival: Arrival, sent: Sent, fields: Mapping[str, str]
    ) -> web.StreamResponse:
        """Sends the answer to a request below the path of the page.

        Args:
            fields: headers of every answer.

        Raises:
            RequestError: there is no such route, request, scenario or file.
        """

    def announce_reload(self) -> None:
        """The scenario files were read again."""

    def close(self) -> None:
        """The server stops."""


@record
class InterceptOptions:
    """Requests that clients send to services, and that come here.

    Args:
        hosts: whose requests are answered.
        proxy_port: where the forward proxy listens, 0 for a free port; None for no proxy: the
            clients are in this process, and are redirected there.
        tunnels: whether the proxy reaches other hosts, as that of a recorder does; otherwise it
            refuses them.
        password: of the forward proxy, besides the name of a session; "" for none. Beyond loopback
            it needs one: it would relay for the whole network.
        key: what a redirected library of this process sends with the origin of a service. Nobody
            else knows it, so no page and no other program can name a destination.
    """

    hosts: Hosts
    proxy_port: int | None = None
    tunnels: bool = False
    password: str = field(default="", repr=False)
    key: str = field(default_factory=token_urlsafe, repr=False)


@record
class ServerOptions:
    """The behaviour of a server.

    Args:
        host: the address to bind; by default loopback.
        port: 0 picks a free one.
        strict: refuse requests that the real services refuse.
        fallback: answer what no scenario answers with an automatic answer; an `AutoPart` says how
            long it is.
        quirks: what every streamed answer has, as in `wire.quirks`.
        speed: of timed replay; 2 is twice as fast, 0 removes all pauses.
        grace: how long open streams may go on after a request to stop, in seconds.
        max_body: largest request body, in bytes.
        patience: for how long nothing may arrive of a request whose head or body is not whole, in
            seconds; then the request is dropped.
        allowed_hosts: further host names that may use the control routes.
        allowed_origins: whose pages may use the control routes, as browsers send them
            (`http://localhost:3000`).
        paths: further paths, each with the name of its API: `{name}` in one is any one segment.
        log: called with each exchange when it is over.
        record: what is recorded from real services; None for nothing.
        faults: what breaks on the way of answers, and of connections.
        quotas: what the clients may use; requests beyond it are refused.
        latency: how long answers take that have no times of their own.
        capacity: how many requests for answers run at the same time; None: any number.
        state: where sessions are kept that other processes share: `redis://HOST:PORT/DATABASE`, or
            `sqlite:FILE`; "" keeps them in this process.
        listener: a socket that is bound already; None: one of `host` and `port` is made.
        reuse_port: whether other processes listen on the same port (SO_REUSEPORT).
        notice: called with a line about the server itself, such as a store that is away.
        page: makes the live page at `/_mockllm/ui` of a `ServerView`, such as
            `mockllm.serve.ui.live_page`; None: there is none.
        intercept: requests to services that come here; None: only those to this server.
        ignore: what of requests is not compared, for each scenario that has a `match`, besides what
            that ignores.
        tls: whether the server itself speaks TLS, with a certificate of its own authority.
        metrics: whose names the figures for Prometheus have.
        session_in_body: finds the name of the session in the body of a request that names none
            elsewhere: gateways hand on neither paths nor headers.
    """

    host: str = "127.0.0.1"
    port: int = 0
    strict: bool = True
    fallback: bool | AutoPart = False
    quirks: tuple[str, ...] = ()
    ignore: Ignored = ()
    speed: float = 1.0
    grace: float = 5.0
    max_body: int = 16 * 1024 * 1024
    patience: float = PATIENCE
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    paths: tuple[tuple[str, str], ...] = ()
    log: Callable[[Exchange], None] | None = None
    record: RecordOptions | None = None
    faults: FaultPlan = NO_PLAN
    quotas: tuple[Quota, ...] = ()
    latency: LatencyPlan = NO_LATENCY
    capacity: Capacity | None = None
    state: str = ""
    listener: socket | None = None
    reuse_port: bool = False
    notice: Callable[[str], None] | None = None
    page: Callable[..., Page] | None = None
    intercept: InterceptOptions | None = None
    tls: bool = False
    session_in_body: re.Pattern[bytes] | None = None
    metrics: tuple[MetricNames, ...] = ("mockllm",)

    @property
    def counts_models(self) -> bool:
        """Whether there are figures of each model."""
        return set(self.metrics) != {"mockllm"}
