"""`ResilienceSuite`: each rule is one test."""

from __future__ import annotations

import pytest

from mockllm.checking.rules import RESILIENCE

pytestmark = pytest.mark.slow

HEAD = """
    import json
    import httpx
    from mockllm.checking import Outcome
    from mockllm_pytest import ResilienceSuite

    def text_of(url, case):
        '''Reads a stream, and takes its end for the end of the answer.'''
        body = {"model": case.model, "stream": True}
        body["messages"] = [{"role": "user", "content": case.prompt}]
        found = ""
        with httpx.Client(timeout=60) as client:
            answer = client.post(f"{url}/chat/completions", json=body)
            answer.raise_for_status()
            for line in answer.text.splitlines():
                if line.startswith("data: {"):
                    for choice in json.loads(line[6:])["choices"]:
                        found += choice["delta"].get("content") or ""
        return found

"""


def test_every_rule_is_a_test_of_its_own(run):
    """The broken one has the log of the connections; those that were not judged are skipped."""
    result = run(
        HEAD
        + """
    class TestMine(ResilienceSuite):
        api = "chat"
        only = ("cut-in-text-orderly", "cut-in-text-reset", "status-400")

        def run(self, base_url, case):
            return Outcome.of(text=text_of(base_url, case))
    """,
        "-rs",
    )
    # cut-reported and retry-bounded; no-retry-where-useless is kept.
    outcomes = result.parseoutcomes()
    assert outcomes["passed"] >= 1
    assert outcomes["passed"] + outcomes["failed"] + outcomes["skipped"] == len(RESILIENCE)
    result.stdout.fnmatch_lines(
        [
            "  chat/cut-in-text-orderly:cut-reported*",
            "    cut-reported: a client reports a stream that was cut*",
            "      1. at 0.000 s, connection 1: POST */chat/completions -> 200*end=orderly*",
            'to run it again: pytest "*TestMine::test_cut_reported"',
            "*not judged: the runner does not say what is open at the end*",
        ]
    )


def test_a_known_mistake_is_expected(run):
    result = run(
        HEAD
        + """
    class TestMine(ResilienceSuite):
        api = "chat"
        only = ("cut-before-anything",)
        xfail = {"cut-reported": "our proxy adds the end"}

        def run(self, base_url, case):
            return {"text": text_of(base_url, case)}
    """,
        "-rx",
    )
    result.assert_outcomes(xfailed=1, skipped=len(RESILIENCE) - 1)
    result.stdout.fnmatch_lines(["*our proxy adds the end*"])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("pass", "*set the API of TestMine*"),
        (
            'api = "chat"\n        only = ("status-400", "nothing")',
            "*only nothing: there is no such case*",
        ),
        ('api = "chat"\n        xfail = {"recover": ""}', "*did you mean 'recovers'?*"),
        (
            'api = "chat"\n        only = ("status-400",)',
            "*give TestMine a method run*",
        ),
    ],
)
def test_a_suite_that_cannot_run_says_so_once(run, lines, message):
    result = run(
        HEAD
        + f"""
    class TestMine(ResilienceSuite):
        {lines}
    """
    )
    result.assert_outcomes(failed=1, skipped=len(RESILIENCE) - 1)
    result.stdout.fnmatch_lines([message])
