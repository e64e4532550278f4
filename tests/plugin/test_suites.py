"""`AccumulatorSuite` and `ClientSuite`: each invariant is one test."""

from __future__ import annotations

import pytest

from mockllm.checking import INVARIANTS
from mockllm.wire.protocols import PROTOCOLS

APIS = tuple(PROTOCOLS)

NOT_SENT = {
    "gemini": ["raw-arguments-kept"],
    "agui": ["answer-id-kept"],
    "ollama": ["raw-arguments-kept", "opaque-kept"],
    "bedrock": ["answer-id-kept"],
    "cohere": ["opaque-kept"],
    "realtime": ["opaque-kept"],
    "completions": ["raw-arguments-kept", "opaque-kept", "role-kept"],
    "interactions": ["role-kept"],
    "live": ["raw-arguments-kept", "opaque-kept", "role-kept", "answer-id-kept"],
}
"""The invariants of fields that a protocol does not have: Gemini, Live and Ollama send arguments as
objects, AG-UI, Bedrock and Live have neither model nor id of an answer, Ollama, Cohere, Realtime,
Live and Completions no signatures, Completions no calls, and Live, Completions and Interactions no
roles. Their tests are skipped."""

WITH_QUIRKS = ("chat", "responses")

pytestmark = pytest.mark.slow

HEAD = """
    from dataclasses import replace
    import httpx
    from mockllm.checking import Outcome, Policy, Usage
    from examples.accumulators import REFERENCES
    from examples.accumulators.lines import ReferenceBytes
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
    """Each invariant is a test that passes, or that is skipped with a reason. The quirks are played
    where a verdict needs them; `tests/checking/judging/test_no_false_alarm.py` plays all."""
    result = run(
        HEAD
        + f"""
    class TestRight(AccumulatorSuite):
        api = "{api}"
        variations = 0
        quirks = {api in WITH_QUIRKS}
        policy = Policy(intermediate=True)

        def probe(self):
            return REFERENCES["{api}"]()
    """,
        "-rs",
    )
    # stream-equals-body: the suite has no method body.
    skipped = 1 + len(NOT_SENT.get(api, ()))
    result.assert_outcomes(passed=len(INVARIANTS) - skipped, skipped=skipped)
    result.stdout.fnmatch_lines(["*give the suite a method body(value) to compare"])


def test_intermediate_invariants_are_skipped_by_default(run):
    """Without `intermediate`, the tests that need the outcome after every chunk are skipped. So is
    `opaque-kept`: the shipped scenarios have no signatures for Chat Completions."""
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
    result.assert_outcomes(passed=len(INVARIANTS) - 8, skipped=8)
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
    result.assert_outcomes(failed=1, passed=len(INVARIANTS) - 3, skipped=2)
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
    result.assert_outcomes(xfailed=1, failed=2, skipped=1, deselected=2 * len(INVARIANTS) - 4)
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
        quirks = False
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
        http = httpx.Client(timeout=60)  # a new one for each case would take ten times as long

        @classmethod
        def teardown_class(cls):
            cls.http.close()

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
                with self.http.stream("POST", url, json=body, headers=headers) as answer:
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
    """A correct client passes; invariants that only an accumulator can show are skipped. Ollama has
    quirks of each kind, and three times fewer than Chat Completions."""
    suite = CLIENT_SUITE.replace('"chat"', '"ollama"').replace("/chat/completions", "/api/chat")
    result = run(HEAD + suite, "-rs")
    skipped = 8 + len(NOT_SENT["ollama"])
    result.assert_outcomes(passed=len(INVARIANTS) - skipped, skipped=skipped)
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


CHANGES_INPUT = """
    class ChangesInput(REFERENCES["chat"]):
        '''Writes into every chunk, and returns other ids than those of the stream.'''

        def feed(self, payload, event=None):
            delta = super().feed(payload, event)
            payload["seen"] = True
            return delta

        def outcome(self):
            outcome = super().outcome()
            calls = (replace(call, id=f"other_{call.id}") for call in outcome.tool_calls)
            return replace(outcome, tool_calls=tuple(calls))

    class TestKnown(AccumulatorSuite):
        api = "chat"
        variations = 0
        quirks = False
        xfail = {"input-untouched": "the SDK converts chunks where they are"}

        def probe(self):
            return ChangesInput()
