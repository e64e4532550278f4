"""What README says works: its blocks are executed, in order, as a reader would."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mockllm import ServerThread, load, loads

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
LOOPBACK = "http://127.0.0.1:8080"


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCKS if kind == language]


def commands() -> list[str]:
    return [
        line[2:] for text in blocks("console") for line in text.splitlines() if line[:2] == "$ "
    ]


def test_links_lead_somewhere():
    """Every relative link in README and docs/ names a file that is there."""
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_scenario_loads():
    """The YAML of the ten lines is a scenario."""
    for text in blocks("yaml"):
        assert loads(text)


def test_the_python_blocks_run():
    """The SDK gets what the text says, from the scenario that the text shows."""
    first, *rest = blocks("python")
    with ServerThread(loads(blocks("yaml")[0])) as server:
        namespace: dict[str, object] = {}
        assert LOOPBACK in first
        exec(compile(first.replace(LOOPBACK, server.url), "README.md", "exec"), namespace)
        namespace["client"].close()
    for text in rest:
        exec(compile(text, "README.md", "exec"), {})


@pytest.mark.slow
def test_the_commands_run(tmp_path):
    """Each command does what it says, in a folder with nothing in it."""
    told = commands()
    assert told[0] == "pip install mockllm-harness"
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    init = subprocess.run(
        ["mockllm", "init", "scenarios"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert init.returncode == 0, init.stderr
    assert load([tmp_path / "scenarios"])
    for command in told[1:]:
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
            process.communicate(timeout=30)
            continue
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout
