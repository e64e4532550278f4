"""The README is correct: its blocks are executed, in order, as a reader would."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mockllm import ServerThread, load, loads
from mockllm.checking import INVARIANTS
from mockllm.play.quirks import QUIRKS
from tests.timeouts import GIVE_UP

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCKS if kind == language]


def commands() -> list[str]:
    return [
        line[2:] for text in blocks("console") for line in text.splitlines() if line[:2] == "$ "
    ]


def test_links_lead_somewhere():
    """Every relative link in README and docs/ names a file that is there."""
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_scenario_loads():
    """The YAML of the ten lines is a scenario."""
    for text in blocks("yaml"):
        assert loads(text)


def test_the_first_screen():
    """One sentence, the picture and the ten lines come first, in this order."""
    head, _, _ = README.partition("\n## ")
    sentence, picture, code = head.index("mockllm is a"), head.index("demo.svg"), head.index("```")
    assert sentence < picture < code
    lines = [line for line in blocks("python")[0].splitlines() if line and line[0] != "#"]
    assert len(lines) <= 10
    assert len(README.splitlines()) <= 90


def test_the_numbers():
    """README counts the quirks and the invariants as they are."""
    quirks = re.search(r"(\d+) \[quirks", README)
    invariants = re.search(r"which of (\d+) invariants", README)
    assert quirks is not None
    assert invariants is not None
    assert int(quirks[1]) == len(QUIRKS)
    assert int(invariants[1]) == len(INVARIANTS)


@pytest.mark.slow
def test_the_ten_lines_pass(tmp_path):
    """The first block is a test file that passes as it stands."""
    (tmp_path / "test_weather.py").write_text(blocks("python")[0])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "mockllm_pytest.plugin", tmp_path],
        cwd=tmp_path,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_the_client_gets_the_scenario(capsys, monkeypatch):
    """The SDK gets the tool call and the text of the scenario that the text shows."""
    _, client = blocks("python")
    namespace: dict[str, object] = {}
    with ServerThread(loads(blocks("yaml")[0])) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "any")
        exec(compile(client, "README.md", "exec"), namespace)
        namespace["client"].close()
    assert capsys.readouterr().out == "Take an umbrella."


@pytest.mark.slow
def test_the_commands_run(tmp_path):
    """Each command succeeds in an empty folder and prints something."""
    install = "pip install mockllm-harness"
    assert install in commands()
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    init = subprocess.run(
        ["mockllm", "init", "scenarios"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert init.returncode == 0, init.stderr
    (tmp_path / "scenarios/umbrella.yaml").write_text(blocks("yaml")[0])
    assert len(load([tmp_path / "scenarios"])) == 2
    (tmp_path / "agent.py").write_text(blocks("python")[1])
    for command in commands():
        if command == install:
            continue
        if command.startswith("mockllm serve"):
            process = subprocess.Popen(
                [*shlex.split(command), "--port", "0"],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert process.stdout is not None
            assert process.stdout.readline().startswith("mockllm listening on http://127.0.0.1:")
            process.terminate()
            process.communicate(timeout=GIVE_UP)
            continue
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        if " run " in command:
            assert "2 requests: 2 played" in done.stderr
        assert done.stdout
        assert "__distribution__" not in command or done.stdout == "mockllm-harness\n"
