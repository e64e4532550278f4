"""The server of a test run, and the scenarios that it knows. Both are made when first used."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import count
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest

from mockllm.core.text import did_you_mean
from mockllm.serve.interception.headers import RUNNING

if TYPE_CHECKING:
    from mockllm.play.replay.sessions.exchange import Exchange
    from mockllm.scenario.model import Scenario
    from mockllm.serve.interception.hosts import Hosts
    from mockllm.serve.interception.redirect import Redirect
    from mockllm.serve.server.thread import ServerThread

_LONGEST = 100
_FILES = (".yaml", ".yml")


_LED: dict[str, tuple[str, str | None]] = {}
"""The environment variables that sessions have set: their values, and those before."""


@contextmanager
def led_by(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables while it lasts."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for name, value in variables.items():
            before = os.environ.get(name)
            if name not in _LED or before != _LED[name][0]:
                _LED[name] = value, before
            monkeypatch.setenv(name, value)
        yield


def put_back() -> None:
    """Puts back the variables that another fixture has set again to what a session had set: it was
    begun before the session, and ended after it."""
    for name, (value, before) in _LED.items():
        if os.environ.get(name) == value:
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before


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
        from mockllm.play.replay.loading import load

        return load(self._paths) if self._paths else ()

    @cached_property
    def shipped(self) -> tuple[Scenario, ...]:
        """The scenarios that come with mockllm."""
        from mockllm.play.replay.loading import load, shipped_scenarios

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
        from mockllm.play.replay.loading import load

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
        return [self._find_named(str(given), tuple(more))]

    def _find_named(self, name: str, more: tuple[Scenario, ...]) -> Scenario:
        from mockllm.core.errors import UsageError

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
        self._ended = {RUNNING: "no test"}
        """The ids of the tests that are over, by the names of their sessions."""
        self._refusing: dict[str, str] = {}
        """The sessions of requests that nothing answers, by whose they are."""
        self._stack = ExitStack()
        self._numbers = count(1)

    @property
    def url(self) -> str:
        """`http://HOST:PORT`."""
        return self.thread.url

    @property
    def base_urls(self) -> dict[str, str]:
        """The base URL for a client of each API, by the name of the API."""
        return self.thread.server.base_urls

    @property
    def running_url(self) -> str:
        """The beginning of the URLs in the environment, the same in all tests: some libraries read
        it only once. Requests to it belong to the test that makes them."""
        return f"{self.url}/s/{RUNNING}"

    @cached_property
    def thread(self) -> ServerThread:
        """The server's thread."""
        from mockllm.serve.interception.hosts import Hosts
        from mockllm.serve.server.options import InterceptOptions, ServerOptions
        from mockllm.serve.server.thread import ServerThread

        options = ServerOptions(
            speed=self.speed,
            grace=0,
            log=self._note,
            intercept=InterceptOptions(Hosts(("*",))),
            ignore=self._ignore,
        )
        return self._stack.enter_context(ServerThread(self.library.served, options))

    def find_hosts(self, intercepts: tuple[str, ...] | None) -> Hosts | None:
        """The hosts whose requests come to a session: known services, also those of this machine,
        those that the environment names for clients, and those that a test names; None where it
        wants none."""
        if intercepts is None:
            return None
        from mockllm.serve.interception.hosts import Hosts, known_hosts, patterns_of
        from mockllm.wire.protocols.environment import services_in

        local = filter(Hosts.names_this_machine, known_hosts())
        found = (url for url in services_in(os.environ) if not url.startswith(self.url))
        return Hosts((*intercepts, *local, *patterns_of(found)))

    def redirect(self, session: Callable[[], str], hosts: Hosts | None) -> Redirect:
        """Where requests of this process go that are for a session.

        Args:
            hosts: that are intercepted; None for none.
        """
        from mockllm.serve.interception.redirect import redirect_to

        intercept = self.thread.server.options.intercept
        assert intercept is not None
        return redirect_to(self.url, session, hosts, intercept.key)

    def environment(self, own: Mapping[str, str], *, azure: bool) -> dict[str, str]:
        """The variables that lead clients to the running session.

        Args:
            own: the environment of clients that keep their credentials.
            azure: whether those of OpenAI's models on Azure are among them.
        """
        from mockllm.serve.server.control.control_routes import base_urls
        from mockllm.wire.protocols.environment import (
            client_environment,
            dummy_keys,
            environment_on_request,
            proxy_exemptions,
        )

        urls = base_urls(self.running_url)
        return {
            **client_environment(urls, own),
            **({} if own else dummy_keys(os.environ)),
            **(environment_on_request("azure", urls) if azure else {}),
            **proxy_exemptions(os.environ),
            **self._trusting(),
            "MOCKLLM_URL": self.running_url,
        }

    def _trusting(self) -> dict[str, str]:
        """The variables by which programs trust the server where they dial TLS in any case."""
        try:
            trust = self._trust
        except OSError:  # OpenSSL sees no files of a test's own file system, such as pyfakefs has
            return {}
        if trust is None:
            return {}
        from mockllm.serve.interception.child import trusting_sockets

        return trusting_sockets(trust)

    def refusing_session(self, name: str, why: str) -> str:
        """The name of a session that refuses its requests.

        Args:
            name: whose they are, for the report.
            why: a sentence for the error.
        """
        if name not in self._refusing:
            session = self._refusing[name] = self.session_name(name)
            self._ended[session] = name
            self.thread.call(self.thread.server.end, session, why)
        return self._refusing[name]

    def has_refused(self, name: str) -> bool:
        """Whether `refusing_session` has made one of this name."""
        return name in self._refusing

    def proxy_variables(self, session: str) -> dict[str, str]:
        """The variables by which programs that a test starts send to the server what is for the
        services; {} without the library that makes certificates."""
        server = self.thread.server
        assert server.options.intercept is not None
        if self._trust is None:
            return {}
        from mockllm.serve.interception.child import child_environment, with_session

        if not server.proxy_url:
            self.thread.wait(server.open_proxy, server.options.intercept)
        url = with_session(server.proxy_url, session)
        return child_environment(url, self._trust, server.options.intercept.hosts, os.environ)

    @cached_property
    def _trust(self) -> Path | None:
        """The folder with the certificates that clients of the server trust, which takes TLS from
        now on; None without the library that makes them."""
        authority = self.thread.wait(self.thread.server.take_tls)
        if authority is None:
            return None
        from mockllm.serve.interception.child import write_trust

        folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="mockllm-")))
        write_trust(authority, folder, os.environ)
        return folder

    @contextmanager
    def running(self, session: str) -> Iterator[None]:
        """While it lasts, a session is that of the running test."""
        server = self.thread.server
        self.thread.call(server.begin_running, session)
        try:
            yield
        finally:
            self.thread.call(server.end_running, session)

    def end(self, session: str, nodeid: str) -> None:
        """Ends the session of a test: what comes for it later is refused, and noted."""
        self._ended[session] = nodeid
        why = (
            f"The session {session!r} is gone: its test {nodeid} is over. A task, thread or client "
            "of it went on: end it in the test, or in a fixture."
        )
        self.thread.call(self.thread.server.end, session, why)

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
