"""Servers with scenarios, alone or two that share their state; each request goes to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, TypeVar

from openai import OpenAI

from mockllm import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread

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


_Client = TypeVar("_Client", bound=AbstractContextManager[Any])


@contextmanager
def of_next(
    bases: Iterator[str], client: Callable[[str], _Client]
) -> Iterator[Callable[[], _Client]]:
    """A function with a client of the next server; all are closed in the end."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(client(next(bases)))


def openai_client(base: str) -> OpenAI:
    return OpenAI(base_url=f"{base}/v1", api_key="k", max_retries=0)


@contextmanager
def urls(text: str, folder: Path, count: int, **options: Any) -> Iterator[Iterator[str]]:
    """The base URLs of the servers in turn, without an end.

    Args:
        folder: for the state, if there are several servers and `options` names none.
    """
    if count > 1 and "state" not in options:
        options |= {"state": f"sqlite:{folder / 'state.db'}"}
    with ExitStack() as stack:
        servers = [
            stack.enter_context(ServerThread(list(loads(text)), ServerOptions(**options)))
            for _ in range(count)
        ]
        yield cycle([server.url for server in servers])
