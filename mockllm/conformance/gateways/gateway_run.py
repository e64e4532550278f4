"""A whole run: the upstream, the control run, the gateway that is started, and every case.

The upstream is a server in a thread, which knows each case by the nonce in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from mockllm.conformance.driver import UNWATCHED, Driver
from mockllm.conformance.gateways.cases import GatewayCase
from mockllm.conformance.gateways.check import Gateway, check_gateway, control_problem
from mockllm.conformance.gateways.program import running_gateway
from mockllm.conformance.results import Results
from mockllm.core.errors import ProbeError
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread

NONCE = re.compile(rb"gw-[0-9a-f]{16}")
"""How a case is named in the text of its user. It is the name of the session, too; `default` has
the requests that belong to no case, such as probes."""


def gateway_upstream(port: int = 0) -> AbstractContextManager[ServerThread]:
    """Listens while the `with` block lasts.

    Args:
        port: 0 picks a free one.
    """
    return ServerThread([], ServerOptions(port=port, grace=0, session_in_body=NONCE))


@dataclass(frozen=True, slots=True)
class JudgedGateway:
    """A gateway that was judged.

    Args:
        strangers: the requests upstream that belong to no case, which are not judged.
    """

    results: Results
    strangers: tuple[Exchange, ...]


def judge_gateway(
    gateway: Gateway,
    cases: Sequence[GatewayCase],
    empty: Results,
    driver: Driver = UNWATCHED,
) -> JudgedGateway:
    """Plays the cases, first without the gateway.

    Args:
        empty: the results but for the cases.

    Raises:
        ProbeError: the control run is not all right, or the gateway does not start.
    """
    with gateway_upstream(gateway.upstream_port) as upstream:
        problem = control_problem(upstream, gateway.pair, cases)
        if problem:
            raise ProbeError(problem)
        with _running(gateway, upstream) as running:
            before = len(upstream.exchanges("default"))
            results = check_gateway(upstream, running, cases, empty, driver)
        return JudgedGateway(results, upstream.exchanges("default")[before:])


@contextmanager
def _running(gateway: Gateway, upstream: ServerThread) -> Iterator[Gateway]:
    """The gateway with the URL at which it takes requests until the block ends."""
    if gateway.command is None:
        yield replace(gateway, url=gateway.url.rstrip("/"))
        return
    base_url = upstream.server.base_urls[gateway.pair.up]
    with running_gateway(gateway.command, gateway.pair, base_url, gateway.model) as program:
        headers = {name: program.fill(value) for name, value in gateway.headers.items()}
        yield replace(gateway, url=program.url, headers=headers)
