"""`mockllm check` with real runners: what it finds, writes and prints."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mockllm.checking import CaseSpec
from mockllm.cli import main
from mockllm.conformance.results import CaseResult, Results
from mockllm.conformance.results.file import read_results
from mockllm.play.replay.loading import loads
from tests.cases import for_all
from tests.timeouts import GIVE_UP

FAULTY = [sys.executable, str(Path(__file__).with_name("faulty_runner.py"))]
ROOT = Path(__file__).parents[3]
RIGHT = [sys.executable, str(ROOT / "examples" / "runners" / "python" / "runner.py")]
HTTP = [sys.executable, str(ROOT / "tests" / "conformance" / "clients" / "http_runner.py")]

Check = Callable[..., Result]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Runs the command in an empty folder; words after None are those of the runner."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object, runner: list[str] | None = None) -> Result:
        command = ["--", *runner] if runner else []
        arguments = ["check", "--api", "chat", *map(str, words), *command]
        return CliRunner().invoke(main, arguments)

    return run


def faulty(*mistakes: str) -> list[str]:
    return [*FAULTY, *mistakes]


def written(path: str = "mockllm-results/faulty-chat.json") -> Results:
    return read_results(path)


def by_name(results: Results) -> dict[str, CaseResult]:
    return {case_.case: case_ for case_ in results.cases}


SOME = ("--only", "chat/sample-*", "--only", "chat-index-missing", "--only", "usage-*")


@pytest.mark.slow
def test_a_right_client(check: Check) -> None:
    """Everything is right, exit code 0, and the results file has its default name."""
    found = check(runner=RIGHT)
    assert found.exit_code == 0, found.output
    results = written("mockllm-results/example-python-chat.json")
    assert set(results.verdicts) <= {"right", "tolerated"}
    assert len(results.cases) > 800
    assert results.level == "bytes"
    assert results.arguments == {"variations": 0, "seed": "0"}
    assert all(case_.stream and case_.stream.headers for case_ in results.cases)
    assert "WORST MISTAKE" in found.output
    assert "RESULTS: mockllm-results/example-python-chat.json" in found.output


@pytest.mark.slow
def test_a_wrong_client(check: Check, tmp_path: Path) -> None:
    """The file has the client's own exception, costs, and the smallest streams; exit code 1."""
    found = check(
        "--only", "chat-type-missing*", "--junit", "j/u.xml", "--badge", "b.svg",
        runner=faulty("type"),
    )  # fmt: skip
    assert found.exit_code == 1, found.output
    results = written()
    case = by_name(results)["chat/sample-call+chat-type-missing"]
    assert (case.verdict, case.cost, case.group) == ("crash", "loud failure", "calls")
    assert case.exception.startswith("KeyError: 'type' (client.py:")
    assert case.exception in found.output
    assert case.expected["tool_calls"][0]["name"] == "get_weather"
    assert set(case.actual) == {"errors", "crash"}
    assert case.not_judged == ()
    assert results.quirks["chat-type-missing"].title
    smallest = [case_ for case_ in results.cases if case_.smallest is not None]
    assert len(smallest) == len({case_.invariant for case_ in results.cases if case_.failed}) == 1
    assert 'failures="' in (tmp_path / "j" / "u.xml").read_text()
    assert "0/1 groups" in (tmp_path / "b.svg").read_text()


@pytest.mark.slow
def test_the_smallest_stream_is_that_of_its_scenario(check: Check) -> None:
    """The YAML in the file plays exactly the bytes beside it, which are fewer than the case's."""
    check("--only", "chat/sample-text-and-call+chat-type-missing", runner=faulty("type"))
    case = written().cases[0]
    assert case.smallest is not None
    assert case.stream is not None
    (scenario,) = loads(case.smallest.scenario)
    played = CaseSpec("", scenario, "chat").compile().answer.data
    assert played == case.smallest.stream.writes
    assert len(b"".join(played)) < len(b"".join(case.stream.writes))
    assert "KeyError" in case.smallest.actual["crash"]["message"]


@pytest.mark.slow
def test_an_error_is_an_outcome_by_itself(check: Check) -> None:
    """Where an error is accepted, nothing else is asked for, so there is nothing not judged."""
    check("--only", "chat-args-repeated-at-end*", runner=faulty("refuses"))
    quirky = [case_ for case_ in written().cases if case_.quirk]
    assert quirky
    for case_ in quirky:
        assert (case_.verdict, case_.not_judged) == ("tolerated", ()), case_
        assert case_.reason == "accepted: a clear error"


@pytest.mark.slow
def test_both_commands_reproduce_a_case(check: Check) -> None:
    """One judges the case again and fails in the same way, the other prints its bytes."""
    check("--only", "sse-crlf:split", "--policy", "malformed=skip", runner=faulty("usage"))
    for case in written().cases[-2:]:
        again, show = map(shlex.split, case.reproduce)
        assert case.stream is not None
        shown = CliRunner().invoke(main, show[1:])
        assert shown.stdout_bytes == b"".join(case.stream.writes)
        found = CliRunner().invoke(main, again[1:])
        assert found.exit_code == 1, found.output
        assert by_name(written())[case.case].differences == case.differences
        assert dict(written().arguments)["policy"] == {"malformed": "skip"}


