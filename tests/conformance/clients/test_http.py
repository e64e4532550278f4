"""Whole clients over HTTP, started once or for each case."""

import sys
from itertools import count
from pathlib import Path

import pytest

from mockllm.checking import Policy
from mockllm.checking.cases.build import case
from mockllm.conformance.clients.http_clients import http_runner
from mockllm.conformance.clients.http_sessions import CaseSession
from mockllm.conformance.clients.self_test import self_test
from mockllm.play.quirks.samples import SAMPLES
from mockllm.serve.server.thread import ServerThread
from tests.checking.quirk_cases import quirk_cases
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
    found = [
        case_ for case_ in quirk_cases("chat") if case_.quirk.startswith(("sse-", "chat-index"))
    ]
    with http_runner(RUNNER, "chat", jobs=jobs, limit=GIVE_UP) as runner:
        report = runner.examine(found, Policy())
        assert not [answer.invalid for answer in runner.answers.values() if answer.invalid]
    wrong = [result.case.name for result in report.results if result.judgement.differences]
    assert wrong == []
    assert report.runs == len(found) > 20


def test_a_client_that_sends_no_request(samples):
    """Nothing was judged then: the answer is not valid, and says why."""
    with http_runner([*RUNNER, "no-request"], "chat", limit=GIVE_UP) as runner:
        answer = runner.answer(samples[0])
    assert answer.invalid.startswith("the client sent no request to http://127.0.0.1:")


def test_a_client_that_calls_another_route(samples):
    with http_runner([*RUNNER, "other-route"], "chat", limit=GIVE_UP) as runner:
        answer = runner.answer(samples[0])
    assert "was not answered from the case" in answer.invalid


def test_a_client_that_sends_the_request_again(samples):
    """A retry gets the same answer. It is no mistake, and is reported."""
    with http_runner([*RUNNER, "again"], "chat", limit=GIVE_UP) as runner:
        assert runner.answer(samples[0]).invalid == ""
        assert runner.attachment.remarks == [
            "the client sent several requests in 1 case, such as 2 in chat/sample-text: it "
            "retries, or sends them twice"
        ]


def test_a_client_that_dies_while_others_are_served(samples):
    """Each case that is sent again has a new session: the first one has been played."""
    with http_runner([*RUNNER, "threads", "die"], "chat", limit=GIVE_UP) as runner:
        report = runner.examine(samples, Policy())
        assert runner.attachment.processes.restarts >= 1
        assert not [answer.invalid for answer in runner.answers.values() if answer.invalid]
        ended = {name: one.ended for name, one in runner.answers.items() if one.ended}
    culprits = [sample.name for sample in samples if "two-same" in sample.name]
    assert ended == dict.fromkeys(culprits, "the runner ended with exit code 3")
    wrong = [result.case.name for result in report.results if result.judgement.differences]
    assert wrong == culprits


def test_a_client_that_dies_inside_of_an_answer(samples):
    """Half a line is no answer, and no breach of the protocol either."""
    with http_runner([*RUNNER, "die", "inside"], "chat", limit=GIVE_UP) as runner:
        report = runner.examine(samples, Policy())
    wrong = [result.case.name for result in report.results if result.judgement.differences]
    assert wrong == [sample.name for sample in samples if "two-same" in sample.name]


def test_a_client_gives_up_before_it_is_stopped(samples):
    with ServerThread([]) as thread:
        session = CaseSession(thread, samples[0], count(1), 10.0)
        assert session.open()["deadline"] == 9.0


def test_a_proxy_is_not_used(samples, monkeypatch):
    """This machine is exempt for the client, whatever the user's environment has."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with http_runner(RUNNER, "chat", limit=GIVE_UP) as runner:
        assert runner.examine(samples[:2], Policy()).good


def test_usage_is_judged_where_it_was_requested(samples):
    with http_runner([*RUNNER, "no-usage"], "chat", limit=GIVE_UP) as runner:
        report = runner.examine(samples, Policy())
    assert report.good
    assert report.not_judged["usage"] > 0


def test_a_program_for_each_case(samples):
    with http_runner(PER_CASE, "chat", per_case=True, jobs=2, limit=GIVE_UP) as runner:
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
    with http_runner([*PER_CASE, fault], "chat", per_case=True, limit=GIVE_UP) as runner:
        assert getattr(runner.answer(samples[0]), field).startswith(text)


def test_a_program_that_hangs_ends_with_what_it_started(samples):
    with http_runner([*PER_CASE, "hang"], "chat", per_case=True, limit=1.0) as runner:
        assert runner.answer(samples[0]).ended == "no answer within 1 s"


def test_programs_end_with_the_runner(samples):
    """The user stops: what runs is ended, what waits is not started."""
    runner = http_runner([*PER_CASE, "hang"], "chat", per_case=True, limit=GIVE_UP)
    waiting = [runner.attachment.submit(sample) for sample in samples[:3]]
    runner.close()
    assert all(one.done() for one in waiting)


def test_the_self_test_over_http():
    assert self_test(RUNNER, "chat", "http", limit=GIVE_UP) == []
