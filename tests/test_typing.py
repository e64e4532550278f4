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


PLUGIN = """
from typing import assert_type

import pytest
from mockllm_pytest import MockCase, MockService, MockSession, error, parallel, text, tool

from mockllm import Scenario
from mockllm.checking import Outcome


@pytest.mark.mockllm("weather", match=False)
def test_session(mockllm_session: MockSession) -> None:
    mockllm_session.reply("It rains.", text("Much.", split=3), finish="length", repeat=True)
    mockllm_session.reply(parallel(tool("f", {"a": 1}), tool("g")), match={"user": "f"})
    mockllm_session.reply(error("Broken.", code="oops"), usage={"output": 3})
    mockllm_session.reply(http={"status": 503}, attempts=[{"http": 429}])
    assert_type(mockllm_session.use("weather", quirks="sse-crlf"), tuple[Scenario, ...])
    assert_type(mockllm_session.add({"scenario": "a", "turns": []}), tuple[Scenario, ...])
    assert_type(mockllm_session.base_urls["chat"], str)
    assert_type(mockllm_session.openai_url, str)
    assert_type(mockllm_session.session, str)
    assert_type(mockllm_session.journal[0].status, int)
    mockllm_session.quirks = ("sse-crlf",)
    mockllm_session.verify(extra_requests=True, violations=["multi-hop"])
    mockllm_session.reply(5)  # type: ignore[arg-type]
    mockllm_session.reply("a", finnish="stop")  # type: ignore[call-arg]
    mockllm_session.use("weather", macth=False)  # type: ignore[call-arg]
    mockllm_session.openai_ur  # type: ignore[attr-defined]
    tool({"a": 1})  # type: ignore[arg-type]


def test_others(mockllm_server: MockService, mockllm_case: MockCase) -> None:
    assert_type(mockllm_server.url, str)
    assert_type(mockllm_case.expected, Outcome)
"""


def example() -> str:
    """The example of docs/pytest.md."""
    return (ROOT / "docs" / "pytest.md").read_text().split("```python\n")[1].split("```")[0]


@pytest.mark.slow
def test_programs_that_use_the_public_names(tmp_path):
    """mypy --strict accepts right uses and reports wrong ones."""
    texts = {"of_mockllm": PROGRAM, "of_the_plugin": PLUGIN, "of_the_page": example()}
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    programs = [tmp_path / f"{name}.py" for name in texts]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", *programs],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