"""


def test_an_excused_invariant_hides_no_other(run):
    """`xfail` of one invariant excuses nothing else: a wrong call id still fails its test."""
    result = run(HEAD + CHANGES_INPUT, "-rxf")
    outcomes = result.parseoutcomes()
    assert (outcomes["xfailed"], outcomes["failed"]) == (1, 1)
    result.stdout.fnmatch_lines(
        ["XFAIL *test_input_untouched*", "FAILED *test_id_kept*"], consecutive=False
    )


ALLOWS = """
    class ArgumentsAreText(REFERENCES["chat"]):
        '''Fails where a server sends arguments as an object.'''

        def _fragment(self, entry):
            "".join([(entry.get("function") or {}).get("arguments") or ""])
            super()._fragment(entry)

    class Base(AccumulatorSuite):
        api = "chat"
        variations = 0
        scenarios = ["secret-numbers"]

        def probe(self):
            return ArgumentsAreText()
"""


def test_a_suite_allows_single_quirks(run):
    """`allow` excuses a quirk, and the summary shows the excuse, whether it is needed or not."""
    result = run(
        HEAD
        + ALLOWS
        + """
    class TestAllowed(Base):
        allow = {"chat-args-object": "no server of ours does this"}
        policy = Policy(allow={"chat-name-repeated": "was fixed"})
    """
    )
    assert "failed" not in result.parseoutcomes()
    result.stdout.fnmatch_lines(
        [
            "*mockllm suites*",
            "*::TestAllowed",
            "  verdicts: *",
            "  excused: chat-args-object (* cases): no server of ours does this",
            "  the excuse for chat-name-repeated is not needed: all are right",
        ]
    )


def test_a_quirk_that_is_not_allowed_fails(run):
    """Without `allow`, the same client fails one test; with an unknown name, every test."""
    result = run(
        HEAD
        + ALLOWS
        + """
    class TestStrict(Base):
        pass

    class TestMisspelt(Base):
        allow = {"chat-args-objects": "?"}
    """,
        "-k",
        "arguments_concatenate",
    )
    result.assert_outcomes(failed=2, deselected=2 * len(INVARIANTS) - 2)
    result.stdout.fnmatch_lines(
        ["*breaks arguments-concatenate*", "*no quirk or case 'chat-args-objects'; did you mean*"],
        consecutive=False,
    )


NOT_KEPT = """
    class TestKeepsLittle(AccumulatorSuite):
        api = "chat"
        variations = 0
        quirks = False

        def probe(self):
            reference = REFERENCES["chat"]()

            class Probe:
                feed, close = reference.feed, reference.close

                def outcome(self):
                    one = reference.outcome()
                    calls = [(call.id, call.name, call.arguments) for call in one.tool_calls]
                    return Outcome.of(
                        one.text,
                        reasoning=one.reasoning,
                        refusal=one.refusal,
                        tool_calls=calls,
                        finish=one.finish,
                        usage=one.usage,
                        errors=one.errors,
                    )

            return Probe()
