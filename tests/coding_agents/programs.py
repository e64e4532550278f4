"""The agents that `make agents` installs, each as its users run it: with a HOME of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from mockllm import ServerThread
from mockllm.play.replay.sessions.exchange import Exchange

PROGRAMS = Path(__file__).parent / "node_modules" / ".bin"
NAMES = {"claude": "claude", "codex": "codex", "gemini": "gemini", "opencode": "opencode"}
NAMES["codex by its default model"] = "codex"


def is_installed(agent: str) -> bool:
    return (PROGRAMS / NAMES[agent]).exists()


def run(
    agent: str,
    server: ServerThread,
    folder: Path,
    *arguments: str,
    prompt: str = "Look around",
    **variables: str,
) -> tuple[subprocess.CompletedProcess[str], list[Exchange]]:
    """What an agent printed, and the journal.

    Args:
        folder: its HOME is `home` in it, and it works in `work`.
        arguments: further ones.
        variables: of its environment.
    """
    home, work = folder / "home", folder / "work"
    home.mkdir(exist_ok=True)
    work.mkdir(exist_ok=True)
    command, environment = _COMMANDS[NAMES[agent]](server.url, home, agent)
    known = {name: os.environ[name] for name in ("LANG", "TERM", "TZ") if name in os.environ}
    place = {"HOME": str(home), "PATH": f"{PROGRAMS}:{os.environ['PATH']}", "NO_PROXY": "127.0.0.1"}
    done = subprocess.run(
        [PROGRAMS / command[0], *command[1:], *arguments, prompt],
        cwd=work,
        env={**known, **place, **environment, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done, list(server.exchanges("default"))


Command = tuple[Sequence[str], Mapping[str, str]]


def _claude(url: str, home: Path, agent: str) -> Command:
    environment = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "any", "IS_SANDBOX": "1"}
    return ["claude", "--dangerously-skip-permissions", "-p"], environment


def _codex(url: str, home: Path, agent: str) -> Command:
    provider = f'{{name="mock",base_url="{url}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}}'
    options = ["-m", "gpt-5.1-codex", "-c", "model_provider=mock"]
    options += ["-c", f"model_providers.mock={provider}"]
    if agent != "codex":
        options = ["-c", f'openai_base_url="{url}/v1"']
    flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    keys = dict.fromkeys(("OPENAI_API_KEY", "CODEX_API_KEY"), "any")
    return ["codex", "exec", *flags, *options], keys


def _gemini(url: str, home: Path, agent: str) -> Command:
    (home / ".gemini").mkdir(exist_ok=True)
    security = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    (home / ".gemini" / "settings.json").write_text(json.dumps({"security": security}))
    environment = {"GEMINI_API_KEY": "any", "GOOGLE_GEMINI_BASE_URL": url}
    environment["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
    return ["gemini", "-y", "-m", "gemini-2.5-pro", "-p"], environment


def _opencode(url: str, home: Path, agent: str) -> Command:
    limit = {"context": 100_000, "output": 8_000}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "any"},
        "models": {"m": {"name": "m", "limit": limit}},
    }
    settings = {"provider": {"mock": provider}, "model": "mock/m", "small_model": "mock/m"}
    settings |= {"autoupdate": False, "permission": "allow"}
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "opencode.json").write_text(json.dumps(settings))
    return ["opencode", "run"], {}


_COMMANDS = {"claude": _claude, "codex": _codex, "gemini": _gemini, "opencode": _opencode}
