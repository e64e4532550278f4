"""One request over a socket, and its answer in HTTP chunks."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedReader
from typing import Any
from urllib.parse import urlsplit

TIMEOUT = 600.0
"""Seconds for one request: llama.cpp computes its answers on one core."""

_IDS_AND_TIMES = re.compile(rb"(?<=[-_])[A-Za-z0-9_-]{16}(?=\")|\b1\d{9}\b")
"""What differs between equal answers: ids, and the time in seconds."""


@dataclass(frozen=True)
class Answer:
    """`chunks` are HTTP chunks, or the whole body; `cut` if the last chunk is missing."""

    status: int
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[bytes, ...]
    cut: bool = False

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)


def post(url: str, path: str, body: Any, **headers: str) -> Answer:
    """Posts JSON on a new connection."""
    address = urlsplit(url)
    data = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", f"Host: {address.netloc}", f"Content-Length: {len(data)}"]
    lines += ["Content-Type: application/json", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    with (
        socket.create_connection((address.hostname, address.port), TIMEOUT) as connection,
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


def without_ids_and_times(chunks: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Chunks that are equal for equal requests."""
    return tuple(_IDS_AND_TIMES.sub(b"*", chunk) for chunk in chunks)


def _chat(prompt: str, stream: bool) -> tuple[str, Any]:
    messages = [{"role": "user", "content": prompt}]
    return "/v1/chat/completions", {"model": "gpt-4o", "messages": messages, "stream": stream}


def _responses(prompt: str, stream: bool) -> tuple[str, Any]:
    return "/v1/responses", {"model": "gpt-4o", "input": prompt, "stream": stream}


def _messages(prompt: str, stream: bool) -> tuple[str, Any]:
    messages = [{"role": "user", "content": prompt}]
    request = {"model": "claude-mock", "max_tokens": 100, "messages": messages}
    return "/v1/messages", {**request, "stream": stream}


def _gemini(prompt: str, stream: bool) -> tuple[str, Any]:
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    contents = [{"role": "user", "parts": [{"text": prompt}]}]
    return f"/v1beta/models/gemini-2.5-flash:{verb}", {"contents": contents}


REQUESTS: dict[str, Callable[[str, bool], tuple[str, Any]]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _messages,
    "gemini": _gemini,
}
"""By API: path and body of a request with a prompt, streamed or not."""
