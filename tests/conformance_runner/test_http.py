"""Whole clients over HTTP, started once or for each case."""

import sys
from pathlib import Path

import pytest

from mockllm.checking import Policy
from mockllm.checking.cases.compile import case, quirk_cases
from mockllm.conformance.http_cases import HttpRunner
from mockllm.conformance.self_test import self_test
from mockllm.quirks.samples import SAMPLES
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
RUNNER = [sys.executable, str(HERE / "http_runner.py")]
PER_CASE = [sys.executable, str(HERE / "per_case.py")]


@pytest.fixture(scope="module")
def samples():
    return [case(sample, "chat") for sample in SAMPLES.values() if sample.plays_over("chat")]


@pytest.mark.parametrize("jobs", [1, 3])
def test_quirks_over_http(jobs):
    """What shows in bytes and in HTTP itself arrives: content types, cuts, resets."""
    found = [one for one in quirk_cases("chat") if one.quirk.startswith(("sse-", "chat-index"))]
    with HttpRunner(RUNNER, "chat", jobs=jobs, limit=GIVE_UP) as runner:
        report = runner.examine(found, Policy())
        assert not [one.invalid for one in runner.answers.values() if one.invalid]
    wrong = [one.case.name for one in report.results if one.judgement.differences]
    assert wrong == []
    assert report.runs == len(found) > 20


def test_a_client_that_sends_no_request(samples):
    """Nothing was judged then: the answer is not valid, and says why."""
    with HttpRunner([*RUNNER, "no-request"], "chat", limit=GIVE_UP) as runner:
        answer = runner.answer(samples[0])
    assert answer.invalid.startswith("the client sent no request to http://127.0.0.1:")


def test_a_client_that_calls_another_route(samples):
    with HttpRunner([*RUNNER, "other-route"], "chat", limit=GIVE_UP) as runner:
        answer = runner.answer(samples[0])
    assert "was not answered from the case" in answer.invalid


def test_usage_is_judged_where_it_was_requested(samples):
    with HttpRunner([*RUNNER, "no-usage"], "chat", limit=GIVE_UP) as runner:
        report = runner.examine(samples, Policy())
    assert report.good
    assert report.not_judged["usage"] > 0


def test_a_program_for_each_case(samples):
    with HttpRunner(PER_CASE, "chat", per_case=True, jobs=2, limit=GIVE_UP) as runner:
        report = runner.examine(samples[:4], Policy())
    assert report.good
    assert report.runs == 4


@pytest.mark.parametrize(
    ("fault", "field", "text"),
    [
        ("die", "ended", "the program ended with exit code 5 and no outcome"),
        ("text", "invalid", "the last line of the program is no outcome: a line is no JSON"),
    ],
)
def test_a_program_without_an_outcome(samples, fault, field, text):
    with HttpRunner([*PER_CASE, fault], "chat", per_case=True, limit=GIVE_UP) as runner:
        assert getattr(runner.answer(samples[0]), field).startswith(text)


def test_the_self_test_over_http():
    assert self_test(RUNNER, "chat", "http", limit=GIVE_UP) == []
