"""A whole run: the upstream, the control run, the gateway that is started, and every case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mockllm.conformance.results import Results
from mockllm.errors import ProbeError
from mockllm.gateway.cases import GatewayCase
from mockllm.gateway.check import Door, Gateway, Progress, check_gateway, control_problem
from mockllm.gateway.program import running_gateway
from mockllm.gateway.upstream import GatewayUpstream, gateway_upstream
from mockllm.replay.sessions.exchange import Exchange


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
    *,
    progress: Progress | None = None,
    goes_on: Callable[[], bool] = lambda: True,
) -> JudgedGateway:
    """Plays the cases, first without the gateway.

    Args:
        empty: the results but for the cases.
        goes_on: called before each case; once it is false, no further case is played.

    Raises:
        ProbeError: the control run is not all right, or the gateway does not start.
    """
    with gateway_upstream(gateway.upstream_port) as upstream:
        problem = control_problem(upstream, gateway.pair, cases)
        if problem:
            raise ProbeError(problem)
        with _door(gateway, upstream) as door:
            before = len(upstream.strangers)
            results = check_gateway(
                upstream, gateway, door, cases, empty, progress=progress, goes_on=goes_on
            )
        return JudgedGateway(results, upstream.strangers[before:])


@contextmanager
def _door(gateway: Gateway, upstream: GatewayUpstream) -> Iterator[Door]:
    """Where the gateway takes requests until the block ends."""
    if gateway.command is None:
        yield Door(gateway.url.rstrip("/"), gateway.model, gateway.headers, gateway.base)
        return
    base_url = upstream.base_url(gateway.pair.up)
    with running_gateway(gateway.command, gateway.pair, base_url, gateway.model) as program:
        headers = {name: program.filled(value) for name, value in gateway.headers.items()}
        yield Door(program.url, gateway.model, headers, gateway.base)
