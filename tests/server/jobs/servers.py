"""Servers with scenarios, alone or two that share their state; each request goes to the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

from mockllm import loads
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread

BATCHED = """
scenario: capital
match: {user: Norway}
turns:
  - reply: {text: Oslo.}
---
scenario: slow
match: {user: slow}
turns:
  - reply: {text: Done.}
    job: {pending: 3 polls}
---
scenario: late
match: {user: late}
turns:
  - reply: {text: Done.}
    job: {pending: 1 poll, expires: true}
"""
"""Scenarios that answer the requests of batches: at once, later, and too late."""


@contextmanager
def urls(text: str, folder: Path, count: int, **options: Any) -> Iterator[Iterator[str]]:
    """The base URLs of the servers in turn, without an end.

    Args:
        folder: for the state, if there are several servers.
    """
    if count > 1:
        options |= {"state": f"sqlite:{folder / 'state.db'}"}
    with ExitStack() as stack:
        servers = [
            stack.enter_context(ServerThread(list(loads(text)), ServerOptions(**options)))
            for _ in range(count)
        ]
        yield cycle([server.url for server in servers])
