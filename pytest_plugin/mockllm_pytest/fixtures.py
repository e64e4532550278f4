"""Fixtures with a wider scope than a test: what they ask has a recording of its own.

Which test they are made for depends on what runs, so what answers them must not be a test's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mockllm.serve.interception.ownership import WHOEVER_RUNS, Owner, as_owner, begin, end
from mockllm_pytest import options
from mockllm_pytest.marks import Allowed, MockllmMark, recorded_mark, session_mark
from mockllm_pytest.printing import fail
from mockllm_pytest.recording import RecordedSession, Recording, fixture_folder
from mockllm_pytest.serving import led_by
from mockllm_pytest.sessions import MockSession

if TYPE_CHECKING:
    from mockllm_pytest.serving import MockService


class UnansweredFixture:
    """A fixture in a test whose replies are its own: what the fixture asks is refused. It may make
    clients, and what else works for each test.

    Args:
        name: of the fixture.
        mark: of the test.
    """

    def __init__(self, name: str, server: MockService, mark: MockllmMark) -> None:
        self._server, self._azure, self._stack = server, mark.azure, ExitStack()
        self._name = f"the fixture {name}"
        self.reason = (
            f"The fixture {name!r} asks a service. Nothing answers it, as it is set up before the "
            "session of the test: let it make a client, and ask in the test."
        )
        """Why nothing answers it."""
        session = partial(server.refusing_session, self._name, self.reason)
        redirect = server.redirect(session, server.find_hosts(mark.intercept))
        self._owner = Owner(self._name, redirect)

    def enter(self) -> None:
        """From now on, what this process asks of services is refused."""
        self._stack.enter_context(led_by(self._server.environment({}, azure=self._azure)))
        begin(self._owner)
        self._stack.callback(end, self._owner)
        self._stack.enter_context(as_owner(WHOEVER_RUNS))

    def leave(self) -> None:
        """Ends that."""
        self._stack.close()

    close = leave

    def check(self) -> None:
        """Fails the fixture where it asked."""
        if self._server.has_refused(self._name):
            fail(self.reason)


class FixtureSession:
    """The session of a fixture, which is entered while it is set up, and while it ends.

    Args:
        name: of the fixture, with the number of its parameter.
        function: that makes it. The recording lies beside its file, or, where that is no file of
            the project, beside the test.
        item: the first test that needs it.
        report: gets the name and a summary of what was recorded.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        item: pytest.Item,
        server: MockService,
        report: list[tuple[str, str]],
    ) -> None:
        self._report, self._stack = report, ExitStack()
        config = item.config
        file = Path(inspect.getfile(inspect.unwrap(function)))
        if config.rootpath not in file.parents:
            file = item.path
        self._name = f"{file.name}::{name}"
        self._owner = Owner(self._name)
        marked, recorded = session_mark(item), recorded_mark(item)
        mark = MockllmMark(
            given=marked.given,
            allowed=Allowed(unplayed=True, no_requests=True),
            intercept=marked.intercept,
            azure=marked.azure,
        )
        self._session: MockSession
        if recorded is None:
            self._session = MockSession(server, self._name, file.parent, mark, server.speed)
            return
        recording = Recording(config, item.nodeid, fixture_folder(file, name), recorded)
        speed = options.setting(config, "speed", marked.speed, 0.0)
        self._session = RecordedSession(server, self._name, file.parent, mark, speed, recording)

    def enter(self) -> None:
        """From now on, what this process asks of services is answered here."""
        self._stack.enter_context(led_by(self._session.environment))
        begin(self._owner)
        self._stack.callback(end, self._owner)
        self._stack.enter_context(as_owner(WHOEVER_RUNS))
        self._stack.enter_context(self._session.redirect(self._owner))

    def leave(self) -> None:
        """Ends that."""
        self._stack.close()

    def check(self) -> None:
        """Fails the fixture where a request got no answer."""
        verdict = self._session.verdict()
        self._session.passed = verdict.good
        if not verdict.good:
            fail(f"The fixture {self._name} asks a service.\n{verdict}")

    def close(self) -> None:
        """Ends the session; what it recorded is on the disk afterwards."""
        self.leave()
        verdict, has_asked = self._session.late_verdict(), bool(self._session.journal)
        self._session.close()
        if has_asked and self._session.recording_summary:
            self._report.append((self._name, self._session.recording_summary))
        if self._session.recording_failure:
            fail(self._session.recording_failure)
        if verdict is not None and not verdict.good:
            message = f"The fixture {self._name} asks a service when it ends.\n{verdict}"
            fail(message)
