"""Servers that share their state, and a client that sends each request to the next one."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mockllm import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.deployment.balancer.processes import free_ports
from tests.timeouts import GIVE_UP

KEYS = {"authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2023-06-01"}


@dataclass
class Answer:
    """A status and a JSON body."""

    status: int
    body: Any


@dataclass
class Replicas:
    """Servers in threads; `send` uses them in turn."""

    servers: list[ServerThread]
    notices: list[str] = field(default_factory=list)
    turn: int = 0

    def send(
        self, method: str, path: str, body: Any = None, *, to: int | None = None, **headers: str
    ) -> Answer:
        """The answer of the next server, or of one by its place."""
        if to is None:
            to = self.turn % len(self.servers)
            self.turn += 1
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(
            self.servers[to].url + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json", **KEYS, **named},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=GIVE_UP) as answer:
                return Answer(answer.status, json.load(answer))
        except urllib.error.HTTPError as error:
            return Answer(error.code, json.load(error))

    def chat(self, text: str, **options: Any) -> Answer:
        """The answer of Chat Completions to a message."""
        body = {"model": "m", "messages": [{"role": "user", "content": text}]}
        return self.send("POST", "/v1/chat/completions", body, **options)

    def everywhere(self, path: str) -> Any:
        """What each server answers to a GET: the same."""
        first, *others = (self.send("GET", path, to=at) for at in range(len(self.servers)))
        for other in others:
            assert other == first
        assert first.status == 200, first.body
        return first.body


@contextmanager
def replicas(text: str, state: str, count: int = 3, **options: Any) -> Iterator[Replicas]:
    """Servers with the same scenarios and the same store."""
    scenarios = loads(text)
    with ExitStack() as stack:
        notices: list[str] = []
        chosen = ServerOptions(state=state, notice=notices.append, **options)
        servers = [stack.enter_context(ServerThread(scenarios, chosen)) for _ in range(count)]
        yield Replicas(servers, notices)


@dataclass
class RedisServer:
    """A server of Debian's package, which keeps what was written when it is killed."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Starts it; it answers afterwards."""
        self.process = subprocess.Popen(
            [
                *("redis-server", "--port", str(self.port), "--bind", "127.0.0.1"),
                *("--dir", str(self.folder), "--save", "", "--loglevel", "warning"),
                *("--appendonly", "yes", "--appendfsync", "always"),
            ],
            stdout=subprocess.DEVNULL,
        )
        while not self._answers():
            assert self.process.poll() is None, "redis-server ended"

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), GIVE_UP) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def kill(self) -> None:
        """Ends it without a warning."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    """A running server; the test is skipped where there is none."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    pytest.importorskip("redis", reason="the client of Redis is not installed")
    (port,) = free_ports(1)
    server = RedisServer(folder, port)
    server.start()
    try:
        yield server
    finally:
        server.kill()