@pytest.mark.slow
def test_a_mistake_of_the_plain_form_is_counted_once(check: Check) -> None:
    """A client that always loses usage is not wrong about each quirk."""
    found = check(*SOME, "--no-shrink", runner=faulty("usage"))
    cases = by_name(written())
    quirk = cases["chat/sample-call+chat-index-missing"]
    assert (quirk.verdict, quirk.baseline, quirk.failed) == ("wrong", "chat/sample-call", False)
    assert cases["chat/sample-call"].failed
    assert "wrong in their plain form, too" in found.output


@pytest.mark.slow
def test_a_field_that_the_client_has_no_place_for(check: Check) -> None:
    """A quirk of reasoning is not judged for a client without reasoning, and never right."""
    found = check("--only", "chat-reasoning-fields:*", runner=faulty("unsupported"))
    assert found.exit_code == 2, found.output
    assert {case_.verdict for case_ in written().cases} == {"not judged"}
    assert written().unsupported == ("reasoning",)
    assert "reasoning cannot be compared: the client has no place for it" in found.output


@pytest.mark.slow
def test_an_exception_of_the_runner_is_not_the_clients(check: Check) -> None:
    """It has a verdict of its own and exit code 2; the place is named."""
    found = check("--only", "chat/sample-two-same*", "--no-shrink", runner=faulty("crash"))
    assert found.exit_code in (1, 2)
    verdicts = written().verdicts
    assert verdicts["adapter"]
    assert "faulty_runner.py:" in found.output
    assert "which is in the adapter and not in the client" in found.output
    assert all(case_.cost is None for case_ in written().cases if case_.verdict == "adapter")


@pytest.mark.slow
def test_answers_that_are_not_valid(check: Check) -> None:
    """They say nothing about the client: the verdict is the adapter's, with the field."""
    found = check("--only", "chat/sample-text+sse-crlf*", runner=faulty("invalid"))
    assert found.exit_code == 2
    assert set(written().verdicts) == {"adapter"}
    assert "colour: there is no such field, only id, text, " in found.output


@pytest.mark.slow
def test_streams_that_share_state(check: Check) -> None:
    """Only the case that shows it is judged, and the file gives the reason for all others."""
    some = ("--only", "chat/auto", "--only", "sse-crlf*", "--no-shrink")
    found = check(*some, runner=faulty("shared"))
    assert found.exit_code == 1
    results = written()
    assert "share state" in results.stopped
    assert [case_.invariant for case_ in results.cases if case_.failed] == ["stage-empties"]
    assert {case_.verdict for case_ in results.cases if not case_.failed} == {"not judged"}


@pytest.mark.slow
def test_known_failures(check: Check, tmp_path: Path) -> None:
    """`--update` writes what fails; then the run is good, until a listed case passes."""
    known = tmp_path / "known.txt"
    arguments = ("--only", "*+chat-type-missing", "--no-shrink", "--known-failing", known)
    assert check(*arguments, runner=faulty("type")).exit_code == 2  # there is no such file
    assert check(*arguments, "--update", runner=faulty("type")).exit_code == 0
    first = known.read_text()
    assert "chat/sample-call+chat-type-missing  # loud failure: KeyError: 'type'" in first
    assert check(*arguments, runner=faulty("type")).exit_code == 0
    found = check(*arguments, runner=faulty())
    assert found.exit_code == 1
    assert "PASSING" in found.output
    flaky = check(*arguments, "--known-flaky", known, runner=faulty())
    assert flaky.exit_code == 0, flaky.output
    check(*arguments, "--update", runner=faulty())
    assert "chat/sample-call+" not in known.read_text()
    known.write_text("chat/nothing*\n")
    wrong = check(*arguments, runner=faulty())
    assert wrong.exit_code == 2
    assert "known.txt:1: there is no case 'chat/nothing*'" in wrong.output


@pytest.mark.slow
def test_interrupted(check: Check, tmp_path: Path) -> None:
    """After Ctrl-C the file has the cases until then, and says that it was stopped."""
    (tmp_path / "mockllm.toml").write_text("[check]\nwindow = 1\n")
    arguments = ["check", "--api", "chat", "--only", "sse-*", "--"]
    done = subprocess.run(
        [sys.executable, "-m", "mockllm", *arguments, *faulty("interrupt")],
        cwd=tmp_path, capture_output=True, text=True, timeout=GIVE_UP, check=False,
    )  # fmt: skip
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr
    results = read_results(tmp_path / "mockllm-results" / "faulty-chat.json")
    assert results.stopped.startswith(f"interrupted after {len(results.cases)} of ")
    assert 3 <= len(results.cases) < 100
    assert "the remaining cases: interrupted after" in done.stdout


