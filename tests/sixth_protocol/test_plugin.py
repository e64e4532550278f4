"""The pytest plugin knows a protocol that is registered."""

from __future__ import annotations

import pytest

from examples.accumulators import REFERENCES
from mockllm.checking import INVARIANTS
from tests.plugin.conftest import project, run
from tests.sixth_protocol.accumulator import EchoAccumulator

__all__ = ["project", "run"]


@pytest.fixture(autouse=True)
def _reference(monkeypatch):
    monkeypatch.setitem(REFERENCES, "echo", EchoAccumulator)


HEAD = """
    import os
    import httpx
    from mockllm.checking import Policy
    from mockllm_pytest import AccumulatorSuite, ClientSuite
    from examples.accumulators.lines import ReferenceBytes
    from tests.sixth_protocol.accumulator import EchoAccumulator, LastFragment
"""


def test_the_suite(run):
    """`AccumulatorSuite` with the name of the protocol: a test for each invariant."""
    result = run(
        HEAD
        + """
    class TestRight(AccumulatorSuite):
        api = "echo"
        variations = 1
        policy = Policy(intermediate=True)

        def probe(self):
            return EchoAccumulator()
    """
    )
    result.assert_outcomes(passed=len(INVARIANTS) - 4, skipped=4)


def test_the_suite_finds_a_mistake(run):
    """The invariant that is broken fails, under its name."""
    result = run(
        HEAD
        + """
    class TestWrong(AccumulatorSuite):
        api = "echo"
        variations = 1
        quirks = False
        policy = Policy(intermediate=True)

        def probe(self):
            return LastFragment()
    """
    )
    result.assert_outcomes(failed=1, passed=len(INVARIANTS) - 5, skipped=4)
    result.stdout.fnmatch_lines(["*TestWrong.test_arguments_concatenate*"])


def test_a_session(run):
    """`mockllm_session` leads a client of the protocol to its server, and judges it."""
    result = run(
        HEAD
        + """
    import json
    from tests.sixth_protocol.conftest import acts

    def speak(*dialogue):
        body = {"speaker": "n", "live": True, "dialogue": list(dialogue)}
        url, key = os.environ["ECHO_BASE_URL"], os.environ["ECHO_KEY"]
        return httpx.post(f"{url}/v2/speak", json=body, headers={"x-echo-key": key}, timeout=60)

    def test_it(mockllm_session):
        assert mockllm_session.base_urls["echo"] == mockllm_session.url + "/echo"
        assert os.environ["ECHO_BASE_URL"].endswith("/s/running-test/echo")
        mockllm_session.reply("Hello hall")
        answer = speak({"who": "human", "line": "hi"})
        assert "".join(a["bit"] for a in acts(answer.text) if a["act"] == "line") == "Hello hall"
        (exchange,) = mockllm_session.journal
        assert (exchange.played.api, exchange.outcome) == ("echo", "played")

    def test_refused(mockllm_session):
        speak({"who": "gadget", "cue": "none", "line": "42"})
    """
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*dialogue[[]0[]] answers no cue*"])


def test_a_whole_client(run):
    """`ClientSuite` plays the cases to a client at the base URL of the protocol."""
    result = run(
        HEAD
        + """
    class TestClient(ClientSuite):
        api = "echo"
        scenarios = "secret-numbers"
        variations = 1

        def run(self, base_url, case):
            probe = ReferenceBytes("echo")
            dialogue = [{"who": "human", "line": case.prompt}]
            body = {"speaker": case.model, "live": True, "dialogue": dialogue}
            url, headers = f"{base_url}/v2/speak", {"x-echo-key": "k"}
            try:
                with httpx.stream("POST", url, json=body, headers=headers, timeout=60) as answer:
                    for data in answer.iter_raw():
                        probe.feed(data)
            except httpx.TransportError:
                pass  # the accumulator sees by itself that something is missing
            probe.close()
            return probe.outcome()
    """
    )
    result.assert_outcomes(passed=len(INVARIANTS) - 11, skipped=11)
