"""A server that intercepts, in a thread, and what leads clients to it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

import pytest

from mockllm.play.replay.loading import loads
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.scenario.model import Scenario
from mockllm.serve.interception.child import child_environment, with_session, write_trust
from mockllm.serve.interception.hosts import Hosts
from mockllm.serve.server.options import InterceptOptions, RecordOptions, ServerOptions
from mockllm.serve.server.thread import ServerThread

SCENARIO = """
scenario: hello
match: {user: Hello}
turns:
  - reply: [{text: Hi there.}]
"""
ASKED = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
OPENAI = "https://api.openai.com/v1/chat/completions"


@dataclass(frozen=True)
class Intercepting:
    """A server that intercepts.

    Args:
        environment: of a program that is led to it, in the session `test`.
        notices: what it said about refused hosts and failed handshakes.
    """

    thread: ServerThread
    environment: dict[str, str]
    notices: SimpleQueue[str] = field(default_factory=SimpleQueue)

    @property
    def journal(self) -> list[Exchange]:
        """The requests of the session, and those of Java, which names none to a proxy, as they
        came."""
        sessions = map(self.thread.server.sessions.find, ("test", "default"))
        entries = [entry for session in sessions if session for entry in session.journal]
        return sorted(entries, key=lambda entry: entry.received.clock)

    @property
    def trusted(self) -> str:
        """The file with the certificates to trust."""
        return self.environment["SSL_CERT_FILE"]


@contextmanager
def intercepting(
    *hosts: str,
    tunnels: bool = False,
    scenarios: Iterable[Scenario] = loads(SCENARIO, "hello.yaml"),
    record: RecordOptions | None = None,
) -> Iterator[Intercepting]:
    """A server with a forward proxy for known services and these hosts."""
    notices: SimpleQueue[str] = SimpleQueue()
    intercept = InterceptOptions(Hosts(hosts), 0, tunnels)
    options = ServerOptions(intercept=intercept, notice=notices.put, grace=0, record=record)
    with ServerThread(scenarios, options) as thread, TemporaryDirectory() as name:
        authority = thread.server.authority
        assert authority is not None
        write_trust(authority, Path(name), os.environ)
        url = with_session(thread.server.proxy_url, "test")
        led = child_environment(url, Path(name), Hosts(hosts), os.environ)
        yield Intercepting(thread, {**os.environ, **led}, notices)


@pytest.fixture(scope="module")
def server() -> Iterator[Intercepting]:
    with intercepting() as made:
        yield made
