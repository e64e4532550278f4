"""Settings and fixtures of all tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, settings

from mockllm import ServerOptions, ServerThread, loads
from tests.cases import choose_cases
from tests.sampling import is_left_out
from tests.timeouts import GIVE_UP

# A deadline, and the check that examples are generated quickly, would measure the machine's load.
_ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# CI generates the same examples in each run; new failures are found where someone can look at them.
settings.register_profile("mockllm", _ANY_SPEED, derandomize="CI" in os.environ)
settings.register_profile("fast", _ANY_SPEED, max_examples=10)  # for `make check`
settings.load_profile("mockllm")


# The modules that break connections off, or read all recordings.
SLOW = (
    "test_corpus",
    "test_endings",
    "test_openai_chat_corpus",
    "test_proxy",
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
            client = stack.enter_context(httpx.Client(base_url=thread.url, timeout=GIVE_UP))
            return Served(thread, client)

        yield start


LEFT_OUT: pytest.StashKey[int] = pytest.StashKey()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many tests were left out, also where workers ran the others."""
    config = terminalreporter.config
    counts = [config.stash.get(LEFT_OUT, 0), *config.stash.get(_OF_WORKERS, [])]
    if any(counts):
        terminalreporter.write_line(
            f"{max(counts)} tests that repeat others were left out; MOCKLLM_ALL=1 runs them "
            "(tests/sampling.py)"
        )


_OF_WORKERS: pytest.StashKey[list[int]] = pytest.StashKey()


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash.get(LEFT_OUT, 0)


class _Workers:
    """Collects what the workers of pytest-xdist left out."""

    def pytest_testnodedown(self, node: Any) -> None:
        found = node.config.stash.setdefault(_OF_WORKERS, [])
        found.append(getattr(node, "workeroutput", {}).get("left_out", 0))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--case",
        metavar="TEXT",
        help="of tests that go through many cases, try those with this text in their names",
    )


def pytest_configure(config: pytest.Config) -> None:
    choose_cases(config.getoption("--case"))
    if config.pluginmanager.hasplugin("dsession"):
        config.pluginmanager.register(_Workers())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks as slow the tests with client SDKs, those that run pytest, and the modules in `SLOW`.
    Leaves out tests that repeat others (`tests/sampling.py`).

    Importing an SDK takes longer than all the tests that use it.
    """
    named = [one for one in config.args if one.partition("::")[0].endswith(".py")]
    named = [one.partition("::")[0] for one in named]
    left_out = [item for item in items if is_left_out(item.nodeid, named)]
    if left_out:
        config.stash[LEFT_OUT] = len(left_out)
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_left_out(item.nodeid, named)]
    for item in items:
        runs_pytest = "pytester" in getattr(item, "fixturenames", ())
        if "clients" in item.path.parts or runs_pytest or item.path.stem in SLOW:
            item.add_marker(pytest.mark.slow)
