"""The fixture `mockllm_gateway`: judges a gateway, and fails the test with the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import mockllm
from mockllm.conformance.case_names import choose
from mockllm.conformance.gateways.cases import Pair, gateway_cases, outside
from mockllm.conformance.gateways.check import MODEL, Gateway, case_forms
from mockllm.conformance.gateways.gateway_run import judge_gateway
from mockllm.conformance.gateways.prices import Prices
from mockllm.conformance.gateways.program import GatewayCommand, read_templates
from mockllm.conformance.reports.terminal import exit_code, terminal_lines
from mockllm.conformance.results import GATEWAY_LEVEL, Client, Results
from mockllm.conformance.results.known import KnownList, Standing


def judge(
    *,
    down: str,
    up: str,
    command: Sequence[str] = (),
    url: str = "",
    upstream_port: int = 0,
    templates: Sequence[Path | str] = (),
    ready: str = "",
    model: str = MODEL,
    headers: Mapping[str, str] | None = None,
    tries: int = 1,
    rounds: int = 2,
    only: Sequence[str] = (),
    unsupported: Mapping[str, str] | None = None,
    prices: str = "",
) -> Results:
    """Judges a gateway; docs/gateway.md describes the arguments.

    Returns:
        The results, where all is right.

    Raises:
        AssertionError: there are mistakes, or not all was judged; with the report.
        UsageError: a pattern of `only` names no case.
        ValueError: `prices` are none.
        ProbeError: the gateway does not start, or the control run is not all right.
    """
    pair = Pair(down, up)
    gateway = Gateway(
        pair=pair,
        command=GatewayCommand(tuple(command), read_templates(list(map(Path, templates))), ready)
        if command
        else None,
        url=url,
        upstream_port=upstream_port,
        model=model,
        headers=headers or {},
        tries=tries,
        rounds=rounds,
        unsupported=unsupported or {},
        prices=Prices.of(prices) if prices else None,
    )
    cases = choose(gateway_cases(pair), only, case_forms, "case", option="only")
    client = Client(command[0] if command else url)
    today = datetime.now(UTC).date().isoformat()
    arguments = {"rounds": rounds, "outside": outside(pair, priced=bool(prices))}
    version = mockllm.__version__
    empty = Results(client, str(pair), GATEWAY_LEVEL, version, today, arguments=arguments)
    results = judge_gateway(gateway, cases, empty).results
    standing = Standing.of(results.cases, KnownList(), KnownList())
    assert exit_code(results, standing) == 0, "\n".join(terminal_lines(results, standing))
    return results
