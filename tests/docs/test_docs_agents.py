"""The project of docs/test-coding-agents.md does what the page shows: without an agent its files
are read, and with Claude Code its commands print what the page says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from measurements.fault_page import with_table
from measurements.measure_agents import AGENTS, FAULTS, INSTALLED, PAGE, measured, tables
from mockllm import ServerOptions, ServerThread
from mockllm.checking.rules import table
from mockllm.play.replay.loading import load
from tests.docs.pages import text_of
from tests.docs.running import run, write
from tests.tracked_files import ROOT


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The files of the page, and the package for JavaScript."""
    write(tmp_path, text_of("test-coding-agents"))
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "mockllm-harness").symlink_to(ROOT / "packages" / "js")
    return tmp_path


def test_the_scenarios_can_be_loaded(project: Path) -> None:
    """Together, too: none competes with another, and the loader warns of nothing."""
    warnings: list[object] = []
    assert len(load((project / "scenarios",), warnings.append)) == 6
    assert not warnings


def test_the_mcp_server_answers(project: Path) -> None:
    """It says what it offers, and how many bolts there are."""
    requests = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "lookup", "arguments": {"item": "x"}}},
    ]
    done = subprocess.run(
        [sys.executable, "stock.py"],
        input="".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in requests),
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert first["result"]["protocolVersion"] == "2025-06-18"
    assert second["result"]["tools"][0]["name"] == "lookup"
    assert third["result"]["content"][0]["text"] == "7 of x"


def test_the_job_installs_what_is_tested() -> None:
    """The version in the job for CI is that of the table of agents."""
    package = table("agents.yaml", "mockllm.conformance.agents")["claude"]["package"]
    assert f"npm install --no-save {package}\n" in PAGE.read_text("utf-8")


def test_the_table_is_up_to_date() -> None:
    """`python -m measurements.measure_agents page` writes it; each agent has each fault."""
    text = PAGE.read_text("utf-8")
    assert with_table(text, "\n".join(tables(measured()))) == text
    assert {name: [*one["faults"]] for name, one in measured().items()} == {
        name: [*FAULTS] for name in AGENTS
    }


def test_what_the_page_says_of_all_agents_holds() -> None:
    """No half call was executed: where the file has a line, the call came whole."""
    for name, agent in measured().items():
        for fault, outcome in agent["faults"].items():
            assert not outcome["ran"] or outcome["done"], (name, fault)
            if fault in ("cut-once", "429-once") and outcome["done"]:
                assert outcome["ran"] == 1, (name, fault)


@pytest.mark.heavy
@pytest.mark.skipif(
    not (INSTALLED / "claude").exists(), reason="Claude Code is not installed: run `make agents`"
)
def test_the_commands(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each prints the lines of the page, in their order. The real service is a server here."""
    monkeypatch.setenv("PATH", f"{INSTALLED}{os.pathsep}{os.environ['PATH']}")
    with ServerThread(load((project / "scenarios",)), ServerOptions()) as service:
        for console in write(project, text_of("test-coding-agents")):
            run(project, console.replace("https://api.anthropic.com", service.url))
