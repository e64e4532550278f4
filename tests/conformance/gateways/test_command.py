"""`mockllm check-gateway` on the command line, and the fixture `mockllm_gateway`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mockllm.cli import main
from mockllm.conformance.gateways.presets import preset_gateway, preset_pairs, presets
from tests.conformance.gateways.planted import BUGS

ROOT = Path(__file__).parents[3]
START = f"import sys; sys.path[:0] = [{str(ROOT)!r}]; import runpy; runpy.run_module"
"""A gateway gets no environment, so that it does not find the modules of this checkout."""


def _gateway(name: str, *words: str) -> list[str]:
    code = f"{START}('tests.conformance.gateways', run_name='__main__')"
    return [
        sys.executable,
        "-c",
        code,
        name,
        "--port",
        "{port}",
        "--upstream",
        "{upstream}",
        *words,
    ]


def _check(tmp_path: Path, *words: str, table: str = "") -> tuple[int, str]:
    config = tmp_path / "gateway.toml"
    config.write_text(f"[check-gateway]\n{table}\n")
    given = ["check-gateway", "--output", str(tmp_path / "r.json"), *words]
    done = CliRunner().invoke(main, ["--config", str(config), *given])
    return done.exit_code, done.output


PAIR = ("--down", "anthropic", "--up", "chat")


@pytest.mark.slow
def test_a_right_gateway_passes(tmp_path: Path) -> None:
    """Its results are written with a line for each rule of a case, and the exit code is 0."""
    only = ("--only", "call*", "--only", "error-429", "--only", "request-res*")
    code, output = _check(tmp_path, *PAIR, *only, "--", *_gateway("translating"))
    assert code == 0, output
    results = json.loads((tmp_path / "r.json").read_text())
    assert (results["api"], results["level"]) == ("anthropic-chat", "gateway")
    lines = {line["case"]: line["verdict"] for line in results["cases"]}
    assert lines["anthropic-chat/calls:calls-kept"] == "right"
    assert lines["anthropic-chat/request-results:request-kept"] == "right"
    assert set(lines.values()) == {"right"}
    assert "NOT JUDGED\n  log probabilities" in output
    assert "with --all only" in output
    assert "next-previous" in " ".join(results["arguments"]["outside"])


@pytest.mark.slow
def test_a_mistake_is_said_with_the_command_that_shows_it(tmp_path: Path) -> None:
    """The exit code is 1; the line shows the case again, and a list of failures excuses it."""
    bug = next(bug for bug in BUGS.values() if bug.found == ("usage-kept",))
    words = ("--down", bug.pair.split("-")[0], "--up", bug.pair.split("-")[1])
    words += ("--only", bug.cases[0])
    command = ("--", *_gateway(bug.gateway, "--bug", bug.name))
    code, output = _check(tmp_path, *words, *command, table="rounds = 1")
    assert code == 1, output
    assert "wrong metadata" in output
    again = next(line for line in output.splitlines() if "again: mockllm check-gateway" in line)
    assert f"mockllm check-gateway {shlex.join(words[:2])} " in again
    known = tmp_path / "known.txt"
    known.write_text(f"{bug.pair}/{bug.cases[0]}:usage-kept  # known\n")
    assert _check(tmp_path, *words, "--known-failing", str(known), *command)[0] == 0


def test_what_is_not_supported_is_listed(tmp_path: Path) -> None:
    """With its reason, and neither right nor wrong; where nothing is judged, the exit code is 2."""
    table = 'unsupported = "refusal=refusals come later"'
    words = (*PAIR, "--only", "refusal", "--", *_gateway("translating"))
    code, output = _check(tmp_path, *words, table=table)
    assert (code, "refusals come later" in output) == (2, True)


@pytest.mark.slow
def test_a_gateway_that_does_not_start_is_said(tmp_path: Path) -> None:
    """With the end of what it printed; the exit code is 2."""
    code, output = _check(
        tmp_path, *PAIR, "--", sys.executable, "-c", "print('no config'); exit(3)"
    )
    assert code == 2
    assert "the gateway ended with exit code 3" in output
    assert "no config" in output
    code, output = _check(tmp_path, *PAIR, "--", str(tmp_path / "nothing"))
    assert (code, "the gateway cannot be started" in output) == (2, True)


@pytest.mark.slow
def test_the_environment_of_a_gateway_is_empty(tmp_path: Path) -> None:
    """But for what leads it to the upstream: no key of the user reaches it."""
    code = "import os, json; print(json.dumps(dict(os.environ))); exit(1)"
    output = _check(tmp_path, *PAIR, "--", sys.executable, "-c", code)[1]
    line = next(line for line in output.splitlines() if "MOCKLLM_UPSTREAM_URL" in line)
    found = json.loads(line)
    assert found["MOCKLLM_UPSTREAM_URL"].endswith("/v1")
    assert found["OPENAI_BASE_URL"] == found["MOCKLLM_UPSTREAM_URL"]
    assert found["OPENAI_API_KEY"] == "mock-key"
    assert "USER" not in found
    assert "HYPOTHESIS" not in str(found)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--down", "chat"], "Missing option '--up'"),
        ([*PAIR], "which gateway?"),
        ([*PAIR, "--url", "http://127.0.0.1:1"], "--url needs --upstream-port"),
        ([*PAIR, "--api", "chat", "--", "x"], "No such option"),
        ([*PAIR, "--preset", "litelm"], "did you mean 'litellm'?"),
        (["--down", "ollama", "--up", "chat", "--preset", "mlflow"], "its pairs are"),
        ([*PAIR, "--only", "cals", "--", "x"], "there is no such case"),
        ([*PAIR, "--header", "x", "--", "x"], "--header must be KEY=VALUE, such as x-virt"),
        ([*PAIR, "--header", "x: a=b", "--", "x"], "--header must be KEY=VALUE"),
        ([*PAIR, "--header", "x:a=b", "--", "x"], "--header must be KEY=VALUE"),
    ],
)
def test_wrong_use_is_said(tmp_path: Path, words: list[str], message: str) -> None:
    """In one line, before anything is started."""
    code, output = _check(tmp_path, *words)
    assert (code, message in output) == (2, True), output


def test_presets_are_listed_and_complete() -> None:
    """Each can be made over each of its pairs, and says what it needs."""
    done = CliRunner().invoke(main, ["list", "presets"])
    assert done.exit_code == 0
    for name in presets():
        assert f"{name}: " in done.output
        for pair in preset_pairs(name):
            gateway = preset_gateway(name, pair)
            assert gateway.command is not None
            assert gateway.model


FIXTURE = """
import sys


def test_my_gateway(mockllm_gateway):
    mockllm_gateway(
        down="anthropic",
        up="chat",
        command={command!r},
        only=["call", "calls"],
        rounds=1,
    )
"""


def test_the_fixture_judges_a_gateway(pytester: pytest.Pytester) -> None:
    """A right gateway passes; one with a mistake fails the test with the report."""
    bug = next(
        bug for bug in BUGS.values() if bug.pair == PAIR[1] + "-chat" and "calls" in bug.cases
    )
    pytester.makepyfile(
        test_right=FIXTURE.format(command=_gateway("translating")),
        test_wrong=FIXTURE.format(command=_gateway("translating", "--bug", bug.name)),
    )
    result = pytester.runpytest_subprocess("-p", "no:randomly")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*over anthropic-chat, level gateway*", "MISTAKES: *"])