"""


def test_what_a_client_does_not_keep_is_skipped(run):
    """The test of an invariant without any judged value is skipped, and never passes."""
    names = ("role_kept", "opaque_kept", "raw_arguments_kept", "answer_id_kept")
    result = run(HEAD + NOT_KEPT, "-rs", "-k", " or ".join(names))
    result.assert_outcomes(skipped=len(names), deselected=len(INVARIANTS) - len(names))
    result.stdout.fnmatch_lines(
        [
            "  not judged, with the number of cases: model (*), * role (*)",
            "SKIPPED * not judged: the client keeps none of the fields, or no case has them",
        ]
    )


def test_an_ignored_field_is_not_judged(run):
    """A field in `Policy.ignore` is skipped and counted, too."""
    text = NOT_KEPT + '        policy = Policy(ignore=frozenset({"usage", "finish"}))\n'
    result = run(HEAD + text, "-k", "finish_and_usage")
    result.assert_outcomes(skipped=1, deselected=len(INVARIANTS) - 1)
    result.stdout.fnmatch_lines(["  not judged, with the number of cases: finish (*), * usage (*)"])


CANNOT_BE_RUN = {
    "import_missing": ("import a_module_that_is_missing", "*ModuleNotFoundError*"),
    "constructor": ("raise KeyError('API_KEY')", "*KeyError: 'API_KEY' (test_it.py:* in probe)*"),
    "other_type": ("return 5", "*a probe needs the methods feed and outcome; 5 has no feed*"),
}


@pytest.mark.parametrize(("statement", "message"), CANNOT_BE_RUN.values(), ids=CANNOT_BE_RUN)
def test_a_client_that_cannot_be_run_is_one_failure(run, statement, message):
    """One test fails with the cause, and the others are skipped."""
    result = run(
        HEAD
        + f"""
    class TestBroken(AccumulatorSuite):
        api = "chat"
        scenarios = "unicode"

        def probe(self):
            {statement}
    """
    )
    result.assert_outcomes(failed=1, skipped=len(INVARIANTS) - 1)
    result.stdout.fnmatch_lines([message])


def test_shared_state_fails_one_test_and_skips_the_others(run):
    """Where streams share state, no other result means anything."""
    result = run(
        HEAD
        + """
    SHARED = REFERENCES["chat"]()

    class TestShares(AccumulatorSuite):
        api = "chat"
        variations = 0

        def probe(self):
            return SHARED
    """
    )
    result.assert_outcomes(failed=1, skipped=len(INVARIANTS) - 1)
    result.stdout.fnmatch_lines(["*TestShares.test_stage_empties*", "*streams share state*"])


def test_a_whole_client_runs_a_case_again_after_all_others(run):
    """One that is right until it reads an answer for the second time is found, too."""
    result = run(
        HEAD
        + CLIENT_SUITE.replace("    class TestRight(Base):\n        pass\n", "")
        + """
    class TestShares(Base):
        quirks = False
        scenarios = "secret-numbers"
        seen = set()

        def run(self, base_url, case):
            outcome = super().run(base_url, case)
            if case.name in self.seen:
                outcome = replace(outcome, text=outcome.text + "!")
            self.seen.add(case.name)
            return outcome
    """
    )
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["*TestShares.test_stage_empties*", "*wrong after other streams*"])


WITHOUT_USAGE = CLIENT_SUITE.replace(
    '                "stream_options": {"include_usage": True},\n', ""
).replace("variations = 1", "variations = 0\n        quirks = False")


def test_a_client_that_does_not_request_usage_need_not_have_it(run):
    """Usage is expected only where the client's request has `stream_options.include_usage`."""
    assert WITHOUT_USAGE.count("stream_options") == 0
    result = run(HEAD + WITHOUT_USAGE, "-k", "finish_and_usage")
    result.assert_outcomes(passed=1, deselected=len(INVARIANTS) - 1)
    result.stdout.fnmatch_lines(["  not judged, with the number of cases: *usage (*)"])


def test_usage_can_be_required_by_the_policy(run):
    """`usage_requested=True` expects usage, whatever the requests have."""
    text = WITHOUT_USAGE.replace(
        "class Base(ClientSuite):",
        "class Base(ClientSuite):\n        policy = Policy(usage_requested=True)",
    )
    result = run(HEAD + text, "-k", "finish_and_usage")
    result.assert_outcomes(failed=1, deselected=len(INVARIANTS) - 1)
    result.stdout.fnmatch_lines(["*usage is lost*"])
