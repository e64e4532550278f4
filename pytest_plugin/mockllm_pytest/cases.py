"""`mockllm_case`: a stream with what is right for it, and the plans of many of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from mockllm.checking import Case, Outcome, Payload, Plan, Policy, differences, plans
from mockllm.checking.judging.running import Level, drive, run
from mockllm.checking.reports.reproduction import drawn
from mockllm.errors import UsageError
from mockllm.protocols import PROTOCOLS
from mockllm.scenario.model import Scenario, ToolSpec
from mockllm.server.control import base_urls
from mockllm_pytest.marks import CasesMark
from mockllm_pytest.options import chosen
from mockllm_pytest.serving import Library, MockService

if TYPE_CHECKING:
    from mockllm.server.thread import ServerThread

__all__ = ["CasePlayer", "MockCase", "found_scenarios", "origin", "planned"]


def planned(config: pytest.Config, library: Library, folder: Path, mark: CasesMark) -> list[Plan]:
    """The cases that a marker asks for, not compiled.

    Args:
        folder: of the test, where relative paths begin.
    """
    found = found_scenarios(library, mark.scenarios, folder)
    return [
        plan
        for api in mark.apis
        for plan in plans(
            api,
            found,
            variations=chosen(config, "variations", mark.variations, 25),
            quirks=mark.quirks,
            seed=chosen(config, "seed", mark.seed, "0"),
            level=mark.level,
        )
    ]


def found_scenarios(library: Library, given: Any, folder: Path) -> tuple[Scenario, ...]:
    """The scenarios that names, paths and scenarios stand for; all for None."""
    if given is None:
        return library.every
    single = isinstance(given, str | Path | Scenario)
    return tuple(
        scenario
        for one in ((given,) if single else given)
        for scenario in library.find(one, folder)
    )


def origin(library: Library, plan: Plan) -> str:
    """The name of the scenario that a case is a turn of."""
    name = plan.scenario.name
    known = any(scenario.name == name for scenario in library.own)
    return name if known else name.rpartition("-")[0] or name


class CasePlayer:
    """Plays one case at a time over HTTP, in a session of its own that begins with the first.

    Args:
        request: of what needs it: a test, or a class of tests.
        speed: of timed streams; None: pauses are left out, if the user does not say otherwise.
    """

    def __init__(self, request: pytest.FixtureRequest, speed: float | None = None) -> None:
        self._request = request
        self._speed = chosen(request.config, "speed", speed, 0.0)
        self._session = ""

    def at(self, case: Case) -> str:
        """Plays a case from now on; the base URL of its API where it is."""
        thread = self._thread
        if not self._session:
            self._session = self._service.session_name(self._request.node.nodeid)
        scenario = case.scenario
        thread.ask(thread.server.assign, self._session, (scenario,), named=scenario.name)
        return base_urls(PROTOCOLS, f"{thread.url}/s/{self._session}")[case.api]

    @property
    def _service(self) -> MockService:
        return cast("MockService", self._request.getfixturevalue("mockllm_server"))

    @cached_property
    def _thread(self) -> ServerThread:
        return self._service.thread(self._speed)

    def close(self) -> None:
        """Lets the server forget the session."""
        if self._session:
            self._thread.call(self._thread.server.forget, self._session)


class MockCase:
    """One stream, and what a correct client makes of it."""

    def __init__(self, case: Case, level: Level, url: Callable[[Case], str], again: str) -> None:
        self.case = case
        """The case as the checking kit has it."""
        self._level = level
        self._url = url
        self._again = again

    def __repr__(self) -> str:
        return f"<MockCase {self.name}>"

    @property
    def api(self) -> str:
        """The protocol that is spoken."""
        return self.case.api

    @property
    def name(self) -> str:
        """What the case is: API, scenario, variation, quirk."""
        return self.case.name

    @property
    def prompt(self) -> str:
        """What the user says."""
        return self.case.prompt

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What the client offers."""
        return self.case.tools

    @property
    def expected(self) -> Outcome:
        """What the stream means."""
        return self.case.expected

    @property
    def events(self) -> tuple[Payload, ...]:
        """The decoded events: their values, each with its `event:` line.

        Raises:
            UsageError: the case shows in its bytes only.
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
        """The values of the decoded events; whoever gets them may change them."""
        return [payload.value for payload in self.events]

    def byte_chunks(self, *sizes: int) -> Iterator[bytes]:
        """The bytes of the stream, cut into chunks of these sizes, over and over.

        Without sizes, they come as the case cuts them.
        """
        return self.case.byte_chunks(*sizes)

    @property
    def url(self) -> str:
        """The base URL of the API at which a running server plays this case and nothing else."""
        return self._url(self.case)

    def check(self, got: Any, policy: Policy | None = None) -> None:
        """Fails the test if a client got the case wrong.

        Args:
            got: its `Outcome`; the exception that it raised; a probe that was fed; or what
                makes a probe, which is then fed here.
            policy: how the client means to behave; default: `Policy()`.
        """
        policy = policy or Policy()
        if isinstance(got, Exception):
            got = Outcome.of(errors=[got])
        if isinstance(got, Outcome):
            found = differences(self.case, got, policy)
        elif hasattr(got, "feed") and not isinstance(got, type):
            found = differences(self.case, drive(got, ()), policy)
        else:
            if self._level == "payloads" and self.case.events is None:
                raise self._no_payloads()
            found = run(got, self.case, policy, self._level)
        if found:
            names = dict.fromkeys(each.invariant for each in found)
            words = [f"  {each.words}" for each in found]
            pytest.fail("\n".join(self._told(names, words)), pytrace=False)

    def _told(self, names: Iterable[str], words: list[str]) -> Iterator[str]:
        yield f"{self.name} breaks {', '.join(names)}"
        if self.case.plain is not None:
            yield f"  (unlike its plain form, this case tests {self.case.invariant})"
        yield from words
        yield "  the stream:"
        yield from (f"    {line}" for line in drawn(self.case).splitlines())
        yield f"  to run it again: {self._again}"
