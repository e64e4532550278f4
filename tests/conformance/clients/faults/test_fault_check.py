"""Cases with faults are played to clients, side by side, and judged."""

import sys
import threading
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from mockllm.checking.outcome import Outcome
from mockllm.checking.policy import ResiliencePolicy
from mockllm.checking.resilience.cases import fault_cases
from mockllm.checking.resilience.rule_verdicts import Finding
from mockllm.cli import main
from mockllm.conformance.clients.client_results import AdapterFrames
from mockllm.conformance.clients.fault_check import Judged, check_faults
from mockllm.conformance.clients.http_sessions import FunctionPlayer, PlayedCase
from mockllm.conformance.clients.messages import Answer, read_answer
from mockllm.conformance.driver import Driver
from mockllm.conformance.results import Client, Results, rule_verdict
from mockllm.conformance.results.file import read_results
from mockllm.core.errors import ProbeError
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.entries import journal_entry
from tests.timeouts import GIVE_UP

HERE = Path(__file__).parent
CASES = {case_.name.partition("/")[2]: case_ for case_ in fault_cases("chat")}
POLICY = ResiliencePolicy()
RUN = Results(Client("client"), "chat", "http", "", "")


@pytest.fixture
def server():
    with ServerThread([], ServerOptions(grace=0)) as thread:
        yield thread


def ask(url, case, timeout=GIVE_UP):
    """Reads a whole stream."""
    body = {"model": case.model, "stream": True}
    body["messages"] = [{"role": "user", "content": case.prompt}]
    with httpx.Client(timeout=timeout) as client:
        return client.post(f"{url}/chat/completions", json=body).text


def verdicts(check):
    groups = {}
    for case_ in check.cases:
        groups.setdefault(case_.group, []).append(case_)
    return {rule: rule_verdict(cases) for rule, cases in groups.items()}


def test_what_a_function_raises_is_the_error_of_its_client(server):
    """A connection that breaks is reported by httpx; a cut that ends in order is not."""

    def run(url, case):
        return Outcome.of(text=ask(url, case))

    cases = [CASES["cut-in-text-reset"], CASES["cut-in-text-orderly"]]
    check = check_faults(FunctionPlayer(server, run).play, cases, POLICY, RUN, ["cut-reported"])
    assert verdicts(check) == {"cut-reported": "wrong"}
    (wrong,) = [case_ for case_ in check.cases if case_.failed]
    assert wrong.case == "chat/cut-in-text-orderly:cut-reported"
    play = check.plays[wrong.played]
    assert play.faults == ("cut:after=5 events,end=orderly",)
    (request,) = play.log
    assert (request.status, request.struck_after) == (200, request.bytes_sent)
    assert request.fault == "cut:after=5 events,end=orderly"
    assert "scenario: cut-in-text-orderly" in play.scenario
    assert play.answer["text"].startswith("data:")


def test_a_coroutine_may_play_the_client(server):
    async def run(url, case):
        async with httpx.AsyncClient(timeout=GIVE_UP) as client:
            await client.post(f"{url}/chat/completions", json={"model": case.model})

    with pytest.raises(ProbeError, match="must return an Outcome or a mapping"):
        check_faults(FunctionPlayer(server, run).play, [CASES["status-400"]], POLICY, RUN)


def test_a_field_that_there_is_not_is_no_outcome(server):
    player = FunctionPlayer(server, lambda url, case: {"txt": ""})
    with pytest.raises(ProbeError, match=r"chat/status-400 is no outcome: txt: there is no such"):
        check_faults(player.play, [CASES["status-400"]], POLICY, RUN)


@pytest.mark.slow
def test_a_client_that_waits_for_ever_is_broken_off(server):
    """It has not answered; the others are not delayed, and what it reports then does not count."""
    ended = threading.Event()

    def run(url, case):
        try:
            return {"text": ask(url, case)}
        finally:
            ended.set()

    case = replace(CASES["stall-after-words"], deadline=0.7, rules=("stall-times-out",))
    check = check_faults(FunctionPlayer(server, run).play, [case], POLICY, RUN)
    assert verdicts(check)["stall-times-out"] == "wrong"
    (request,) = check.plays[case.name].log
    assert (request.closed_by, request.duration) == ("still sending", None)
    assert ended.is_set()


def test_a_case_without_a_request_is_not_judged(server):
    def run(url, case):
        return {"text": ask(url, case) if case.name.endswith("orderly") else ""}

    cases = [CASES["cut-in-text-orderly"], CASES["status-400"]]
    check = check_faults(FunctionPlayer(server, run).play, cases, POLICY, RUN)
    silent = [case_ for case_ in check.cases if case_.played == "chat/status-400"]
    assert {one.verdict for one in silent} == {"not judged"}
    assert verdicts(check)["no-retry-where-useless"] == "not judged"
    assert "recovers" not in verdicts(check)  # no case was played for it


def test_a_client_that_never_sends_a_request_cannot_be_judged(server):
    def run(url, case):
        raise OSError("wrong address")

    with pytest.raises(ProbeError, match=r"no request to .* any of 1 cases; .*OSError: wrong addr"):
        check_faults(FunctionPlayer(server, run).play, [CASES["status-400"]], POLICY, RUN)


