"""Every invariant as a test of its own: `AccumulatorSuite` and `ClientSuite`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
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
    told,
)
from mockllm.checking.judging.running import Level
from mockllm.checking.reports.check import shrunk
from mockllm.checking.reports.shrinking import shrink
from mockllm.errors import UsageError
from mockllm.scenario.model import Scenario
from mockllm_pytest.cases import CasePlayer, found_scenarios
from mockllm_pytest.options import chosen
from mockllm_pytest.serving import MockService

__all__ = ["AccumulatorSuite", "ClientSuite"]

_ON_THE_WAY = (
    "surface-once",
    "surface-complete",
    "text-accumulates",
    "delta-is-fragment",
    "delta-first",
    "stage-empties",
)
_TRIES_OVER_HTTP = 50


@dataclass(frozen=True, slots=True)
class _Examined:
    """What came of an examination: by invariant what is broken, and the words for it."""

    report: Report
    told: Callable[[Report], str]


_STASH = pytest.StashKey[_Examined]()


class _Suite:
    """What both suites share.

    Args:
        api: the protocol that the client speaks.
        policy: how the client means to behave where good designs differ.
        variations: ways of cutting each answer; default: `--mockllm-variations`.
        quirks: whether the quirks of real servers are played, too.
        scenarios: names, paths and scenarios; default: all that may be named.
        seed: what variations are drawn from; default: `--mockllm-seed`.
        xfail: the invariants that are known to be broken, each with the reason; one that is
            not broken any more is a failure.
    """

    api: ClassVar[str] = ""
    policy: ClassVar[Policy] = Policy()
    variations: ClassVar[int | None] = None
    quirks: ClassVar[bool] = True
    scenarios: ClassVar[Any] = None
    seed: ClassVar[str | None] = None
    xfail: ClassVar[Mapping[str, str]] = {}

    _variations: ClassVar[int] = 25

    def body(self, value: Any) -> Outcome:
        """What the client makes of an answer that is not streamed.

        Args:
            value: the JSON value of its body.
        """
        raise NotImplementedError

    @abstractmethod
    def _examined(self, found: Iterable[Case], request: pytest.FixtureRequest) -> _Examined:
        """What came of taking the client through cases."""

    @abstractmethod
    def _skipped(self, invariant: str) -> str | None:
        """Why an invariant cannot be seen to be broken; None where it can."""

    def _hold(self, invariant: str, request: pytest.FixtureRequest) -> None:
        examined = self._once(request)
        broken = examined.report.broken().get(invariant, [])
        reason = self.xfail.get(invariant)
        if reason is not None:
            if broken:
                pytest.xfail(reason)
            pytest.fail(f"[XPASS(strict)] {reason}", pytrace=False)
        if broken:
            words = examined.told(replace(examined.report, failures=tuple(broken)))
            again = f'to run it again: pytest "{request.node.nodeid}"'
            pytest.fail(f"{words}\n{again} --mockllm-seed {self._seed(request)}", pytrace=False)
        why = self._skipped(invariant)
        if invariant == "stream-equals-body":
            why = None if self._has_body else "give the suite a method body(value) to compare"
        if why is not None:
            pytest.skip(why)

    def _once(self, request: pytest.FixtureRequest) -> _Examined:
        """The examination, made for the first test of the class."""
        stash: pytest.Stash = request.node.getparent(pytest.Class).stash
        if _STASH not in stash:
            _check_names(self.xfail)
            if not self.api:
                raise UsageError(f'say which API {type(self).__name__} is about: api = "chat"')
            service: MockService = request.getfixturevalue("mockllm_server")
            found = found_scenarios(service.library, self.scenarios, request.path.parent)
            service.played.update(one.name for one in found if one.plays_over(self.api))
            examined = self._examined(self._cases(found, request), request)
            stash[_STASH] = self._with_bodies(found, examined)
        return stash[_STASH]

    def _cases(
        self, scenarios: Iterable[Scenario], request: pytest.FixtureRequest
    ) -> Iterator[Case]:
        return cases(
            self.api,
            scenarios,
            variations=chosen(request.config, "variations", self.variations, self._variations),
            quirks=self.quirks,
            seed=self._seed(request),
            level=self._level,
        )

    @property
    def _level(self) -> Level:
        return "bytes"

    def _seed(self, request: pytest.FixtureRequest) -> str:
        return chosen(request.config, "seed", self.seed, "0")

    @property
    def _has_body(self) -> bool:
        return type(self).body is not _Suite.body

    def _with_bodies(self, scenarios: Iterable[Scenario], examined: _Examined) -> _Examined:
        if not self._has_body:
            return examined
        found = cases(self.api, scenarios, variations=0, quirks=False)
        bodies = examine_bodies(self.body, found, self.policy)
        report = examined.report
        return replace(
            examined, report=replace(report, failures=(*report.failures, *bodies.failures))
        )


def _check_names(xfail: Mapping[str, str]) -> None:
    for name in xfail:
        if name not in INVARIANTS:
            near = get_close_matches(name, INVARIANTS, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise UsageError(
                f"xfail: there is no invariant {name!r}; {hint}There are: {', '.join(INVARIANTS)}"
            )


def _test_of(invariant: str, promise: str) -> Callable[..., None]:
    def test(self: _Suite, request: pytest.FixtureRequest) -> None:
        self._hold(invariant, request)

    test.__name__ = f"test_{invariant.replace('-', '_')}"
    test.__qualname__ = f"_Suite.{test.__name__}"
    test.__doc__ = f"{promise[0].upper()}{promise[1:]}."
    return test


for _invariant, _promise in INVARIANTS.items():
    _test = _test_of(_invariant, _promise)
    setattr(_Suite, _test.__name__, _test)


class AccumulatorSuite(_Suite):
    """Takes an accumulator through the cases of a protocol; every invariant is a test.

    Subclass it under a name that pytest collects, set `api`, and give it `probe`:

        class TestMine(AccumulatorSuite):
            api = "chat"

            def probe(self):
                return MyProbe()

    Args:
        level: whether probes are fed decoded events (`payloads`) or `bytes`.
    """

    level: ClassVar[Level] = "payloads"

    def probe(self) -> Probe | ByteProbe:
        """A new probe, for one stream."""
        raise NotImplementedError(f"give {type(self).__name__} a method probe()")

    @property
    def _level(self) -> Level:
        return self.level

    def _skipped(self, invariant: str) -> str | None:
        if invariant in _ON_THE_WAY and not self.policy.intermediate:
            return "needs a look at every chunk: policy = Policy(intermediate=True)"
        if invariant == "input-untouched" and self.level == "bytes":
            return "bytes cannot be changed"
        return None

    def _examined(self, found: Iterable[Case], request: pytest.FixtureRequest) -> _Examined:
        factory = _Made(self)
        report = examine(factory, found, self.policy, level=self.level)

        def words(broken: Report) -> str:
            if any(failure.invariant == "stream-equals-body" for failure in broken.failures):
                return told(broken)
            small = shrunk(broken, factory, self.policy, level=self.level)
            return told(small, factory, level=self.level, policy=self.policy)

        return _Examined(report, words)


class _Made:
    """Makes the probes of a suite, and says where they come from."""

    def __init__(self, suite: AccumulatorSuite) -> None:
        self._suite = suite
        self.__module__ = type(suite).__module__
        self.__qualname__ = f"{type(suite).__qualname__}().probe"

    def __call__(self) -> Probe | ByteProbe:
        return self._suite.probe()


class ClientSuite(_Suite):
    """Takes a whole client through the cases of a protocol, over HTTP; every invariant is a test.

    Subclass it under a name that pytest collects, set `api`, and give it `run`:

        class TestMine(ClientSuite):
            api = "chat"

            def run(self, base_url, case):
                return Outcome.of(text=ask(base_url, case.prompt))

    Args:
        speed: of timed streams; default: pauses are left out.
    """

    speed: ClassVar[float | None] = None

    _variations: ClassVar[int] = 3

    def run(self, base_url: str, case: Case) -> Outcome:
        """Asks for a streamed answer to the case's prompt, and says what came of it.

        Args:
            base_url: what a client of the API is given.
        """
        raise NotImplementedError(f"give {type(self).__name__} a method run(base_url, case)")

    def _skipped(self, invariant: str) -> str | None:
        if invariant == "input-untouched" or invariant in _ON_THE_WAY:
            return "a whole client is seen at the end of its streams only; see AccumulatorSuite"
        return None

    def _examined(self, found: Iterable[Case], request: pytest.FixtureRequest) -> _Examined:
        played = CasePlayer(request, self.speed)
        request.session.addfinalizer(played.close)

        def judged(some: Iterable[Case]) -> Report:
            return examine_client(self.run, played.at, some, self.policy)

        def breaks(case: Case, invariant: str) -> bool:
            return any(failure.invariant == invariant for failure in judged([case]).failures)

        def words(broken: Report) -> str:
            first, *rest = next(iter(broken.broken().values()))
            if first.invariant == "stream-equals-body":
                return told(broken)
            try:
                small = shrink(
                    first.case, lambda one: breaks(one, first.invariant), tries=_TRIES_OVER_HTTP
                )
            except UsageError:
                return told(broken)
            return told(replace(broken, failures=(replace(first, shrunk=small), *rest)))

        return _Examined(judged(found), words)
