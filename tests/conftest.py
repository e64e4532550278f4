"""What all tests share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest
from hypothesis import settings

from mockllm import ServerOptions, ServerThread, loads

# Shared machines stall now and then; a deadline would only measure that.
# CI draws the same examples each time; new ones are found where somebody can look at them.
SAME = "CI" in os.environ
settings.register_profile("mockllm", deadline=None, derandomize=SAME)
settings.register_profile("fast", deadline=None, max_examples=10)  # for `make check`
settings.load_profile("mockllm")


SLOW = (
    "test_corpus",
    "test_endings",
    "test_openai_chat_corpus",
    "test_proxy",
    "test_reference_corpus",
)


class Served:
    """A server with an HTTP client for it."""

    def __init__(self, thread: ServerThread, client: httpx.Client) -> None:
        self.server = thread.server
        self.url = thread.url
        self.http = client

    def journal(self, session: str = "default") -> list[dict]:
        answer = self.http.get("/_mockllm/journal", params={"session": session})
        assert answer.status_code == 200, answer.text
        return answer.json()["exchanges"]


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Starts servers for YAML text: `serve(text, speed=0, ...)`."""
    with ExitStack() as stack:

        def start(text: str, **options: object) -> Served:
            thread = stack.enter_context(ServerThread(loads(text), ServerOptions(**options)))
            client = stack.enter_context(httpx.Client(base_url=thread.url, timeout=20))
            return Served(thread, client)

        yield start


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with client SDKs are slow: importing one takes longer than all its tests here. So are
    those that run pytest or break connections off, and those of all recordings."""
    for item in items:
        runs_pytest = "pytester" in getattr(item, "fixturenames", ())
        if "clients" in item.path.parts or runs_pytest or item.path.stem in SLOW:
            item.add_marker(pytest.mark.slow)
