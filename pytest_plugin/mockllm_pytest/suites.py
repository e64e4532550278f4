"""Every invariant as a test of its own: `AccumulatorSuite` and `ClientSuite`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from mockllm.checking import (
    INVARIANTS,
    ByteProbe,
    Case,
    Outcome,
    Policy,
    Probe,
    Report,
    cases,
    examine,
    examine_bodies,
    examine_client,
    report_text,
)
from mockllm.checking.cases.case import Level
from mockllm.checking.cases.compile import check_api
from mockllm.checking.reports.check import shrunk, summary
from mockllm.checking.reports.shrinking import TRIES
from mockllm.checking.rules import promise
from mockllm.scenario.model import Scenario
from mockllm_pytest.cases import CasePlayer, find_scenarios
from mockllm_pytest.options import setting
from mockllm_pytest.serving import MockService
from mockllm_pytest.suite_base import RuleSuite, each_rule_is_a_test, rerun_line

_INTERMEDIATE = (
    "surface-once",
    "surface-complete",
    "text-accumulates",
    "delta-is-fragment",
    "delta-first",
    "stage-empties",
)
"""The invariants that show in the middle of a stream only."""


@dataclass(frozen=True, slots=True)
class _Examination:
    """The report of a client, and how it runs through other cases."""

    report: Report
    examine_cases: Callable[[Iterable[Case]], Report]


class _Suite(RuleSuite):
    """Base of both suites.

    Args:
        policy: how the client intends to behave where good designs differ.
        variations: how many ways of cutting each answer; default: `--mockllm-variations`.
        quirks: whether to play the quirks of real servers, too.
        scenarios: names, paths and scenarios; default: all that the run knows.
        seed: the seed of the variations; default: `--mockllm-seed`.
        allow: the cases that the client may get wrong, each with the reason, by the name of a
            quirk (`chat-name-split`, `sse-crlf:cr`) or of a case. They are added to those of
            `policy.allow`.
    """

    policy: ClassVar[Policy] = Policy()
    variations: ClassVar[int | None] = None
    quirks: ClassVar[bool] = True
    scenarios: ClassVar[Any] = None
    seed: ClassVar[str | None] = None
    allow: ClassVar[Mapping[str, str]] = {}

    _variations: ClassVar[int] = 25
    _tries: ClassVar[int] = TRIES

    def body(self, value: Any) -> Outcome:
        """The client's outcome for an answer that is not streamed.

        Args:
            value: the JSON value of its body.
        """
        raise NotImplementedError

    @abstractmethod
    def _examine(self, found: Iterable[Case], request: pytest.FixtureRequest) -> _Examination:
        """Runs the client through cases."""

    @abstractmethod
    def _skip_reason(self, invariant: str) -> str | None:
        """Why the suite cannot check an invariant; None if it can."""

    def _run_client(self, request: pytest.FixtureRequest) -> _Examination:
        service: MockService = request.getfixturevalue("mockllm_server")
        scenarios = find_scenarios(service.library, self.scenarios, request.path.parent)
        service.played.update(
            scenario.name for scenario in scenarios if scenario.plays_over(self.api)
        )
        examination = self._examine(self._cases(scenarios, request), request)
        return self._with_bodies(scenarios, examination)

    def _summary(self, found: _Examination) -> str:
        return "\n".join(summary(found.report))

    def _is_broken(self, rule: str, found: _Examination) -> bool:
        return rule in found.report.broken()

    def _mistake(self, rule: str, found: _Examination, request: pytest.FixtureRequest) -> str:
        report = found.report
        broken = replace(report, failures=tuple(report.broken()[rule]))
        text = self._text(shrunk(broken, found.examine_cases, tries=self._tries))
        return f"{text}\n{rerun_line(request, f' --mockllm-seed {self._seed(request)}')}"

    def _text(self, report: Report) -> str:
        return report_text(report)

    def _not_judged(self, rule: str, found: _Examination) -> str:
        if found.report.stopped:
            return f"not judged: {found.report.stopped}"
        if rule == "stream-equals-body":
            return "" if self._has_body else "give the suite a method body(value) to compare"
        if not found.report.judges(rule):
            return "not judged: the client keeps none of the fields, or no case has them"
        return self._skip_reason(rule) or ""

    @property
    def _policy(self) -> Policy:
        """The policy, with the cases that the suite allows."""
        return replace(self.policy, allow={**self.policy.allow, **self.allow})

    def _cases(
        self, scenarios: Iterable[Scenario], request: pytest.FixtureRequest
    ) -> Iterator[Case]:
        return cases(
            self.api,
            scenarios,
            variations=setting(request.config, "variations", self.variations, self._variations),
            quirks=self.quirks,
            seed=self._seed(request),
            level=self._level,
        )

    @property
    def _level(self) -> Level:
        return "bytes"

    def _seed(self, request: pytest.FixtureRequest) -> str:
        return setting(request.config, "seed", self.seed, "0")

    @property
    def _has_body(self) -> bool:
        return type(self).body is not _Suite.body

    def _with_bodies(
        self, scenarios: Iterable[Scenario], examination: _Examination
    ) -> _Examination:
        if not self._has_body:
            return examination
        plain = cases(self.api, scenarios, variations=0, quirks=False)
        bodies = examine_bodies(self.body, plain, self._policy)
        report = examination.report
        results = (*report.results, *bodies.results)
        failures = (*report.failures, *bodies.failures)
        return replace(examination, report=replace(report, results=results, failures=failures))


@each_rule_is_a_test(INVARIANTS, promise)
class AccumulatorSuite(_Suite):
    """Runs an accumulator through the cases of a protocol; every invariant is a test.

    Subclass it under a name that pytest collects, set `api`, and give it `probe`:

        class TestMine(AccumulatorSuite):
            api = "chat"

            def probe(self):
                return MyProbe()

    Args:
        level: whether probes take decoded events (`payloads`) or `bytes`.
    """

    level: ClassVar[Level] = "payloads"

    def probe(self) -> Probe | ByteProbe:
        """A new probe, for one stream."""
        raise NotImplementedError(f"give {type(self).__name__} a method probe()")

    @property
    def _level(self) -> Level:
        return self.level

    def _skip_reason(self, invariant: str) -> str | None:
        if invariant in _INTERMEDIATE and not self.policy.intermediate:
            return "needs a look at every chunk: policy = Policy(intermediate=True)"
        if invariant == "input-untouched" and self.level == "bytes":
            return "bytes cannot be changed"
        return None

    def _examine(self, found: Iterable[Case], request: pytest.FixtureRequest) -> _Examination:
        def examine_cases(some: Iterable[Case]) -> Report:
            return examine(_ProbeFactory(self), some, self._policy, level=self.level)

        return _Examination(examine_cases(found), examine_cases)

    def _text(self, report: Report) -> str:
        return report_text(report, _ProbeFactory(self), level=self.level, policy=self._policy)


class _ProbeFactory:
    """Makes the probes of a suite. Its import path leads to the suite's own method `probe`, so
    that the test that reproduces a failure can import it."""

    def __init__(self, suite: AccumulatorSuite) -> None:
        self._suite = suite
        self.__module__ = type(suite).__module__
        self.__qualname__ = f"{type(suite).__qualname__}().probe"

    def __call__(self) -> Probe | ByteProbe:
        return self._suite.probe()


@each_rule_is_a_test(INVARIANTS, promise)
class ClientSuite(_Suite):
    """Runs a whole client through the cases of a protocol, over HTTP; every invariant is a test.

    Subclass it under a name that pytest collects, set `api`, and give it `run`:

        class TestMine(ClientSuite):
            api = "chat"

            def run(self, base_url, case):
                return Outcome.of(text=ask(base_url, case.prompt))

    Args:
        speed: of timed streams; default: without pauses.
    """

    speed: ClassVar[float | None] = None

    _variations: ClassVar[int] = 3
    _tries: ClassVar[int] = 50

    def run(self, base_url: str, case: Case) -> Outcome:
        """Requests a streamed answer to the case's prompt, and returns the client's outcome.

        Args:
            base_url: the base URL for a client of the API.
        """
        raise NotImplementedError(f"give {type(self).__name__} a method run(base_url, case)")

    def _skip_reason(self, invariant: str) -> str | None:
        if invariant == "input-untouched" or invariant in _INTERMEDIATE:
            return "a whole client is seen at the end of its streams only; see AccumulatorSuite"
        return None

    def _examine(self, found: Iterable[Case], request: pytest.FixtureRequest) -> _Examination:
        check_api(self.api, over_http=True)
        player = CasePlayer(request, self.speed)
        request.session.addfinalizer(player.close)

        def examine_cases(some: Iterable[Case]) -> Report:
            return examine_client(
                self.run, player.at, some, self._policy, usage_requested=player.requests_usage
            )

        return _Examination(examine_cases(found), examine_cases)
