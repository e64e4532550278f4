"""`mockllm_session` of a test whose traffic is recorded: `@pytest.mark.mockllm_recorded`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from mockllm.errors import UsageError
from mockllm_pytest.answering import Answering
from mockllm_pytest.marks import Allowed, Mark
from mockllm_pytest.recording import Recording
from mockllm_pytest.sessions import MockSession

if TYPE_CHECKING:
    from mockllm.core.request import Request
    from mockllm.replay.sessions.session import Exchange
    from mockllm.scenario.model import Scenario
    from mockllm_pytest.report import Verdict
    from mockllm_pytest.serving import MockService


class RecordedSession(MockSession):
    """A session that only a recording answers, or that records.

    While it records, the client keeps the credentials of its environment, and requests that were
    forwarded are not judged.
    """

    def __init__(
        self,
        service: MockService,
        node: pytest.Item,
        mark: Mark,
        speed: float,
        recording: Recording,
    ) -> None:
        self._recording = recording
        self._options = recording.options
        if mark.names or mark.scenarios:
            self._refuse()
        super().__init__(service, node.nodeid, node.path.parent, mark, speed)
        self._serve(Answering(self.scenarios), record=self._options)

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios of the recording when the test began."""
        return self._recording.scenarios

    @property
    def _credentials(self) -> Mapping[str, str]:
        return {} if self._options is None else os.environ

    def _assign(self) -> None:
        self._serve(Answering(self.scenarios))

    def _advice(self, used: str | None, request: Request, headers: Mapping[str, str]) -> list[str]:
        return list(self._recording.hints([request.api]))

    def _add(self, scenarios: Iterable[Scenario], match: bool = True) -> NoReturn:
        self._refuse()

    def reply(self, *parts: Any, **keys: Any) -> NoReturn:
        """Refused: the recording answers."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UsageError(
            "a test that is marked mockllm_recorded is answered by its recording alone; take the "
            "marker away, or the scenarios and replies"
        )

    def verdict(self, what: Allowed | None = None) -> Verdict:
        """The verdict on the requests so far. While recording, unplayed turns and violations are
        allowed, since only a replay can show them.

        Args:
            what: the mistakes that are allowed; default: those that the marker allows.
        """
        what = what or self._mark.allowed
        if self._options is not None:
            return super().verdict(replace(what, unplayed=True, violations=True))
        found = super().verdict(what)
        return found if found.good else replace(found, hints=self._record_hints(self.journal))

    def format_exchanges(self) -> str:
        """The exchanges so far as text, and how to record those that nothing answered."""
        journal = self.journal
        hints: tuple[str, ...] = ()
        if self._options is None and _unanswered(journal):
            hints = self._record_hints(journal)
        return "\n".join([super().format_exchanges(), *hints])

    def _record_hints(self, journal: Iterable[Exchange]) -> tuple[str, ...]:
        return self._recording.hints(exchange.played.api for exchange in _unanswered(journal))

    def close(self) -> None:
        """Waits until the recording is complete, and removes the session from the server."""
        server = self._thread.server
        session = server.sessions.find(self.session)
        played = tuple(session.played) if session is not None else ()
        if self._options is not None:
            self._thread.wait(server.end_recording, self.session)
            self.recording_summary = self._recording.finish(passed=self.passed, played=played)
            self.recording_failure = self._recording.failure()
        self._thread.call(server.forget, self.session)


def _unanswered(journal: Iterable[Exchange]) -> list[Exchange]:
    return [
        entry for entry in journal if entry.outcome in ("unmatched", "invalid", "unknown route")
    ]
