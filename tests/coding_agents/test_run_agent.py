"""The real agents, started by `mockllm run --agent`: the tool of a scenario runs, two at once, and
one that hangs is ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mockllm.checking.rules import table

INSTALLED = Path(__file__).parent / "node_modules" / ".bin"
# The API that each speaks, its tool for commands, and the arguments of a call.
AGENTS = {
    "claude": ("anthropic", "Bash", "{command: COMMAND, description: d}"),
    "codex": ("responses", "exec_command", "{cmd: COMMAND, yield_time_ms: 99000}"),
    "gemini": ("gemini", "run_shell_command", "{command: COMMAND}"),
    "opencode": ("chat", "bash", "{command: COMMAND, description: d}"),
}
SCENARIO = """
scenario: write
apis: [API]
match: {user: XWRITE, tools: [TOOL]} # the first request of opencode, for a title, has none
turns:
  - reply: {tool: TOOL, id: call_1, arguments: ARGUMENTS}
  - reply: {text: All done.}
---
scenario: title
match: {user: XWRITE, system: title generator}
turns:
  - reply: {text: A title}
"""

pytestmark = pytest.mark.heavy


@pytest.fixture(params=AGENTS)
def agent(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    program = table("agents.yaml", "mockllm.conformance.agents")[name]["words"][0]
    if not (INSTALLED / program).exists():
        pytest.skip(f"{program} is not installed: run `make agents`")
    return name


def run(folder: Path, name: str, command: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs an agent in `work` of a folder, with a scenario in which it runs a command."""
    api, tool, arguments = AGENTS[name]
    text = SCENARIO.replace("API", api).replace("TOOL", tool).replace("ARGUMENTS", arguments)
    (folder / "s.yaml").write_text(text.replace("COMMAND", command))
    (folder / "work").mkdir()
    path = f"{INSTALLED}{os.pathsep}{os.environ['PATH']}"
    words = ["run", str(folder / "s.yaml"), "--agent", name, *options, "--", "XWRITE the file"]
    return subprocess.run(
        [sys.executable, "-m", "mockllm", *words],
        cwd=folder / "work",
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )


def played(done: subprocess.CompletedProcess[str]) -> Any:
    """The first line of the verdict."""
    return next(line for line in done.stderr.splitlines() if line.startswith("mockllm: "))


def test_the_tool_runs(agent: str, tmp_path: Path) -> None:
    """The file is there, and the answer is printed; nothing else is in the folder."""
    done = run(tmp_path, agent, "echo hi > made.txt")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All done." in done.stdout
    count = 3 if agent == "opencode" else 2  # with the title
    assert played(done) == f"mockllm: {count} requests: {count} played"
    assert {path.name: path.read_text() for path in (tmp_path / "work").iterdir()} == {
        "made.txt": "hi\n"
    }


def test_two_at_once(agent: str, tmp_path: Path) -> None:
    """Each has a HOME of its own, and neither waits for the other's."""
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(lambda folder: run(folder, agent, "echo hi > made.txt"), folders))
    assert [done.returncode for done in runs] == [0, 0], [done.stderr for done in runs]
    assert all((folder / "work" / "made.txt").exists() for folder in folders)


def test_an_agent_that_hangs(agent: str, tmp_path: Path) -> None:
    """It is ended with the command that it runs, and the exit code says so."""
    script = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(3600)"
    (tmp_path / "hang.py").write_text(script)
    command = f"{sys.executable} {tmp_path / 'hang.py'}"
    before = time.monotonic()
    done = run(tmp_path, agent, command, "--timeout", "25s")
    assert done.returncode == 124, done.stdout + done.stderr
    assert time.monotonic() - before < 120
    assert "was ended after 25 s, with all that it had started" in played(done)
    pid = (tmp_path / "work" / "pid").read_text()
    status = Path(f"/proc/{pid}/stat")
    assert not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z"
