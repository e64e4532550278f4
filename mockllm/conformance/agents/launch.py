"""The process of a coding agent: its program, a HOME of its own, and its end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from mockllm.checking.rules import table
from mockllm.core.errors import NotStartedError, UsageError
from mockllm.core.text import did_you_mean

TIMED_OUT = 124
"""The exit code of an agent that took too long, as of `timeout` in a shell."""

_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL: agents write their session to the end."""

_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has none

_OF_THE_USER = (
    "ANTHROPIC_", "CLAUDE", "CODEX_", "GEMINI_", "GOOGLE_", "OPENAI_", "OPENCODE", "XDG_",
)  # fmt: skip
"""The beginnings of variables that would lead an agent to the user's settings, keys or services."""


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """The words of an agent's command, and its whole environment."""

    words: tuple[str, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AgentOutput:
    """An agent that has ended: what it printed, and its exit code, as a shell gives it, or 124."""

    output: str
    errors: str
    exit_code: int


def check_agent(name: str) -> None:
    """Refuses a name that `agents.yaml` does not have."""
    known = table("agents.yaml", __package__)
    if name not in known:
        hint = did_you_mean(name, known, f"there are: {', '.join(known)}")
        raise UsageError(f"there is no agent {name!r}; {hint}")


def advise(program: str) -> str:
    """A line about an agent that the user started, and that sent no request; "" for any other
    program."""
    for name, agent in table("agents.yaml", __package__).items():
        if agent["words"][0] == Path(program).name:
            by_hand = f"; or: {agent['by_hand']}" if "by_hand" in agent else ""
            return f"--agent {name} leads it here, with settings of its own{by_hand}"
    return ""


def prepare(
    name: str,
    arguments: Sequence[str],
    home: Path,
    led: Mapping[str, str],
    environment: Mapping[str, str],
) -> AgentCommand:
    """An agent with a HOME of its own, in which its files are written.

    Args:
        arguments: of the user, as for the agent's command that asks nobody.
        led: the variables that lead to the server: `MOCKLLM_URL`, base URLs and keys.
        environment: of the user; settings, keys and services of the user are left out.

    Raises:
        UsageError: there is no such agent.
        NotStartedError: it is not installed.
    """
    check_agent(name)
    agent = table("agents.yaml", __package__)[name]
    program = _find(agent, environment)
    for path, text in agent["files"].items():
        file = home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("{url}", led["MOCKLLM_URL"]), encoding="utf-8")
    own = {key: value for key, value in environment.items() if not key.startswith(_OF_THE_USER)} | {
        **led,
        **agent.get("env", {}),
        "HOME": str(home),
        # Its own `node`, where it is installed beside it: scripts start with `/usr/bin/env node`.
        "PATH": os.pathsep.join([str(program.parent), environment.get("PATH", os.defpath)]),
    }
    keys = [own.pop(key) for key in agent.get("key", ()) if key in own]
    own |= dict(zip(agent.get("key", ()), keys[:1], strict=False))
    return AgentCommand((str(program), *agent["words"][1:], *arguments), own)


def _find(agent: Mapping[str, Any], environment: Mapping[str, str]) -> Path:
    """A program that npm installed in this folder or one above it, as `npx` does, else on PATH."""
    here = Path.cwd()
    folders = [str(folder / "node_modules" / ".bin") for folder in (here, *here.parents)]
    path = os.pathsep.join([*folders, environment.get("PATH", os.defpath)])
    found = shutil.which(agent["words"][0], path=path)
    if found is None:
        raise NotStartedError(
            f"{agent['title']} is not installed: `{agent['words'][0]}` is neither in node_modules "
            f"here or in a folder above, nor on PATH. Install it: npm install {agent['package']}",
            127,
        )
    return Path(found)


def run_agent(command: AgentCommand, cwd: Path | None, limit: float) -> AgentOutput:
    """Runs an agent to its end.

    Args:
        cwd: where it works; None is the current folder.
        limit: the seconds after which it is ended, with all that it has started.
    """
    # Files, since a process that it leaves behind would hold a pipe open.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = start(command, cwd, output, errors)
        code = wait(process, limit)
        said = _text(errors)
        if code is None:
            return AgentOutput(_text(output), said + describe_end(command, limit), TIMED_OUT)
        return AgentOutput(_text(output), said, code)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def start(
    command: AgentCommand,
    cwd: Path | None = None,
    output: IO[bytes] | None = None,
    errors: IO[bytes] | None = None,
) -> subprocess.Popen[bytes]:
    """Starts an agent as the first process of a group, without standard input: some would wait
    there for more of the prompt. Its output goes to that of this process if there is no file."""
    return subprocess.Popen(  # noqa: S603  the program that the user names
        command.words,
        cwd=cwd,
        # opencode works in $PWD, which is that of whoever changed the folder without a shell.
        env={**command.environment, "PWD": str((cwd or Path.cwd()).absolute())},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        start_new_session=True,
    )


def wait(process: subprocess.Popen[bytes], limit: float) -> int | None:
    """The exit code of an agent at its end, as a shell gives it; None where it took too long. Its
    group is ended with it, and where it took too long all that it had started.

    Args:
        limit: in seconds.
    """
    try:
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        apart = _descendants(process.pid)  # agents run commands in groups of their own
        send(process, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
        for pid in apart:
            with suppress(ProcessLookupError):
                os.kill(pid, _KILL)
        return None
    finally:
        send(process, _KILL)
        process.wait()
    return code if code >= 0 else 128 - code  # as shells report what a signal ended


def _descendants(pid: int) -> list[int]:
    """The processes that a process has started, and those that they have; [] without `/proc`."""
    children = defaultdict(list)
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            parent = status.read_text("utf-8", "replace").rpartition(")")[2].split()[1]
            children[int(parent)].append(int(status.parent.name))
    found = [pid]
    for one in found:
        found += children[one]
    return found[1:]


def describe_end(command: AgentCommand, limit: float) -> str:
    """The line about an agent that took too long."""
    name = Path(command.words[0]).name
    return (
        f"mockllm: {name} was ended after {limit:g} s, with all that it had started; a longer "
        "timeout gives it more time\n"
    )


def send(process: subprocess.Popen[bytes], number: int) -> None:
    """Sends a signal to an agent and its group."""
    if sys.platform == "win32":
        process.kill()
        return
    # PermissionError: macOS says so of a group of which only zombies are left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
