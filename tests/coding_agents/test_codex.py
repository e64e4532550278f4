"""Codex over a WebSocket: a warm-up, a call of its shell, and the answer, without falling back."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from mockllm import ServerOptions, ServerThread, loads

CODEX = Path(__file__).parent / "node_modules" / ".bin" / "codex"

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(not CODEX.exists(), reason="Codex is not installed: run `make agents`"),
]

SCENARIO = """
scenario: shell
match: {user: {contains: Look around}}
turns:
  - reply: {tool: exec_command, id: call_1, arguments: {cmd: echo seen by codex}, split: 5}
  - request: {results: {call_1: {contains: seen by codex}}}
    reply: {text: All is quiet., split: words}
"""
CONFIG = """
model = "gpt-5.2"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
wire_api = "responses"
supports_websockets = true
env_key = "MOCK_KEY"
"""


def test_two_turns_without_falling_back(tmp_path):
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    with ServerThread(loads(SCENARIO), ServerOptions()) as server:
        (home / "config.toml").write_text(CONFIG.format(url=server.url))
        environment = {"CODEX_HOME": str(home), "MOCK_KEY": "any", "NO_PROXY": "127.0.0.1"}
        done = subprocess.run(
            [
                CODEX,
                "exec",
                "--skip-git-repo-check",
                "--sandbox",
                "danger-full-access",
                "Look around",
            ],
            cwd=work,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "All is quiet."
        entries = server.exchanges("default")
    assert [(entry.scenario, entry.turn, entry.outcome) for entry in entries] == [
        (None, None, "played"),  # the warm-up
        ("shell", 0, "played"),
        ("shell", 1, "played"),
    ]
    assert {entry.headers["upgrade"] for entry in entries} == {"websocket"}
    # Only what is new: Codex falls back to the whole history where that is not remembered.
    assert json.loads(entries[2].body)["previous_response_id"]
