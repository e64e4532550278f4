"""`mockllm_case`: one case of the checking kit in a test, and the collection of many cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from mockllm.checking import Case, CaseSpec, Outcome, Payload, Policy, case_specs, differences
from mockllm.checking.cases.case import Level
from mockllm.checking.judging.difference import Difference
from mockllm.checking.judging.running import drive, run_case
from mockllm.checking.reports.stream_text import format_stream
from mockllm.conformance.clients.http_sessions import requests_usage
from mockllm.core.errors import UsageError
from mockllm.scenario.model import Scenario, ToolSpec
from mockllm.serve.server.control.control_routes import base_urls
from mockllm_pytest.marks import CasesMark
from mockllm_pytest.options import setting
from mockllm_pytest.printing import fail
from mockllm_pytest.serving import Library, MockService

if TYPE_CHECKING:
    from mockllm.serve.server.thread import ServerThread


def marked_cases(
    config: pytest.Config, library: Library, folder: Path, mark: CasesMark
) -> list[CaseSpec]:
    """The cases that a marker selects, not compiled.

    Args:
        folder: the folder of the test; relative paths begin there.
    """
    scenarios = find_scenarios(library, mark.scenarios, folder)
    return [
        spec
        for api in mark.apis
        for spec in case_specs(
            api,
            scenarios,
            variations=setting(config, "variations", mark.variations, 25),
            quirks=mark.quirks,
            seed=setting(config, "seed", mark.seed, "0"),
            level=mark.level,
        )
    ]


def find_scenarios(library: Library, given: Any, folder: Path) -> tuple[Scenario, ...]:
    """The scenarios for names, paths and scenarios; for None, all that the library has."""
    if given is None:
        return library.every
    single = isinstance(given, str | Path | Scenario)
    return tuple(
        scenario
        for chosen in ((given,) if single else given)
        for scenario in library.find(chosen, folder)
    )


def scenario_name(library: Library, spec: CaseSpec) -> str:
    """The name of the scenario that a case is a turn of (its own scenario is `NAME-POSITION`)."""
    name = spec.scenario.name
    known = any(scenario.name == name for scenario in library.own)
    return name if known else name.rpartition("-")[0] or name


class CasePlayer:
    """Serves one case at a time over HTTP, in a session of its own, which the first case opens.

    Args:
        request: of the test, or of the class of tests, that needs it.
        speed: of timed streams; None: without pauses, unless the user sets a speed.
    """

    def __init__(self, request: pytest.FixtureRequest, speed: float | None = None) -> None:
        self._request = request
        self._speed = setting(request.config, "speed", speed, 0.0)
        self._session = ""

    def at(self, case: Case) -> str:
        """Serves a case from now on; returns the base URL of its API."""
        thread = self._thread
        if not self._session:
            self._session = self._service.session_name(self._request.node.nodeid)
        thread.play(self._session, case.scenario, speed=self._speed)
        return base_urls(f"{thread.url}/s/{self._session}")[case.api]

    def requests_usage(self, case: Case) -> bool:
        """Whether the last request was for usage, too, where the API sends it on request only."""
        return requests_usage(case, self._thread.exchanges(self._session))

    @property
    def _service(self) -> MockService:
        return cast("MockService", self._request.getfixturevalue("mockllm_server"))

    @property
    def _thread(self) -> ServerThread:
        return self._service.thread

    def close(self) -> None:
        """Removes the session from the server."""
        if self._session:
            self._thread.call(self._thread.server.forget, self._session)


class MockCase:
    """One stream, and the outcome that a correct client reaches."""

    def __init__(self, case: Case, level: Level, url: Callable[[Case], str], rerun: str) -> None:
        self.case = case
        """The case of the checking kit."""
        self._level = level
        self._url = url
        self._rerun = rerun

    def __repr__(self) -> str:
        return f"<MockCase {self.name}>"

    @property
    def api(self) -> str:
        """The name of the protocol."""
        return self.case.api

    @property
    def name(self) -> str:
        """The name of the case: API, scenario, variation, quirk."""
        return self.case.name

    @property
    def prompt(self) -> str:
        """The text of the user's message."""
        return self.case.prompt

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools that the client offers."""
        return self.case.tools

    @property
    def expected(self) -> Outcome:
        """The outcome of a correct client."""
        return self.case.expected

    @property
    def events(self) -> tuple[Payload, ...]:
        """The decoded events: their values, each with its `event:` line.

        Raises:
            UsageError: the case is special only in its bytes.
        """
        payloads = self.case.payloads
        if payloads is None:
            raise self._no_payloads()
        return payloads

    def _no_payloads(self) -> UsageError:
        return UsageError(
            f"{self.name} shows in its bytes only: use byte_chunks(), or leave such cases out "
            'with level="payloads"'
        )

    @property
    def chunks(self) -> list[Any]:
        """The values of the decoded events, as a new copy, which the caller may change."""
        return [payload.value for payload in self.events]

    def byte_chunks(self, *sizes: int) -> Iterator[bytes]:
        """The bytes of the stream, cut into chunks of these sizes, repeated in a cycle.

        Without sizes, the chunks are those of the case.
        """
        return self.case.byte_chunks(*sizes)

    @property
    def url(self) -> str:
        """The base URL at which a running server answers every request with this case."""
        return self._url(self.case)

    def check(self, got: Any, policy: Policy | None = None) -> None:
        """Fails the test if the client's outcome is not correct.

        Args:
            got: the client's `Outcome`; the exception that it raised; a probe that was fed
                already; or a class or function that makes a probe, which is then fed here.
            policy: how the client intends to behave; default: `Policy()`.
        """
        policy = policy or Policy()
        if isinstance(got, Exception):
            got = Outcome.of(errors=[got])
        if isinstance(got, Outcome):
            mistakes = differences(self.case, got, policy)
        elif hasattr(got, "feed") and not isinstance(got, type):
            mistakes = differences(self.case, drive(got, ()), policy)
        else:
            if self._level == "payloads" and self.case.events is None:
                raise self._no_payloads()
            mistakes = [*run_case(got, self.case, policy, self._level).differences]
        if mistakes:
            fail("\n".join(self._report(mistakes)))

    def _report(self, found: Sequence[Difference]) -> Iterator[str]:
        names = dict.fromkeys(difference.invariant for difference in found)
        yield f"{self.name} breaks {', '.join(names)}"
        if self.case.plain is not None:
            yield f"  (unlike its plain form, this case tests {self.case.invariant})"
        yield from (f"  {difference.description}" for difference in found)
        yield "  the stream:"
        yield from (f"    {line}" for line in format_stream(self.case).splitlines())
        yield f"  to run it again: {self._rerun}"