def test_no_further_case_is_played_after_an_interruption(server):
    player = FunctionPlayer(server, lambda url, case: {"text": ""})
    check = check_faults(
        player.play, [CASES["status-400"]], POLICY, RUN, driver=Driver(goes_on=lambda: False)
    )
    assert check.stopped == "interrupted after 0 of 1 cases"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(Outcome(), invalid="txt: no such field"), "not valid: txt: no such field"),
        (Answer(Outcome(), ended="the runner ended with exit code 3"), "with exit code 3"),
        (read_answer({"crash": {"message": "x", "raised": "mine.py:3 in run"}}), "mine.py:3 in"),
    ],
)
def test_a_broken_runner_says_nothing_about_its_client(answer, reason):
    """No rule is kept or broken then."""
    played = PlayedCase(CASES["cut-in-text-close"], answer, (journal_entry("POST", "/", {}, b""),))
    adapter = AdapterFrames("mine.py", ())
    found = Judged.of(played, ResiliencePolicy(), ["cut-reported", "recovers"], adapter).findings
    assert [(one.rule, one.verdict) for one in found] == [("cut-reported", "not judged")]
    assert reason in found[0].text


def judged(*wrong):
    """A time at which these rules were broken, and `recovers` kept."""
    played = PlayedCase(CASES["status-400"], read_answer({}), ())
    found = [Finding(one, "wrong", "x") for one in wrong] + [Finding("recovers", "right")]
    return Judged(played, tuple(found))


@pytest.mark.parametrize(
    ("times", "certain", "once"),
    [
        ([["a"], ["a"]], {"a"}, set()),
        ([["a"], [], ["a"]], {"a"}, set()),
        ([["a"], [], []], set(), {"a"}),
        ([["a", "b"], ["a"], ["a"]], {"a"}, {"b"}),
        ([["a"], ["b"], ["b"]], {"b"}, {"a"}),
    ],
)
def test_a_mistake_counts_that_most_times_have(times, certain, once):
    first, second, *third = (judged(*time) for time in times)
    found = first.confirm(second, third[0] if third else None)
    assert {one.rule for one in found.wrong} == certain
    assert {one.rule for one in found.unconfirmed} == once
    assert first.differs(second) == (times[0] != times[1])


# The command


def run_check(*words):
    return CliRunner().invoke(main, ["check", "--api", "chat", *words])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--faults", "--", "x"], "--faults is for whole clients: --http --faults"),
        (["--rule", "recovers", "--", "x"], "--rule is for --faults"),
        (["--http", "--faults", "--cuts", "--", "x"], "--faults does not go with --cuts"),
        (["--http", "--faults", "--scenarios", ".", "--", "x"], "go with --scenarios"),
        (
            ["--http", "--faults", "--rule=recovers", "--rule=cut-reported", "--only=cut-*", "x"],
            "none of the cases that --only names can judge it",
        ),
        (["--http", "--faults", "--rule", "recover", "--", "x"], "did you mean 'recovers'?"),
        (["--http", "--faults", "--only", "cut-in-txt", "--", "x"], "did you mean 'cut-in-"),
    ],
)
def test_options_that_do_not_go_together(words, message):
    result = run_check(*words)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.slow
def test_the_command_judges_a_real_client(tmp_path):
    """The OpenAI SDK takes a stream that ends in order for a whole one, and reports a reset."""
    pytest.importorskip("openai")
    file = tmp_path / "results.json"
    command = [sys.executable, str(HERE / "openai_runner.py")]
    chosen = [word for end in ("orderly", "reset") for word in ("--only", f"cut-in-text-{end}")]
    words = ["--http", "--faults", "--rule", "cut-reported", "--rule", "leaves-nothing", *chosen]
    result = run_check(*words, "--output", str(file), "--html", str(tmp_path), "--", *command)
    assert result.exit_code == 1, result.output
    assert "chat/cut-in-text-orderly:cut-reported" in result.output
    assert "each stream ends early" in result.output
    found = read_results(file)
    assert verdicts(found) == {"cut-reported": "wrong", "leaves-nothing": "right"}
    (wrong,) = [case_ for case_ in found.cases if case_.failed]
    assert wrong.played == "chat/cut-in-text-orderly"
    assert "--faults --only chat/cut-in-text-orderly" in wrong.reproduce[0]
    assert "Which clients survive faults?" in (tmp_path / "index.html").read_text()


@pytest.mark.slow
def test_a_runner_that_hangs_is_broken_off_and_the_others_are_judged(tmp_path):
    """The SDK without an idle timeout waits; that delays no other case, and costs no process."""
    pytest.importorskip("openai")
    file = tmp_path / "results.json"
    command = [sys.executable, str(HERE / "openai_runner.py"), "defaults"]
    chosen = ["--only", "stall-after-words", "--only", "cut-in-text-close"]
    words = ["--http", "--faults", *chosen, "--rule", "cut-reported", "--rule", "stall-times-out"]
    words += ["--limit", "3"]
    result = run_check(*words, "-o", str(file), "--", *command)
    assert result.exit_code == 2, result.output
    assert "the runner died" not in result.output
    assert verdicts(read_results(file)) == {
        "cut-reported": "right",
        "stall-times-out": "not judged",  # its idle timeout of 600 s is longer than the case
    }
