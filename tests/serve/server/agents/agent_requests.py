"""Requests of coding agents, as short as they can be with all that tells them."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

CLAUDE = {
    "user-agent": "claude-cli/2.1.332 (external, sdk-cli)",
    "anthropic-version": "2023-06-01",
    "x-api-key": "any",
    "x-claude-code-session-id": "3d24d5df-83fa-4813-8fb2-bba37fac6dc4",
}
CODEX = {
    "user-agent": "codex_exec/0.171.0 (Debian 12.0.0; x86_64) xterm (codex_exec; 0.171.0)",
    "thread-id": "01a2266c-4078-79e1-82e3-bdaba71da79a",
}
GEMINI = {
    "user-agent": "GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)",
    "x-goog-api-key": "any",
}
OPENCODE = {
    "user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14",
    "x-session-id": "ses_1",
}
GEMINI_PATH = "/v1beta/models/gemini-2.5-pro:generateContent"


def of_claude(*messages: Json, tools: tuple[str, ...] = ("Bash",), **more: Any) -> Json:
    offered = [{"name": name, "input_schema": {"type": "object"}} for name in tools]
    body = {"model": "claude-opus-5-5", "max_tokens": 128000, "messages": list(messages), **more}
    return body | ({"tools": offered} if offered else {})


def of_codex(*items: Json | str, tools: tuple[str, ...] = ("exec_command",)) -> Json:
    written = [user_item(item) if isinstance(item, str) else item for item in items]
    offered = [{"type": "function", "name": name, "parameters": {}} for name in tools]
    return {"model": "gpt-5.1-codex", "input": written, "store": False, "tools": offered}


def of_opencode(system: str, *messages: Json | str, tools: tuple[str, ...] = ("bash",)) -> Json:
    written = [{"role": "user", "content": m} if isinstance(m, str) else m for m in messages]
    offered = [{"type": "function", "function": {"name": name}} for name in tools]
    body: Json = {"model": "m", "messages": [{"role": "system", "content": system}, *written]}
    return body | ({"tools": offered} if offered else {})


def of_gemini(*contents: Json, system: str = "You are Gemini CLI.", tools: bool = True) -> Json:
    declared = [{"functionDeclarations": [{"name": "run_shell_command"}]}] if tools else []
    return {
        "contents": list(contents),
        "systemInstruction": {"parts": [{"text": system}]},
        "tools": declared,
    }


def user_item(text: str) -> Json:
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content}


def user(*texts: str) -> Json:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def said(role: str, text: str) -> Json:
    return {"role": role, "parts": [{"text": text}]}


COMPACT = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary."
SUMMARIZE = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to summarize."
SNAPSHOT = (
    "You are a specialized system component responsible for distilling chat history into a "
    "structured XML <state_snapshot>."
)
TITLES = "You are a title generator. You output ONLY a thread title. Nothing else."
SUMMARIES = "You are a context summarization agent. You are given a conversation."
