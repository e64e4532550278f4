"""What a dump does not say: which API its bodies are of, and a request where there is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from mockllm.errors import StreamFormatError
from mockllm.framing.sse import decode

__all__ = ["api_of", "made_up", "model_of", "url_of"]

_Json = dict[str, Any]

_MOST_LOOKED_AT = 16


def api_of(request: _Json | None, body: bytes) -> str | None:
    """The API whose shapes a request and the answer to it have; None where neither tells."""
    told = request or {}
    if {"threadId", "runId"} <= told.keys():
        return "agui"
    if "contents" in told:
        return "gemini"
    by_answer = next((api for value in _values(body) if (api := _answered(value))), None)
    if by_answer is not None:
        return by_answer
    if "input" in told:
        return "responses"
    return "chat" if "messages" in told else None


def _values(body: bytes) -> Iterator[_Json]:
    """The JSON objects that an answer begins with: its only one, or those of its first events."""
    try:
        texts = [frame.data or "" for frame in decode(body)[:_MOST_LOOKED_AT]]
    except StreamFormatError:
        texts = []
    for text in texts or [body.decode("utf-8", "replace")]:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _answered(value: _Json) -> str | None:
    kind = value.get("type")
    match value:
        case {"choices": _}:
            return "chat"
        case {"candidates": _} | {"promptFeedback": _}:
            return "gemini"
        case {"object": "response"}:
            return "responses"
    if not isinstance(kind, str):
        return None
    if kind.startswith("response."):
        return "responses"
    if kind in ("message_start", "message"):
        return "anthropic"
    return "agui" if kind in ("RUN_STARTED", "RUN_ERROR") else None


def model_of(request: _Json | None, body: bytes) -> str:
    """The model that was asked for, or that answered; "" where nothing names it."""
    for value in (request or {}, *_values(body)):
        for place in (value, value.get("response"), value.get("message")):
            if isinstance(place, dict):
                named = place.get("model") or place.get("modelVersion")
                if isinstance(named, str):
                    return named.removeprefix("models/")
    return ""


_URLS = {
    "chat": "https://api.openai.com/v1/chat/completions",
    "responses": "https://api.openai.com/v1/responses",
    "anthropic": "https://api.anthropic.com/v1/messages",
    "agui": "http://localhost/agui",
}
_GEMINI = "https://generativelanguage.googleapis.com/v1beta/models/"


def url_of(api: str, model: str, *, streamed: bool) -> str:
    """Where a request of an API usually goes."""
    if api != "gemini":
        return _URLS[api]
    method = "streamGenerateContent?alt=sse" if streamed else "generateContent"
    return f"{_GEMINI}{model or 'gemini'}:{method}"


def made_up(api: str, user: str, model: str, *, streamed: bool) -> _Json:
    """The least request of an API whose user says something."""
    said = {"role": "user", "content": user}
    head = {"model": model or "unknown", "stream": streamed}
    match api:
        case "responses":
            return {**head, "input": user}
        case "anthropic":
            return {**head, "max_tokens": 1024, "messages": [said]}
        case "gemini":
            return {"contents": [{"role": "user", "parts": [{"text": user}]}]}
        case "agui":
            run = {"threadId": "thread", "runId": "run", "state": {}, "forwardedProps": {}}
            return {**run, "messages": [{"id": "user", **said}], "tools": [], "context": []}
    return {**head, "messages": [said]}