@pytest.mark.slow
@for_all("form", [(), ("--http",), ("--http", "--faults"), ("--cuts",), ("--self-test",)])
def test_interrupted_before_the_hello(form: tuple[str, ...], tmp_path: Path) -> None:
    """One Ctrl-C ends the check and its runner, which hangs: there is no result to keep."""
    command = [sys.executable, "-m", "mockllm", "check", "--api", "chat"]
    done = subprocess.run(
        [*command, "--limit", str(GIVE_UP), *form, "--", *faulty("silent")],
        cwd=tmp_path, capture_output=True, text=True, timeout=GIVE_UP, check=False,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    runner, *others = done.stderr.split()
    assert others == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(runner), 0)


@pytest.mark.slow
def test_cases_and_answers_in_files(check: Check, tmp_path: Path) -> None:
    """A runner that cannot be started reads one file and writes another."""
    cases, answers = tmp_path / "cases.jsonl", tmp_path / "answers.jsonl"
    chosen = ("--only", "chat/sample-call*")
    found = check(*chosen, "--emit", cases)
    assert found.exit_code == 0, found.output
    text = subprocess.run(
        faulty(), input=cases.read_bytes(), stdout=subprocess.PIPE, timeout=GIVE_UP, check=True
    ).stdout
    answers.write_bytes(text)
    judged = check(*chosen, "--judge", answers)
    assert judged.exit_code in (0, 1), judged.output
    assert len(written().cases) == len(cases.read_bytes().splitlines()) - 1
    assert written().cases[0].reproduce[0].startswith("mockllm show chat/sample-call")
    answers.write_bytes(b"".join(text.splitlines(keepends=True)[:-1]))
    check(*chosen, "--judge", answers)
    assert written().stopped == "the file has no answer to 1 cases"
    assert written().cases[-1].verdict == "not judged"


@pytest.mark.slow
def test_self_test(check: Check) -> None:
    """A good runner passes; `true`, which is none, does not, with what to do."""
    good = check("--self-test", runner=faulty())
    assert (good.exit_code, good.output) == (0, "the runner speaks the protocol\n")
    bad = check("--self-test", runner=["true"])
    assert bad.exit_code == 2
    assert "there is no hello" in bad.output


@pytest.mark.slow
def test_a_runner_that_is_none(check: Check) -> None:
    """Exit code 2, one line, and no results file."""
    found = check("--only", "chat/sample-call", runner=["true"])
    assert found.exit_code == 2
    assert "before its hello" in found.output
    assert not Path("mockllm-results").exists()


@pytest.mark.slow
def test_whole_clients(check: Check) -> None:
    """Over HTTP the file has what the server wrote, with the same names of cases."""
    found = check("--http", "--only", "chat/sample-call*", "--no-shrink", runner=HTTP)
    assert found.exit_code in (0, 1), found.output
    (path,) = Path("mockllm-results").iterdir()
    results = read_results(path)
    assert results.level == "http"
    assert all("--http" in case_.reproduce[0] for case_ in results.cases)


@pytest.mark.slow
@for_all(
    ("words", "runner", "message"),
    [
        ((), [], "which runner? mockllm check ... -- CMD"),
        (("--only", "sse-crlff"), ["true"], "there is no such case or quirk among"),
        (("--only", "sse-crlff"), ["true"], "did you mean 'sse-crlf'"),
        (("--only", "chat/auto~cut3"), ["true"], "need --variations and --seed"),
        (("--policy", "malformed=drop"), ["true"], "malformed is one of error, skip, keep, fail"),
        (("--policy", "colour=red"), ["true"], "there is no 'colour'; there are: malformed"),
        (("--policy", "allow=x"), ["true"], "list such cases in a file, with --known-failing"),
        (("--policy", "ignore=txt"), ["true"], "an outcome has no 'txt'"),
        (("--policy", "usage_requested=1"), ["true"], "usage_requested is one of true, false"),
        (("--per-case",), ["true"], "--per-case is for --http"),
        (("--http", "--level", "payloads"), ["true"], "--http goes with neither"),
        (("--update",), ["true"], "--known-failing, which is not given"),
        (("--emit", "x"), ["true"], "--emit starts no program"),
        (("--emit", "x", "--self-test"), ["true"], "--self-test and --emit exclude each other"),
        (("--self-test", "--http", "--per-case"), ["true"], "--per-case are not"),
        (("--known-flaky", __file__), ["true"], "is not one pattern of case names"),
    ],
)
def test_wrong_use(check: Check, words: tuple[str, ...], runner: list[str], message: str) -> None:
    """One line with what to do, before any program is started."""
    found = check(*words, runner=runner)
    assert found.exit_code == 2
    assert message in found.output
    assert found.output.count("\n") == 1


@pytest.mark.slow
def test_the_files_of_emitted_cases_have_the_names_of_results(check: Check) -> None:
    """A runner sees the name under which the case is reported."""
    check("--only", "chat/sample-call+chat-index-missing", "--emit", "cases.jsonl")
    hello, case, plain = map(json.loads, Path("cases.jsonl").read_text().splitlines())
    assert hello == {"mockllm": 1, "api": "chat", "level": "bytes"}
    assert case["case"] == "chat/sample-call+chat-index-missing"
    assert plain["case"] == "chat/sample-call"
