"""Requests of coding agents on several machines, in the shapes that were seen; and recordings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mockllm.core.http import TimedBytes
from mockllm.play.replay.call import Answered, ApiCall
from mockllm.play.replay.loading import load, loads
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.play.tapes.captured import Captured, detect_api
from mockllm.record.importers.batch import import_files
from mockllm.record.recording.drafting.matches import match_rule
from mockllm.record.recording.store.folder import Folder
from mockllm.record.redaction.redact import Redactor
from tests.record.importers.test_batch import cassette

Json = dict[str, Any]
PROMPT = "write hello.txt and read it"


@dataclass(frozen=True)
class Machine:
    """Where an agent runs."""

    cwd: str = "/work/shop"
    home: str = "/home/ada"
    day: str = "2026-11-29"
    long_day: str = "Sunday, November 29, 2026"
    short_day: str = "Sun Nov 29 2026"
    commit: str = "6dc9d9e First commit"
    listing: str = "└───a.txt"


ADA = Machine()
BOB = Machine(
    "/builds/42/other.shop",
    "/root",
    "2027-02-01",
    "Monday, February 1, 2027",
    "Mon Feb 01 2027",
    "77aa01b Second commit",
    "├───a.txt\n└───hello.txt",
)

USER_AGENTS = {
    "claude": "claude-cli/2.1.332 (external, sdk-cli)",
    "codex": "codex_exec/0.171.0 (Debian 12.0.0; x86_64) xterm (codex_exec; 0.171.0)",
    "gemini": "GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)",
    "opencode": "opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14",
}
URLS = {
    "claude": "https://api.anthropic.com/v1/messages?beta=true",
    "codex": "https://api.openai.com/v1/responses",
    "gemini": "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro"
    ":streamGenerateContent?alt=sse",
    "opencode": "https://api.openai.com/v1/chat/completions",
}


def body_of(agent: str, at: Machine, *history: Json, prompt: str = PROMPT) -> Json:
    """The body of a request; `history` in the form of its API."""
    return _BODIES[agent](at, list(history), prompt)


def _claude(at: Machine, history: list[Json], prompt: str) -> Json:
    git = (
        "<system-reminder>\nAs you answer the user's questions, you can use the following context:"
        f"\n# gitStatus\nCurrent branch: master\n\nGit user: Ada Lovelace\n\nStatus:\n(clean)\n\n"
        f"Recent commits:\n{at.commit}\n\nClaude Code attached this context.\n</system-reminder>"
    )
    attribution = (
        "<system-reminder>\nCo-Authored-By: Claude <noreply@anthropic.com>\n</system-reminder>\n"
    )
    where = f"# Environment\n - Primary working directory: {at.cwd}\n - Platform: linux\n"
    folder = at.cwd.replace("/", "-").replace(".", "-")
    memory = f"a persistent file-based memory at `{at.home}/.claude/projects/{folder}/memory/`."
    return {
        "model": "claude-opus-5-5",
        "max_tokens": 32000,
        "stream": True,
        "system": [
            _text("x-anthropic-billing-header: cc_version=2.1.332.42f; cc_entrypoint=sdk-cli;"),
            _text(f"You have {memory}"),
        ],
        "messages": [
            {"role": "user", "content": [_text(git), _text(attribution), _text(prompt)]},
            {"role": "system", "content": f"{where}Today's date is {at.day}."},
            *history,
        ],
        "tools": [{"name": "Write", "input_schema": {"type": "object"}}],
    }


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _codex(at: Machine, history: list[Json], prompt: str) -> Json:
    where = (
        f"<environment_context>\n  <cwd>{at.cwd}</cwd>\n  <shell>bash</shell>\n"
        f"  <current_date>{at.day}</current_date>\n</environment_context>"
    )
    metadata = json.dumps({"turn_started_at_unix_ms": 1795941035068 + len(at.cwd)})
    skills = f"### Skill roots\n- `r0` = `{at.home}/.codex/skills/.system`\n"
    return {
        "model": "gpt-6",
        "stream": True,
        "store": False,
        "instructions": "You are a coding agent running in the Codex CLI, a terminal-based",
        "input": [
            _item("developer", skills),
            _item("user", where),
            _item("user", prompt),
            *history,
        ],
        "tools": [{"type": "function", "name": "exec_command", "parameters": {"type": "object"}}],
        "client_metadata": {"x-codex-turn-metadata": metadata},
    }


def _item(role: str, text: str) -> Json:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def _gemini(at: Machine, history: list[Json], prompt: str) -> Json:
    context = (
        "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\n"
        f"Today's date is {at.long_day} (formatted according to the user's locale).\n"
        f"The project's temporary directory is: {at.home}/.gemini/tmp/{Path(at.cwd).name}\n"
        f"- **Workspace Directories:**\n  - {at.cwd}\n- **Directory Structure:**\n\n"
        f"{at.cwd}/\n{at.listing}\n</session_context>"
    )
    parts = [{"text": context}, {"text": prompt}]
    return {
        "contents": [{"role": "user", "parts": parts}, *history],
        "systemInstruction": {"parts": [{"text": "You are a non-interactive CLI agent."}]},
        "tools": [{"functionDeclarations": [{"name": "write_file", "description": "w"}]}],
    }


def _opencode(at: Machine, history: list[Json], prompt: str) -> Json:
    system = (
        "You are opencode, an interactive CLI tool that helps users.\n<env>\n"
        f"  Working directory: {at.cwd}\n  Workspace root folder: {at.cwd}\n"
        f"  Is directory a git repo: yes\n  Today's date: {at.short_day}\n</env>"
    )
    tool = {"name": "write", "parameters": {"type": "object"}}
    return {
        "model": "m-large",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": f'"{prompt}"'},
            *history,
        ],
        "tools": [{"type": "function", "function": tool}],
    }


_BODIES = {"claude": _claude, "codex": _codex, "gemini": _gemini, "opencode": _opencode}
AGENTS = tuple(_BODIES)


def title_of(prompt: str = PROMPT) -> Json:
    """The body of opencode's request for a title."""
    return {
        "model": "m-large",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": "You are a title generator. You output ONLY a title."},
            {"role": "user", "content": "Generate a title for this conversation:\n"},
            {"role": "user", "content": f'"{prompt}"'},
        ],
    }


