"""The server of a test run, and the scenarios that it knows. Both are made when first used."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import count
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mockllm.core.text import did_you_mean

if TYPE_CHECKING:
    from mockllm.replay.sessions.exchange import Exchange
    from mockllm.scenario.model import Scenario
    from mockllm.server.thread import ServerThread

_LONGEST = 100
_FILES = (".yaml", ".yml")


class Library:
    """The scenarios that tests may name: those of the run, then those that come with mockllm.

    Each file is read once, when one of its scenarios is first needed.
    """

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._paths = tuple(paths)
        self._read: dict[Path, tuple[Scenario, ...]] = {}

    @cached_property
    def own(self) -> tuple[Scenario, ...]:
        """The scenarios of `--mockllm-scenarios`."""
        from mockllm.replay.loading import load

        return load(self._paths) if self._paths else ()

    @cached_property
    def shipped(self) -> tuple[Scenario, ...]:
        """The scenarios that come with mockllm."""
        from mockllm.replay.loading import load, shipped_scenarios

        return load([shipped_scenarios()])

    @cached_property
    def by_name(self) -> tuple[Scenario, ...]:
        """All scenarios without `match`: they answer requests that name them."""
        return tuple(replace(scenario, match=None) for scenario in self.every)

    @property
    def served(self) -> tuple[Scenario, ...]:
        """The scenarios of the server: the run's own answer by their `match`, the shipped ones
        only requests that name them."""
        return (*self.own, *self.by_name[len(self.own) :])

    @property
    def every(self) -> tuple[Scenario, ...]:
        """All scenarios: the run's own, and the shipped ones with other names."""
        names = {scenario.name for scenario in self.own}
        return (*self.own, *(scenario for scenario in self.shipped if scenario.name not in names))

    def file(self, path: Path) -> tuple[Scenario, ...]:
        """The scenarios of a file or a folder."""
        from mockllm.replay.loading import load

        if path not in self._read:
            self._read[path] = load([path])
        return self._read[path]

    def find(self, given: Any, folder: Path, more: Iterable[Scenario] = ()) -> list[Scenario]:
        """The scenarios for a name, a path or a scenario.

        Args:
            folder: the base of relative paths.
            more: further scenarios, which take precedence over the shipped ones.

        Raises:
            UsageError: no scenario has this name; the message has similar names.
        """
        from mockllm.scenario.model import Scenario

        if isinstance(given, Scenario):
            return [given]
        if isinstance(given, PathLike) or str(given).endswith(_FILES) or "/" in str(given):
            return list(self.file(folder / given))
        return [self._named(str(given), tuple(more))]

    def _named(self, name: str, more: tuple[Scenario, ...]) -> Scenario:
        from mockllm.errors import UsageError

        sources: tuple[Callable[[], tuple[Scenario, ...]], ...] = (
            lambda: self.own,
            lambda: more,
            lambda: self.shipped,
        )
        known: list[str] = []
        for source in sources:
            for scenario in source():
                if scenario.name == name:
                    return scenario
                known.append(scenario.name)
        hint = did_you_mean(name, known, most=3)
        raise UsageError(
            f"there is no scenario {name!r}; {hint}{' ' if hint else ''}name files and folders of "
            "your own with --mockllm-scenarios, or a file by its path"
        )


class MockService:
    """The mock server of a test run, in a thread of its own. It starts when it is first used.

    Requests to these URLs belong to no test, so they are not judged. Scenarios of
    `--mockllm-scenarios` answer by their `match`, those that come with mockllm only requests that
    name them.

    Args:
        speed: of timed streams.
        played: collects the names of the scenarios that were played.
        late: collects the requests that came after their test was over, as lines.
        required: the rules that every test requires.
        ignore: what of requests is not compared.
    """

    def __init__(
        self,
        library: Library,
        speed: float,
        played: set[str],
        late: list[str],
        required: Iterable[str] = (),
        ignore: tuple[str, ...] = (),
    ) -> None:
        self.library = library
        self.speed = speed
        self.played = played
        self.required = frozenset(required)
        self._ignore = ignore
        self._late = late
        self._ended: dict[str, str] = {}
        """The ids of the tests that are over, by the names of their sessions."""
        self._threads: dict[float, ServerThread] = {}
        self._trust: dict[str, Path] = {}
        """By the URL of a server, the folder with the certificates of its proxy."""
        self._stack = ExitStack()
        self._numbers = count(1)

    @property
    def url(self) -> str:
        """`http://HOST:PORT`."""
        return self.thread().url

    @property
    def base_urls(self) -> dict[str, str]:
        """The base URL for a client of each API, by the name of the API."""
        return self.thread().server.base_urls

    def thread(self, speed: float | None = None) -> ServerThread:
        """The server's thread; each speed has a server of its own."""
        speed = self.speed if speed is None else speed
        if speed not in self._threads:
            from mockllm.interception.hosts import Hosts
            from mockllm.server.options import InterceptOptions, ServerOptions
            from mockllm.server.thread import ServerThread

            everywhere = InterceptOptions(Hosts(("*",)))
            options = ServerOptions(
                speed=speed,
                grace=0,
                log=self._note,
                intercept=everywhere,
                ignore=self._ignore,
            )
            thread = ServerThread(self.library.served, options)
            self._threads[speed] = self._stack.enter_context(thread)
        return self._threads[speed]

    def proxied(self, thread: ServerThread, session: str) -> dict[str, str]:
        """The variables by which programs that a test starts send to a server what is for the
        services; {} without the library that makes certificates."""
        from importlib.util import find_spec

        server = thread.server
        assert server.options.intercept is not None
        if find_spec("trustme") is None:
            return {}
        from mockllm.interception.child import child_environment, with_session

        if server.url not in self._trust:
            self._trust[server.url] = self._stack.enter_context(self._opened(thread))
        url = with_session(server.proxy_url, session)
        hosts = server.options.intercept.hosts
        return child_environment(url, self._trust[server.url], hosts, os.environ)

    @contextmanager
    def _opened(self, thread: ServerThread) -> Iterator[Path]:
        """The folder with the certificates of a server's proxy, which listens from now on."""
        from mockllm.interception.child import write_trust

        server = thread.server
        assert server.options.intercept is not None
        authority = thread.wait(server.open_proxy, server.options.intercept)
        with TemporaryDirectory(prefix="mockllm-") as folder:
            write_trust(authority, Path(folder), os.environ)
            yield Path(folder)

    def end(self, thread: ServerThread, session: str, nodeid: str) -> None:
        """Ends the session of a test: what comes for it later is refused, and noted."""
        self._ended[session] = nodeid
        thread.call(thread.server.end, session)

    def _note(self, exchange: Exchange) -> None:
        nodeid = self._ended.get(exchange.session)
        if nodeid is not None:
            self._late.append(f"{nodeid}: {exchange.received.method} {exchange.path}")

    def session_name(self, nodeid: str) -> str:
        """A unique name for a session, derived from the id of a test."""
        path, _, test = nodeid.partition("::")
        file = path.rpartition("/")[2].removesuffix(".py")
        name = re.sub(r"[^A-Za-z0-9_]+", ".", f"{file}.{test}").strip(".")
        return f"{name[:_LONGEST]}-{next(self._numbers)}"

    def close(self) -> None:
        """Stops listening."""
        self._stack.close()
