"""How clients take faults: `python -m measurements.measure --faults [NAME...]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from measurements.entries import ROOT, Entry
from mockllm.checking.resilience.cases import fault_cases
from mockllm.cli.check.plan import results_of_today
from mockllm.conformance.case_names import Setting
from mockllm.conformance.clients.fault_check import check_faults
from mockllm.conformance.clients.http_clients import HttpClients, fault_limit
from mockllm.conformance.clients.process import Program
from mockllm.conformance.results import CaseResult, LoggedRequest, Play, Results
from mockllm.core.errors import ProbeError
from mockllm.serve.server.options import ServerOptions

__all__ = ["measure_faults"]


def measure_faults(entry: Entry) -> Results:
    """What a client does in all cases with faults of its API.

    Raises:
        ProbeError: its adapter cannot be run, or an error of the adapter itself is reported.
    """
    cases = fault_cases(entry.api)
    setting = Setting(tuple(entry.argv), ("--api", entry.api, "--http", "--faults"))
    options = ServerOptions(grace=0)
    program = Program(command=entry.argv, limit=fault_limit(cases), cwd=ROOT)
    with closing(HttpClients(program, entry.api, options=options)) as runner:
        runner.play(cases[0])  # a client loads what it needs with its first request
        hello = runner.hello
        arguments = {"cases": "all cases with faults"}
        run = results_of_today(hello.client, entry.api, "http", arguments, hello.unsupported)
        results = check_faults(runner.play, cases, hello.resilience, run, setting=setting)
    for case in results.cases:
        _check_adapter(entry, case, results.plays[case.played])
    return replace(
        results,
        cases=tuple(map(_smaller, results.cases)),
        plays={name: _smaller_play(play) for name, play in results.plays.items()},
    )


def _check_adapter(entry: Entry, case: CaseResult, play: Play) -> None:
    """Checks that no accusation rests on an error of the adapter.

    Raises:
        ProbeError: one does.
    """
    for report in (play.answer.get("crash"), *(play.answer.get("errors") or ())):
        raised = str(report.get("raised", "")) if isinstance(report, Mapping) else ""
        if case.failed and raised.startswith("measurements/"):
            raise ProbeError(f"{entry.name}: {case.case}: the adapter fails at {raised}: {report}")


def _smaller(case: CaseResult) -> CaseResult:
    """The line without what differs from machine to machine, and without long texts."""
    return replace(
        case,
        differences=tuple(map(_short, case.differences)),
        unconfirmed=_short(case.unconfirmed),
    )


def _smaller_play(play: Play) -> Play:
    return replace(
        play,
        log=tuple(map(_without_headers, play.log[:_MOST_REQUESTS])),
        answer=_short(dict(play.answer)),
    )


_MOST_REQUESTS = 12
_LONGEST = 600


def _without_headers(one: LoggedRequest) -> LoggedRequest:
    """The request with the headers that retries set, and no others."""
    kept = {name: value for name, value in one.headers.items() if _RETRY.search(name.lower())}
    return replace(one, headers=kept, request=_short(one.request))


_RETRY = re.compile(r"retry|idempotency|timeout")


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list):
        return list(map(_short, value))
    if not isinstance(value, str):
        return value
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1", value)
    text = re.sub(r"/s/fault-\d+", "", text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
