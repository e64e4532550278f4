"""One request over a socket, and its answer with the cuts between the chunks of HTTP."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedReader
from typing import Any
from urllib.parse import urlsplit

__all__ = ["REQUESTS", "Answer", "ask", "without_chance"]

_PATIENCE = 30.0
_CHANCE = re.compile(rb"(?<=[-_])[A-Za-z0-9_-]{16}(?=\")|\b1\d{9}\b")
"""What differs from answer to answer: ids, and the time in seconds."""


@dataclass(frozen=True)
class Answer:
    """`chunks` are those of the transfer coding, or the whole body; `cut` if they do not end."""

    status: int
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[bytes, ...]
    cut: bool = False

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)


def ask(url: str, path: str, body: Any, **headers: str) -> Answer:
    """Posts JSON, on a connection of its own."""
    where = urlsplit(url)
    data = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", f"Host: {where.netloc}", f"Content-Length: {len(data)}"]
    lines += ["Content-Type: application/json", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    with (
        socket.create_connection((where.hostname, where.port), _PATIENCE) as connection,
        connection.makefile("rb") as file,
    ):
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        return _read(file)


def _read(file: BufferedReader) -> Answer:
    status = int(file.readline().split()[1])
    pairs = []
    while line := file.readline().strip():
        name, _, value = line.decode("latin-1").partition(":")
        pairs.append((name, value.strip()))
    coding = {name.lower(): value for name, value in pairs}.get("transfer-encoding")
    if coding is None:
        return Answer(status, tuple(pairs), (file.read(),))
    chunks: list[bytes] = []
    cut = False
    try:
        while size := int(file.readline() or b"-1", 16):
            cut = size < 0
            if cut:
                break
            chunks.append(file.read(size))
            file.readline()
    except ConnectionResetError:
        cut = True
    return Answer(status, tuple(pairs), tuple(chunks), cut)


def without_chance(chunks: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Chunks as they are whenever the same is asked."""
    return tuple(_CHANCE.sub(b"*", chunk) for chunk in chunks)


def _chat(said: str, stream: bool) -> tuple[str, Any]:
    messages = [{"role": "user", "content": said}]
    return "/v1/chat/completions", {"model": "gpt-4o", "messages": messages, "stream": stream}


def _responses(said: str, stream: bool) -> tuple[str, Any]:
    return "/v1/responses", {"model": "gpt-4o", "input": said, "stream": stream}


def _messages(said: str, stream: bool) -> tuple[str, Any]:
    messages = [{"role": "user", "content": said}]
    request = {"model": "claude-mock", "max_tokens": 100, "messages": messages}
    return "/v1/messages", {**request, "stream": stream}


def _gemini(said: str, stream: bool) -> tuple[str, Any]:
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    contents = [{"role": "user", "parts": [{"text": said}]}]
    return f"/v1beta/models/gemini-2.5-flash:{verb}", {"contents": contents}


REQUESTS: dict[str, Callable[[str, bool], tuple[str, Any]]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _messages,
    "gemini": _gemini,
}
"""By API: path and body of a request that says something, streamed or not."""
