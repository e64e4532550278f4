"""`AccumulatorSuite` and `ClientSuite`: each invariant is one test."""

from __future__ import annotations

import pytest

from mockllm.checking import INVARIANTS
from mockllm.protocols import PROTOCOLS

APIS = tuple(PROTOCOLS)

pytestmark = pytest.mark.slow

HEAD = """
    from dataclasses import replace
    import httpx
    from mockllm.checking import Outcome, Policy, Usage
    from mockllm.checking.reference import REFERENCES
    from mockllm.checking.reference.lines import ReferenceBytes
    from mockllm_pytest import AccumulatorSuite, ClientSuite

    class ReportsTheSum(REFERENCES["chat"]):
        '''Reports the whole text so far as a delta.'''

        def feed(self, payload, event=None):
            delta = super().feed(payload, event)
            if delta is not None and delta.text:
                return replace(delta, text=self.outcome().text)
            return delta

"""


@pytest.mark.parametrize("api", APIS)
def test_a_correct_accumulator_passes_every_test(run, api):
    """Each invariant is a test that passes, or that is skipped with a reason."""
    result = run(
        HEAD
        + f"""
    class TestRight(AccumulatorSuite):
        api = "{api}"
        variations = 1
        policy = Policy(intermediate=True)

        def probe(self):
            return REFERENCES["{api}"]()
    """,
        "-rs",
    )
    # stream-equals-body: the suite has no method body.
    result.assert_outcomes(passed=len(INVARIANTS) - 1, skipped=1)
    result.stdout.fnmatch_lines(["*give the suite a method body(value) to compare"])


def test_intermediate_invariants_are_skipped_by_default(run):
    """Without `intermediate`, the tests that need the outcome after every chunk are skipped."""
    result = run(
        HEAD
        + """
    class TestRight(AccumulatorSuite):
        api = "chat"
        variations = 0
        quirks = False

        def probe(self):
            return REFERENCES["chat"]()
    """,
        "-rs",
    )
    result.assert_outcomes(passed=len(INVARIANTS) - 7, skipped=7)
    result.stdout.fnmatch_lines(["*policy = Policy(intermediate=True)"])


def test_a_mistake_fails_one_invariant(run):
    """Only the broken invariant fails, and its message has the smallest stream."""
    result = run(
        HEAD
        + """
    class TestWrong(AccumulatorSuite):
        api = "chat"
        variations = 1
        quirks = False
        policy = Policy(intermediate=True)

        def probe(self):
            return ReportsTheSum()
    """
    )
    result.assert_outcomes(failed=1, passed=len(INVARIANTS) - 2, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*TestWrong.test_delta_is_fragment*",
            "*1 invariant is broken: delta-is-fragment",
            "*breaks delta-is-fragment*",
            "  the smallest stream that shows it:",
            "    import test_it",
            "*check(test_it.TestWrong().probe, *",
            "to run it again: pytest * --mockllm-seed 0",
        ]
    )


def test_xfail_marks_known_failures(run):
    """`xfail` names invariants; one that holds, or that does not exist, is a failure."""
    result = run(
        HEAD
        + """
    class Wrong(AccumulatorSuite):
        api = "chat"
        variations = 0
        quirks = False
        policy = Policy(intermediate=True)

        def probe(self):
            return ReportsTheSum()

    class TestKnown(Wrong):
        xfail = {"delta-is-fragment": "reports the sum", "id-kept": "was fixed"}

    class TestUnknown(Wrong):
        xfail = {"delta-is-fragments": "?"}
    """,
        "-k",
        "delta_is_fragment or test_id_kept",
        "-rxf",
    )
    result.assert_outcomes(xfailed=1, failed=3, deselected=2 * len(INVARIANTS) - 4)
    result.stdout.fnmatch_lines(
        ["*did you mean 'delta-is-fragment'?*", "*XPASS(strict)* was fixed"], consecutive=False
    )


def test_suites_of_bytes_and_of_bodies(run):
    """`level = "bytes"` feeds bytes to probes; `body` is compared with the stream."""
    run(
        HEAD
        + """
    class TestBytes(AccumulatorSuite):
        api = "chat"
        level = "bytes"
        variations = 1
        scenarios = ["secret-numbers", "unicode"]
        policy = Policy(ignore=frozenset({"reasoning", "refusal"}))

        def probe(self):
            return ReferenceBytes("chat")

        def body(self, value):
            choice, usage = value["choices"][0], value["usage"]
            message = choice["message"]
            calls = [
                (call["id"], call["function"]["name"], call["function"]["arguments"])
                for call in message.get("tool_calls") or ()
            ]
            counts = usage["prompt_tokens"], usage["completion_tokens"]
            return Outcome.of(
                message["content"],
                tool_calls=calls,
                finish=choice["finish_reason"],
                usage=counts,
            )

    class TestBody(TestBytes):
        def body(self, value):
            return Outcome.of("something else")
    """,
        "-k",
        "stream_equals_body or chunking_free or input_untouched",
    ).assert_outcomes(passed=3, failed=1, skipped=2, deselected=2 * len(INVARIANTS) - 6)


def test_an_incomplete_suite_names_what_is_missing(run):
    """A suite without an API or a probe fails, and the error names what to add."""
    result = run(
        HEAD
        + """
    class TestNoApi(AccumulatorSuite):
        pass

    class TestNoProbe(AccumulatorSuite):
        api = "chat"
        scenarios = "unicode"
    """,
        "-k",
        "id_kept",
    )
    result.stdout.fnmatch_lines(['*api = "chat"*', "*give TestNoProbe a method probe()*"])


CLIENT_SUITE = """
    class Base(ClientSuite):
        api = "chat"
        scenarios = "secret-numbers"
        variations = 1

        def run(self, base_url, case):
            body = {
                "model": case.model,
                "stream": True,
                "stream_options": {"include_usage": True},
                "messages": [{"role": "user", "content": case.prompt}],
            }
            headers = {"authorization": "Bearer x"}
            probe = ReferenceBytes("chat")
            url = base_url + "/chat/completions"
            try:
                with httpx.stream("POST", url, json=body, headers=headers, timeout=60) as answer:
                    for data in answer.iter_raw():
                        probe.feed(data)
            except httpx.TransportError:
                pass  # the accumulator reports that the stream was cut
            probe.close()
            return probe.outcome()

    class TestRight(Base):
        pass
"""


def test_a_whole_client_is_tested_over_http(run):
    """A correct client passes; invariants that only an accumulator can show are skipped."""
    result = run(HEAD + CLIENT_SUITE, "-rs")
    result.assert_outcomes(passed=len(INVARIANTS) - 8, skipped=8)
    result.stdout.fnmatch_lines(["*is seen at the end of its streams only*"])


def test_a_wrong_client_fails_with_a_small_stream(run):
    """The failure of a whole client is shrunk to a small stream."""
    result = run(
        HEAD
        + CLIENT_SUITE.replace("    class TestRight(Base):\n        pass\n", "")
        + """
    class TestWrong(Base):
        quirks = False

        def run(self, base_url, case):
            outcome = super().run(base_url, case)
            return Outcome.of(
                outcome.text,
                tool_calls=outcome.tool_calls[:1],
                finish=outcome.finish,
                usage=outcome.usage,
            )
    """
    )
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    result.stdout.fnmatch_lines(["*the smallest stream that shows it:", "*to run it again: *"])
