"""`mockllm_session.agent`: a coding agent in a test, by programs that stand for one."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mockllm.core.errors import NotStartedError, UsageError
from tests.conformance.agents.stand_ins import ASKS, WAITS, write_stand_in

COUNTS = "#!/bin/sh\necho run >> $HOME/runs\nwc -l < $HOME/runs\n"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a program that stands for Claude Code first on PATH."""

    def install(script: str) -> None:
        folder = write_stand_in(tmp_path, script)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return install


def test_a_run(mockllm_session: Any, install: Any, tmp_path: Path) -> None:
    """It has output, exit code and the requests that came; the next run has only its own."""
    install(ASKS)
    mockllm_session.reply("Hello there", repeat=True)
    agent = mockllm_session.agent("claude")
    for number in (1, 2):
        run = agent.run("--model", "m", f"hello {number}", cwd=tmp_path)
        assert (run.exit_code, run.errors) == (0, "")
        words, text, has_settings, key, _ = json.loads(run.output)
        assert words[-3:] == ["--model", "m", f"hello {number}"]
        assert (text, has_settings, key) == ("Hello there", True, "mock-key")
        assert [exchange.messages[-1].text for exchange in run.journal] == [f"hello {number}"]
    assert len(mockllm_session.journal) == 2


def test_two_at_once(mockllm_session: Any, install: Any, tmp_path: Path) -> None:
    """Each agent has a HOME of its own."""
    install(ASKS)
    mockllm_session.reply("Hello there", repeat=True)
    agents = [mockllm_session.agent("claude") for _ in range(2)]
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(lambda agent: agent.run("hello", cwd=tmp_path), agents))
    assert [run.exit_code for run in runs] == [0, 0]
    assert len(mockllm_session.journal) == 2


@pytest.mark.mockllm(no_requests=True)
def test_its_home_lasts_as_long_as_the_test(
    mockllm_session: Any, install: Any, tmp_path: Path
) -> None:
    """So a second run can go on with the conversation of the first."""
    install(COUNTS)
    agent = mockllm_session.agent("claude")
    assert [agent.run("x", cwd=tmp_path).output.strip() for _ in range(2)] == ["1", "2"]
    assert mockllm_session.agent("claude").run("x", cwd=tmp_path).output.strip() == "1"


@pytest.mark.mockllm(no_requests=True)
def test_an_agent_that_takes_too_long(mockllm_session: Any, install: Any, tmp_path: Path) -> None:
    """It has an exit code of its own, and the reason."""
    install(WAITS)
    run = mockllm_session.agent("claude").run("x", cwd=tmp_path, timeout=2)
    assert (run.output, run.exit_code, run.journal) == ("waits\n", 124, ())
    assert run.errors.startswith("mockllm: claude was ended after 2 s")


@pytest.mark.mockllm(no_requests=True)
def test_one_that_is_missing(mockllm_session: Any, tmp_path: Path) -> None:
    """The error is at the line of the test, with what to install."""
    agent = mockllm_session.agent("opencode")
    with pytest.raises(NotStartedError, match="npm install opencode-ai@"):
        agent.run("x", cwd=tmp_path, env={"PATH": str(tmp_path)})
    with pytest.raises(UsageError, match="there is no agent 'cloude'; did you mean 'claude'"):
        mockllm_session.agent("cloude")


def test_homes_are_removed(run: Any, project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of the test."""
    folder = write_stand_in(project.path, COUNTS)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    temporary = project.path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    result = run(
        """
        import pytest

        @pytest.mark.mockllm(no_requests=True)
        def test_it(mockllm_session, tmp_path):
            assert mockllm_session.agent("claude").run("x", cwd=tmp_path).output.strip() == "1"
        """
    )
    result.assert_outcomes(passed=1)
    assert not list(temporary.glob("mockllm-agent-*"))
