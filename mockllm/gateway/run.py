"""A whole run: the upstream, the control run, the gateway that is started, and every case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from mockllm.conformance.case_names import Setting
from mockllm.conformance.results import Results
from mockllm.errors import ProbeError
from mockllm.gateway.cases import GatewayCase, Pair
from mockllm.gateway.check import (
    DEADLINE,
    MODEL,
    Door,
    GatewayRun,
    Progress,
    check_gateway,
    control_problem,
)
from mockllm.gateway.program import GatewayCommand, GatewayProgram
from mockllm.gateway.upstream import GatewayUpstream
from mockllm.replay.sessions.exchange import Exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """What is judged, and how.

    Args:
        command: starts it; None for one that runs already, at `url`.
        upstream_port: where its upstream listens; 0 for a free port.
        base: the path of the base URL that its clients have; None for that of the API.
        model: that requests name.
        headers: of requests, besides those of the API; with placeholders, as in the command.
        tries: how many requests upstream one request of a client may cause, where they fail.
        rounds: how often each case is played; a mistake counts where it is made each time.
        deadline: seconds until an answer is to be over.
        unsupported: why cases are not judged, by patterns of their names.
        setting: the words that reproduce a case.
        sdk: whether the official SDK reads the answers that are wrong, too.
    """

    pair: Pair
    command: GatewayCommand | None = None
    url: str = ""
    upstream_port: int = 0
    base: str | None = None
    model: str = MODEL
    headers: Mapping[str, str] = field(default_factory=dict)
    tries: int = 1
    rounds: int = 2
    deadline: float = DEADLINE
    unsupported: Mapping[str, str] = field(default_factory=dict)
    setting: Setting | None = None
    sdk: bool = False


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
    with GatewayUpstream(gateway.upstream_port) as upstream:
        problem = control_problem(upstream, gateway.pair, cases)
        if problem:
            raise ProbeError(problem)
        with _door(gateway, upstream) as door:
            run = GatewayRun(
                gateway.pair,
                door,
                gateway.tries,
                gateway.rounds,
                gateway.deadline,
                gateway.unsupported,
                gateway.setting,
                gateway.sdk,
            )
            before = len(upstream.strangers)
            results = check_gateway(upstream, run, cases, empty, progress=progress, goes_on=goes_on)
        return JudgedGateway(results, upstream.strangers[before:])


@contextmanager
def _door(gateway: Gateway, upstream: GatewayUpstream) -> Iterator[Door]:
    """Where the gateway takes requests until the block ends."""
    if gateway.command is None:
        yield Door(gateway.url.rstrip("/"), gateway.model, gateway.headers, gateway.base)
        return
    base_url = upstream.base_url(gateway.pair.up)
    with GatewayProgram(gateway.command, gateway.pair, base_url, gateway.model) as program:
        headers = {name: program.filled(value) for name, value in gateway.headers.items()}
        yield Door(program.url, gateway.model, headers, gateway.base)
