"""The public names have the types that their users rely on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# `--strict` reports an ignored error that is none, so each `type: ignore` proves an error.
PROGRAM = """
from pathlib import Path
from typing import assert_type

import mockllm
from mockllm import (
    CollisionWarning,
    MockLLMError,
    MockServer,
    Scenario,
    ScenarioError,
    ServerOptions,
    ServerThread,
    dump,
    load,
    loads,
)

assert_type(load("one.yaml"), tuple[Scenario, ...])
assert_type(load(Path("one.yaml")), tuple[Scenario, ...])
assert_type(load(["one.yaml", Path("two.yaml")]), tuple[Scenario, ...])
load(5)  # type: ignore[arg-type]
load(b"one.yaml")  # type: ignore[arg-type]

scenarios = loads("{scenario: hello, match: any, turns: [{reply: {text: Hello!}}]}", name="hello")
assert_type(scenarios, tuple[Scenario, ...])
assert_type(scenarios[0].name, str)
assert_type(dump(scenarios[0]), str)
dump("hello")  # type: ignore[arg-type]

with ServerThread(scenarios, ServerOptions(speed=0.0)) as thread:
    assert_type(thread, ServerThread)
    assert_type(thread.url, str)
    assert_type(thread.server, MockServer)
ServerOptions(sped=0.0)  # type: ignore[call-arg]


try:
    load("one.yaml")
except ScenarioError as error:
    parent: MockLLMError = error
    assert_type(error.problems[0].line, int)

assert_type(mockllm.__version__, str)
assert_type(mockllm.__distribution__, str)
category: type[UserWarning] = CollisionWarning
"""


@pytest.mark.slow
def test_a_program_that_uses_the_public_names(tmp_path):
    """mypy --strict accepts right uses and reports wrong ones."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
