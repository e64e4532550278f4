"""Clients behind runner programs: real programs, right and broken ones."""

import re
import sys
from pathlib import Path

import pytest

from examples.accumulators.lines import ReferenceBytes
from mockllm.checking import Policy, check, examine
from mockllm.checking.cases.build import case
from mockllm.checking.cases.compile import cases
from mockllm.conformance.clients.runner import Piped, pipe_runner
from mockllm.core.errors import ProbeError, UsageError
from mockllm.play.quirks.samples import SAMPLES
from tests.checking.quirk_cases import quirk_cases
from tests.inner_pytest import ADDOPTS
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.slow

RUNNER = [sys.executable, str(Path(__file__).with_name("runner.py"))]


@pytest.fixture(scope="module")
def samples():
    return [case(sample, "chat") for sample in SAMPLES.values() if sample.plays_over("chat")]


@pytest.fixture(scope="module")
def quirks():
    return [case_ for case_ in quirk_cases("chat") if "huge" not in case_.name]


def pipe(*faults, level="bytes", limit=GIVE_UP, **settings):
    return pipe_runner([*RUNNER, *faults], "chat", level, limit=limit, **settings)


def varied():
    found = list(cases("chat", SAMPLES.values(), variations=1, quirks=False))
    assert len(found) > 25
    return found


def verdicts(report):
    return {result.case.name: result.judgement.verdict for result in report.results}


@pytest.mark.parametrize(
    "settings", [{}, {"window": 1}, {"jobs": 2, "window": 3}], ids=["64", "1", "jobs"]
)
def test_a_runner_is_judged_like_the_same_probe(quirks, settings):
    """Whatever the window and the number of processes, the report is that of the probe itself."""
    own = examine(
        lambda: ReferenceBytes("chat", malformed="error"), quirks, Policy(), level="bytes"
    )
    with pipe(**settings) as runner:
        found = runner.examine(quirks, Policy())
        assert runner.hello.client.name == "reference"
        assert set(runner.answers) >= {quirk.name for quirk in quirks}
        assert runner.attachment.processes.restarts == 0
    assert verdicts(found) == verdicts(own)
    assert found.good


def test_payloads_and_the_cases_that_have_none(quirks):
    with pipe(level="payloads") as runner:
        found = runner.examine(quirks, Policy())
    in_bytes_only = [quirk.name for quirk in quirks if quirk.events is None]
    assert in_bytes_only
    assert list(found.skipped) == in_bytes_only
    assert found.good


def test_answers_in_another_order(samples):
    with pipe("backwards") as runner:
        assert runner.examine(samples, Policy()).good


@pytest.mark.parametrize("fault", ["die", "hang"])
def test_one_case_ends_the_runner_and_it_alone_is_a_crash(samples, fault):
    """Sixty others are in flight with it; each gets its own answer from the next process."""
    limit = 2.0 if fault == "hang" else GIVE_UP
    with pipe(fault, limit=limit) as runner:
        found = runner.examine(samples, Policy())
        assert runner.attachment.processes.restarts >= 1
        reasons = {name: one.ended for name, one in runner.answers.items() if one.ended}
    crashed = [name for name, verdict in verdicts(found).items() if verdict == "crash"]
    assert (
        crashed == [sample.name for sample in samples if "two-same" in sample.name] == list(reasons)
    )
    expected = {"die": "the runner ended with exit code 3", "hang": "no answer within 2 s"}
    assert set(reasons.values()) == {expected[fault]}
    others = {name: one for name, one in verdicts(found).items() if name not in crashed}
    assert set(others.values()) == {"right"}


@pytest.mark.parametrize("window", [1, 64])
def test_a_case_that_follows_one_that_ends_the_runner_is_not_blamed(samples, window):
    """It dies after its answer, with the next case in flight: that one alone ends no runner."""
    with pipe("late-death", window=window) as runner:
        found = runner.examine(samples, Policy())
        assert runner.attachment.processes.restarts >= 1
        assert runner.attachment.processes.unexplained >= 1
        assert not [answer for answer in runner.answers.values() if answer.ended]
    assert found.good


def test_a_runner_that_ends_after_some_cases(samples):
    """No case does that: each is answered by a process of its own, and the ends are counted."""
    with pipe("tired") as runner:
        found = runner.examine(samples, Policy())
        assert runner.attachment.processes.restarts >= 2
        assert runner.attachment.processes.unexplained >= 1
    assert found.good
    assert found.runs == len(samples)


def test_a_runner_that_never_answers_is_given_up():
    found = varied()
    with pipe("mute-death") as runner, pytest.raises(ProbeError, match="has answered no case"):
        runner.examine(found, Policy())


def test_few_cases_that_all_end_the_runner_are_crashes(samples):
    with pipe("mute-death") as runner:
        found = runner.examine(samples[:2], Policy())
        assert {answer.ended for answer in runner.answers.values()} == {
            "the runner ended with exit code 6"
        }
    assert set(verdicts(found).values()) == {"crash"}


def test_a_runner_that_cannot_be_started_again(samples, tmp_path):
    """Every case that waits gets the reason; nothing waits for an answer that cannot come."""
    with (
        pipe("die", f"once={tmp_path / 'started'}") as runner,
        pytest.raises(ProbeError, match="ended with exit code 9 before its hello"),
    ):
        runner.examine(samples, Policy())


def test_a_runner_that_was_closed(samples):
    with pipe() as runner:
        pass
    with pytest.raises(ProbeError, match="was closed"):
        runner.answer(samples[0])


def test_no_such_api():
    with pytest.raises(UsageError, match="there is no API 'chatty'; there are: chat"):
        pipe_runner(RUNNER, "chatty")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("no-hello", "ended with exit code 0 before its hello"),
        ("version", "speaks version 1 of the protocol, and the runner answered 2"),
        ("no-name", "client.name: is missing"),
    ],
)
def test_no_hello(fault, message):
    with pytest.raises(ProbeError, match=message):
        pipe(fault)


def test_a_program_that_there_is_not():
    with pytest.raises(ProbeError, match="cannot be started: No such file"):
        pipe_runner(["/nowhere/runner"], "chat")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("shout", "standard output is for answers alone"),
        ("text-id", "the id '1' of an answer is none that was sent"),
        ("other-id", "the id 1001 of an answer is none that was sent"),
        ("list-id", r"the id \[1\] of an answer is none that was sent"),
        ("twice", "the id 1 of an answer is answered twice"),
    ],
)
def test_a_runner_that_breaks_the_protocol_is_not_judged(samples, fault, message):
    with pipe(fault) as runner, pytest.raises(ProbeError, match=message):
        runner.examine(samples, Policy())


def test_an_answer_of_another_type_is_no_mistake_of_the_client(samples):
    """The answer is kept as not valid, with the field and its value."""
    with pipe("wrong-type") as runner:
        runner.examine(samples[:2], Policy())
        reasons = {answer.invalid for answer in runner.answers.values()}
    assert reasons == {"tool_calls: must be a list or null, not 'none'"}


def test_absent_fields_are_not_judged(samples):
    with pipe("no-usage") as runner:
        found = runner.examine(samples, Policy())
    assert found.good
    assert found.not_judged["usage"] == len([sample for sample in samples if sample.expected.usage])


def test_a_runner_as_a_probe_of_the_kit():
    """`check` and suites take `Piped` as a factory."""
    piped = Piped(RUNNER, "chat", limit=GIVE_UP)
    try:
        report = check(piped, api="chat", level="bytes")
        assert report.runs > 5
        assert piped.unsupported == frozenset()
    finally:
        piped.close()


def test_a_broken_runner_is_no_probe(samples):
    """The mistake is the runner's, and the client is not judged."""
    piped = Piped([*RUNNER, "wrong-type"], "chat", limit=GIVE_UP)
    try:
        with pytest.raises(ProbeError, match="tool_calls: must be a list"):
            examine(piped, samples[:1], level="bytes")
    finally:
        piped.close()


def test_a_probe_of_another_level_is_refused():
    piped = Piped(RUNNER, "chat", limit=GIVE_UP)
    try:
        with pytest.raises(ProbeError, match='level = "bytes" of a suite'):
            check(piped, api="chat", level="payloads")
    finally:
        piped.close()


def test_the_suite_of_the_documentation(pytester):
    """The block of docs/check.md, with a runner that is there."""
    page = (Path(__file__).parents[3] / "docs" / "check.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    block = block.replace('["node", "runner/runner.mjs"]', repr(RUNNER))
    pytester.makepyfile(block + "    variations = 0\n    quirks = False\n")
    result = pytester.runpytest_subprocess(*ADDOPTS.split())
    outcomes = result.parseoutcomes()
    assert outcomes.get("failed", 0) == 0
    assert outcomes["passed"] >= 12


def test_many_processes_end_with_the_runner(samples):
    runner = pipe(jobs=2)
    processes = [process._child._process for process in runner.attachment.processes._processes]
    runner.examine(samples[:2], Policy())
    runner.close()
    assert [process.poll() for process in processes] == [0, 0]


def test_cases_with_variations_go_through(samples):
    found = varied()
    with pipe() as runner:
        report = runner.examine(found, Policy())
    assert report.good
    assert report.runs == len(found)
