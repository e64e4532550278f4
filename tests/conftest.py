"""Settings and fixtures of all tests."""

from __future__ import annotations

import ctypes
import gc
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, settings

from mockllm import ServerOptions, ServerThread, loads
from tests.cases import choose_cases, forget_cases
from tests.import_graph import modules_that_import
from tests.timeouts import GIVE_UP

# A deadline, and the check that examples are generated quickly, would measure the machine's load.
_ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
# CI generates the same examples in each run; new failures are found where someone can look at them.
settings.register_profile("mockllm", _ANY_SPEED, max_examples=30, derandomize="CI" in os.environ)
settings.register_profile("fast", _ANY_SPEED, max_examples=5)  # for `make check`
settings.register_profile("thorough", _ANY_SPEED, max_examples=200)  # for `make test-all`
settings.load_profile("mockllm")

# Clients of servers on the loopback trust nobody, whose certificate this is: the usual roots take
# 25 ms to read, and a client of a session that is intercepted reads them eight times.
os.environ["SSL_CERT_FILE"] = os.fspath(Path(__file__).with_name("nobody.pem"))

# Python looks for garbage after every 700 new objects: a tenth of all the time that tests take.
gc.set_threshold(20_000)


# The modules that break connections off, or read all recordings.
SLOW = (
    "test_corpus",
    "test_endings",
    "test_openai_chat_corpus",
    "test_proxy",
)

MOST_MEMORY = 350
"""MiB of a worker from which on memory is returned after each module; a worker should stay below
500."""

MOST_GROWTH = 8
"""MiB that a module may leave behind before memory is returned, which takes 40 ms."""


class Served:
    """A server with an HTTP client for it."""

    def __init__(self, thread: ServerThread, client: httpx.Client) -> None:
        self.thread, self.server = thread, thread.server
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


@pytest.fixture(scope="module", autouse=True)
def _forgotten(request: pytest.FixtureRequest) -> Iterator[None]:
    """Empties the caches of a test module at its end; all together would be a gigabyte."""
    yield
    for value in vars(request.module).values():
        if hasattr(value, "cache_clear") and str(value.__module__).startswith("tests."):
            value.cache_clear()
    stash = request.config.stash
    if _memory() > max(MOST_MEMORY, stash.get(_RETURNED, 0) + MOST_GROWTH):
        _return_memory()
        stash[_RETURNED] = _memory()


_RETURNED: pytest.StashKey[int] = pytest.StashKey()
"""MiB that there were after memory was returned the last time."""


def pytest_runtest_logfinish() -> None:
    forget_cases()


def _memory() -> int:
    """The memory of this process in MiB; 0 where the system does not say it in Linux's way."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE") // 2**20


def _return_memory() -> None:
    """Gives the system back what was freed: glibc keeps it, and workers run for minutes."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


HEAVY: pytest.StashKey[int] = pytest.StashKey()
_OF_WORKERS: pytest.StashKey[list[int]] = pytest.StashKey()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many tests a run leaves to `make test-all`, also where workers run the others."""
    config = terminalreporter.config
    counts = [config.stash.get(HEAVY, 0), *config.stash.get(_OF_WORKERS, [])]
    if "not heavy" in config.option.markexpr and max(counts):
        terminalreporter.write_line(
            f"{max(counts)} tests that need heavy tool chains are left to `make test-all`"
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["heavy"] = session.config.stash.get(HEAVY, 0)


def pytest_collection_finish() -> None:
    """Takes the million objects that were imported out of the collector's sight, which would go
    through them in each full collection."""
    gc.collect()
    gc.freeze()


class _Workers:
    """Collects how many heavy tests the workers of pytest-xdist know; each knows all."""

    def pytest_testnodedown(self, node: Any) -> None:
        counts = node.config.stash.setdefault(_OF_WORKERS, [])
        counts.append(getattr(node, "workeroutput", {}).get("heavy", 0))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--case",
        metavar="TEXT",
        help="of tests that go through many cases, try those with this text in their names",
    )


class _LargeFirst:
    @pytest.hookimpl(trylast=True)  # after they were put into a random order
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Runs the tests marked as large while a worker is small: it grows with each module."""
        items.sort(key=lambda item: item.get_closest_marker("large") is None)


def pytest_configure(config: pytest.Config) -> None:
    choose_cases(config.getoption("--case"))
    config.pluginmanager.register(_LargeFirst())
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(_Workers())


_SDKS = Path(__file__).parent / "clients"
_ALL_SLOW = re.compile(r"^pytestmark = \[?pytest\.mark\.slow\b", re.MULTILINE)


def _of_clients(path: Path) -> bool:
    return path.is_relative_to(_SDKS) or path.stem in SLOW


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`make check` does not even import folders and modules that are slow as a whole."""
    if config.option.markexpr != "not slow":
        return None
    is_module = collection_path.suffix == ".py"
    all_slow = is_module and _ALL_SLOW.search(collection_path.read_text()) is not None
    return True if all_slow or _of_clients(collection_path) else None


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks as slow the heavy tests, those with client SDKs, those that run pytest, and the modules
    in `SLOW`; for `-m corpus`, marks the modules that can look for recorded traffic.

    Importing an SDK takes longer than all the tests that use it.
    """
    if "corpus" in config.option.markexpr:
        readers = modules_that_import(Path(__file__).with_name("corpus.py"))
        for item in items:
            if item.path in readers:
                item.add_marker(pytest.mark.corpus)
    config.stash[HEAVY] = sum(item.get_closest_marker("heavy") is not None for item in items)
    for item in items:
        runs_pytest = "pytester" in getattr(item, "fixturenames", ())
        if item.get_closest_marker("heavy") or runs_pytest or _of_clients(item.path):
            item.add_marker(pytest.mark.slow)