def exchange(agent: str, body: Json, reply: str) -> Captured:
    """A request and the answer of its service, whose reply is written as YAML."""
    headers = (("content-type", "application/json"), ("user-agent", USER_AGENTS[agent]))
    asked = Captured("POST", URLS[agent], headers, json.dumps(body).encode(), 200, (), ())
    match = "{not: {tools: [none]}}"  # names titles, too
    made = Player(loads(f"scenario: it\nmatch: {match}\nturns:\n- reply: {reply}"), strict=False)
    answer = ask(made, agent, body_of(agent, ADA)).answer
    chunks = tuple(TimedBytes(1000 * n, data) for n, data in enumerate(answer.data))
    kept = tuple(pair for pair in answer.headers if pair[0] == "content-type")
    return Captured(
        "POST", URLS[agent], headers, asked.request_body, 200, kept, chunks, source="test"
    )


def ask(player: Player, agent: str, body: Json, session: Session | None = None) -> Answered:
    """The answer of a player to a request of an agent."""
    headers = {"user-agent": USER_AGENTS[agent]}
    data = json.dumps(body).encode()
    found = detect_api(Captured("POST", URLS[agent], (), data, 200, (), ()))
    assert found.protocol is not None
    session = session or Session("test")
    return player.play(ApiCall(found.protocol, found.target, headers, data, session))


def record(tmp_path: Path, *exchanges: Captured, redactor: Redactor | None = None) -> Path:
    """The folder with the scenarios of some exchanges, all of which are found again."""
    file = cassette(tmp_path / "cassettes" / "it.yaml", *exchanges)
    folder = tmp_path / "scenarios"
    rule = match_rule(auxiliary=True)
    results = import_files([file], Folder(folder), redactor=redactor, match=rule)
    lines = [one.line for one in results]
    assert not [line for line in lines if line.outcome == "skipped" or line.not_found], lines
    return folder


def play(folder: Path) -> Player:
    """A player of a folder's scenarios."""
    return Player(load(folder))
