"""A client of a new protocol meets the same faults as any other."""

from __future__ import annotations

import httpx
import pytest

from examples.accumulators import REFERENCES
from examples.accumulators.lines import ReferenceBytes
from mockllm.checking.policy import ResiliencePolicy
from mockllm.checking.resilience.cases import fault_cases
from mockllm.conformance.clients.fault_check import check_faults
from mockllm.conformance.clients.http_sessions import FunctionPlayer
from mockllm.conformance.results import Client, Results, rule_verdict
from mockllm.play.replay.client_requests import first_body
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.sixth_protocol.accumulator import EchoAccumulator
from tests.sixth_protocol.conftest import KEY
from tests.sixth_protocol.echo.protocol import PROTOCOL
from tests.timeouts import GIVE_UP

RUN = Results(Client("client"), "echo", "http", "", "")
RULES = ("cut-reported", "no-retry-where-useless", "wrong-body-reported")


@pytest.mark.slow
def test_a_client_of_a_new_protocol_is_judged(monkeypatch):
    """The reference accumulator reports each cut; what follows from it breaks no rule."""
    monkeypatch.setitem(REFERENCES, "echo", EchoAccumulator)

    def run(url, case):
        probe = ReferenceBytes("echo")
        body = first_body(PROTOCOL, case.model, case.prompt, case.tools)
        path = f"{url}/v2/speak"
        try:
            with httpx.stream("POST", path, json=body, headers=KEY, timeout=GIVE_UP) as answer:
                answer.raise_for_status()
                for data in answer.iter_raw():
                    probe.feed(data)
        except httpx.TransportError:
            pass  # the accumulator sees by itself that something is missing
        probe.close()
        return probe.outcome()

    cases = [case_ for case_ in fault_cases("echo") if set(case_.rules) & set(RULES)]
    assert {rule for case_ in cases for rule in case_.rules} >= set(RULES)
    with ServerThread([], ServerOptions(grace=0)) as thread:
        check = check_faults(
            FunctionPlayer(thread, run).play, cases, ResiliencePolicy(), RUN, RULES
        )
    assert [(case_.case, case_.differences) for case_ in check.cases if case_.failed] == []
    of_rule = {rule: [case_ for case_ in check.cases if case_.group == rule] for rule in RULES}
    assert {rule: rule_verdict(cases) for rule, cases in of_rule.items()} == dict.fromkeys(
        RULES, "right"
    )
