"""Gemini Interactions with google-adk, in the environment of the frameworks."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from mockllm.checking.conversations.judge import verify
from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.timeouts import GIVE_UP

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-frameworks" / "bin" / "python"
AGENT = Path(__file__).with_name("adk_agent.py")

SCENARIO = """
scenario: weather
match: {user: weather}
turns:
  - reply:
      - {reasoning: Let me look., signature: U0lHMQ==}
      - {tool: get_weather, id: 61nzpsv4, arguments: {city: Paris}, split: 4}
  - request: {results: {61nzpsv4: {contains: 22 degrees}}}
    reply: {text: It is warm in Paris., split: words}
"""


@pytest.mark.slow
@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_runs_its_tool(*, streamed: bool) -> None:
    """The call has its arguments, and the answer goes on after the result, by the earlier id."""
    if not any(PYTHON.parents[1].glob("lib/python3*/site-packages/google/adk")):
        pytest.skip("google-adk is not here: `make conformance-ready` installs it")
    scenarios = loads(SCENARIO)
    with ServerThread(scenarios, ServerOptions(speed=0)) as server:
        done = subprocess.run(
            [PYTHON, "-W", "ignore", AGENT, server.url, str(streamed)],
            env={**os.environ, "GOOGLE_API_KEY": "k", "GOOGLE_GENAI_USE_VERTEXAI": "0"},
            capture_output=True,
            text=True,
            timeout=GIVE_UP * 10,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        session = server.server.sessions.find("default")
        assert session is not None
        assert verify(session, {one.name: one for one in scenarios}, once=True).good
        second = json.loads(session.journal[-1].body)
    assert json.loads(done.stdout) == {
        "calls": [["get_weather", {"city": "Paris"}]],
        "text": "It is warm in Paris.",
    }
    assert second["previous_interaction_id"].startswith("v1_")
