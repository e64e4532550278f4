"""A server with one scenario, and a client that sees every byte and how the connection ends."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mockllm import loads
from mockllm.play.replay.client_requests import first_body
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.protocols import PROTOCOLS
from tests.timeouts import GIVE_UP

TURNS = """
scenario: forecast
match: any
tools:
  - name: get_weather
    parameters: {type: object, properties: {city: {type: string}}}
turns:
  - ATTEMPTS
    reply:
      - text: Let me look at Zürich.
        split: words
      - tool: get_weather
        id: call_1
        arguments: '{"city":"Paris"}'
        split: ['{"ci', 'ty":"P', 'aris"}']
"""


KEYS = {"authorization": "Bearer key", "x-api-key": "key", "x-goog-api-key": "key"}


@dataclass
class Received:
    """What came on a connection.

    Args:
        status: 0 where no answer came.
        wire: everything after the head, as it came.
        body: without HTTP chunk framing.
        ended: `complete`, or the connection was `closed` or `reset` before that.
        whole: whether HTTP says that the body is complete.
    """

    status: int
    headers: dict[str, str]
    wire: bytes
    body: bytes
    ended: str
    whole: bool


def request_bytes(api: str, *, stream: bool = True, path: str = "", **headers: Any) -> bytes:
    """A first request, as its client writes it."""
    protocol = PROTOCOLS[api]
    body = first_body(protocol, "mock-model", "Hello", SCENARIO.tools)
    target = protocol.client.path_of("mock-model", stream=stream)
    if not stream and body.get("stream"):
        body["stream"] = False
    data = json.dumps(body).encode()
    lines = [f"POST {path or target} HTTP/1.1", "host: x", f"content-length: {len(data)}"]
    own = {"content-type": "application/json", **KEYS, **protocol.client.headers, **headers}
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in own.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + data


SCENARIO = loads(TURNS.replace("ATTEMPTS\n    ", ""))[0]


@contextmanager
def served(text: str = "", **options: Any) -> Iterator[ServerThread]:
    """A server with the scenario, or with another text."""
    scenarios = loads(text) if text else (SCENARIO,)
    with ServerThread(scenarios, ServerOptions(**options)) as thread:
        yield thread


def connect(thread: ServerThread) -> socket.socket:
    """A connection to a server."""
    host, _, port = thread.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=GIVE_UP)


def receive(sock: socket.socket) -> Received:
    """Reads one answer, or whatever comes of it."""
    data, ended = b"", ""
    while not ended:
        if (found := _answer(data)) is not None:
            return found
        try:
            more = sock.recv(65536)
        except ConnectionResetError:
            ended = "reset"
            break
        if not more:
            ended = "closed"
        data += more
    head, _, wire = data.partition(b"\r\n\r\n")
    if not head:
        return Received(0, {}, b"", b"", ended, False)
    status, headers = _head(head)
    chunked = "transfer-encoding" in headers
    body, whole = _dechunked(wire) if chunked else (wire, _is_whole(wire, headers))
    return Received(status, headers, wire, body, ended, whole)


def _answer(data: bytes) -> Received | None:
    head, end, wire = data.partition(b"\r\n\r\n")
    if not end:
        return None
    status, headers = _head(head)
    if "transfer-encoding" in headers:
        body, whole = _dechunked(wire)
    elif "content-length" in headers:
        body, whole = wire, _is_whole(wire, headers)
    else:
        return None
    return Received(status, headers, wire, body, "complete", True) if whole else None


def _is_whole(wire: bytes, headers: dict[str, str]) -> bool:
    return len(wire) >= int(headers.get("content-length", "0"))


def _head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return int(first.split()[1]), {name.lower(): value for name, _, value in pairs}


def _dechunked(wire: bytes) -> tuple[bytes, bool]:
    body = b""
    while True:
        size, end, rest = wire.partition(b"\r\n")
        if not end:
            return body, False
        length = int(size, 16)
        if not length:
            return body, rest.startswith(b"\r\n")
        body += rest[:length]
        if len(rest) < length + 2:
            return body, False
        wire = rest[length + 2 :]


def ask(thread: ServerThread, api: str, fault: str = "", **options: Any) -> Received:
    """One request on a connection of its own."""
    headers: dict[str, Any] = {"x_mockllm_fault": fault} if fault else {}
    with connect(thread) as sock:
        sock.sendall(request_bytes(api, **options, **headers))
        return receive(sock)


def journal(thread: ServerThread, session: str = "default") -> list[Exchange]:
    """The requests of a session so far."""
    return list(thread.ask(thread.server.sessions.get, session).journal)
