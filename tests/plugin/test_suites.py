"""`AccumulatorSuite` and `ClientSuite`: every invariant as a test of its own."""

from __future__ import annotations

import pytest

from mockllm.checking import INVARIANTS
from mockllm.scenario.model import APIS

pytestmark = pytest.mark.slow

HEAD = """
    from dataclasses import replace
    import httpx
    from mockllm.checking import Outcome, Policy, Usage
    from mockllm.checking.reference import REFERENCES
    from mockllm.checking.reference.lines import ReferenceBytes
    from mockllm_pytest import AccumulatorSuite, ClientSuite

    class Appending(REFERENCES["chat"]):
        '''Takes the whole text so far for a fragment.'''

        def feed(self, payload, event=None):
            told = super().feed(payload, event)
            if told is not None and told.text:
                return replace(told, text=self.outcome().text)
            return told

"""


@pytest.mark.parametrize("api", APIS)
def test_a_right_accumulator_passes_every_test(run, api):
    """Each invariant is a test; those that cannot be seen are skipped, and say why."""
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


def test_what_is_seen_on_the_way_is_asked_for(run):
    """Without `intermediate`, the tests that need a look at every chunk are skipped."""
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


def test_a_mistake_fails_under_its_name(run):
    """The invariant that is broken fails with the smallest stream, and no other does."""
    result = run(
        HEAD
        + """
    class TestWrong(AccumulatorSuite):
        api = "chat"
        variations = 1
        quirks = False
        policy = Policy(intermediate=True)

        def probe(self):
            return Appending()
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


def test_what_is_known_may_fail(run):
    """`xfail` names invariants; one that holds nevertheless, or does not exist, is told."""
    result = run(
        HEAD
        + """
    class Wrong(AccumulatorSuite):
        api = "chat"
        variations = 0
        quirks = False
        policy = Policy(intermediate=True)

        def probe(self):
            return Appending()

    class TestKnown(Wrong):
        xfail = {"delta-is-fragment": "hands on all of it", "id-kept": "was fixed"}

    class TestUnknown(Wrong):
        xfail = {"delta-is-fragments": "?"}
    """,
        "-k",
        "delta_is_fragment or id_kept",
        "-rxf",
    )
    result.assert_outcomes(xfailed=1, failed=3, deselected=2 * len(INVARIANTS) - 4)
    result.stdout.fnmatch_lines(
        ["*did you mean 'delta-is-fragment'?*", "*XPASS(strict)* was fixed"], consecutive=False
    )


def test_bytes_and_bodies_are_taken_through_too(run):
    """At the level of bytes probes get chunks; a `body` is compared with the stream."""
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


def test_a_suite_that_lacks_something_says_so(run):
    """Without an API or a probe there is nothing to test, and the error says what to add."""
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
                with httpx.stream("POST", url, json=body, headers=headers) as answer:
                    for data in answer.iter_raw():
                        probe.feed(data)
            except httpx.TransportError:
                pass  # the accumulator sees by itself that something is missing
            probe.close()
            return probe.outcome()

    class TestRight(Base):
        pass
"""


def test_a_whole_client_is_taken_through_over_http(run):
    """A client that is right passes; what only an accumulator can show is skipped."""
    result = run(HEAD + CLIENT_SUITE, "-rs")
    result.assert_outcomes(passed=len(INVARIANTS) - 8, skipped=8)
    result.stdout.fnmatch_lines(["*is seen at the end of its streams only*"])


def test_a_wrong_client_fails_with_a_small_stream(run):
    """What a whole client gets wrong is made small, too."""
    result = run(
        HEAD
        + CLIENT_SUITE.replace("    class TestRight(Base):\n        pass\n", "")
        + """
    class TestWrong(Base):
        quirks = False

        def run(self, base_url, case):
            told = super().run(base_url, case)
            return Outcome.of(
                told.text, tool_calls=told.tool_calls[:1], finish=told.finish, usage=told.usage
            )
    """
    )
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    result.stdout.fnmatch_lines(["*the smallest stream that shows it:", "*to run it again: *"])
