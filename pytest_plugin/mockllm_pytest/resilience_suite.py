"""Every rule of resilience as a test of its own: `ResilienceSuite`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import ClassVar

import pytest

from mockllm.checking.resilience.cases import fault_cases
from mockllm.checking.resilience.model import RULES, FaultCase
from mockllm.checking.resilience.policy import ResiliencePolicy
from mockllm.conformance.fault_check import FaultCheck, check_faults
from mockllm.conformance.fault_functions import FunctionPlayer, Returned
from mockllm.conformance.fault_results import RuleResult
from mockllm.conformance.fault_terminal import log_line
from mockllm.errors import ProbeError, UsageError
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread
from mockllm_pytest.plugin import SUITE_SECTION

__all__ = ["ResilienceSuite"]

_STASH = pytest.StashKey[FaultCheck]()
_BROKEN = pytest.StashKey[str]()
"""Why the client cannot be run."""


class ResilienceSuite:
    """Breaks connections and answers of a whole client; every rule is a test.

    Subclass it under a name that pytest collects, set `api`, and give it `run`:

        class TestMine(ResilienceSuite):
            api = "chat"

            def run(self, base_url, case):
                client = MyClient(base_url, tries=case.tries, idle_timeout=case.idle_timeout)
                return Outcome.of(text=client.ask(case.prompt))

    The cases run side by side, each call of `run` in a thread of its own, when the first test of
    the class begins. A rule that needs what `run` does not return is skipped, with the reason.

    Args:
        api: the name of the protocol that the client speaks.
        policy: the settings of the client, where it has its own.
        only: patterns of names of cases, with * and ?; default: all cases.
        xfail: the rules that are known to be broken, each with the reason. If one of them holds,
            its test fails.
    """

    api: ClassVar[str] = ""
    policy: ClassVar[ResiliencePolicy] = ResiliencePolicy()
    only: ClassVar[tuple[str, ...]] = ()
    xfail: ClassVar[Mapping[str, str]] = {}

    def run(self, base_url: str, case: FaultCase) -> Returned | Awaitable[Returned]:
        """Requests streamed answers to the case's prompt, and returns the client's outcome.

        A mapping in the form of the answers of runners says more than an `Outcome`: `partial`,
        `handed_on`, `earlier`, `left`, and the `type` and `kind` of errors. An exception that it
        raises counts as the error that the client reports. It may be a coroutine function.

        Args:
            base_url: the base URL for a client of the API.
            case: has `prompt`, `tools`, `model`; `tries`, `idle_timeout` and `deadline` for the
                client to be set to; `requests`, how often to send the prompt; and `cancel`, whether
                to cancel once the first piece came.
        """
        raise NotImplementedError(f"give {type(self).__name__} a method run(base_url, case)")

    def _check(self, rule: str, request: pytest.FixtureRequest) -> None:
        """Fails, skips or xfails the test of one rule."""
        check = self._examination(request)
        result = next(one for one in check.rules if one.rule == rule)
        reason = self.xfail.get(rule)
        if result.verdict == "wrong":
            if reason is not None:
                pytest.xfail(reason)
            rerun = f'to run it again: pytest "{request.node.nodeid}"'
            pytest.fail("\n".join([*_report(result, check), rerun]), pytrace=False)
        if result.verdict != "right":
            pytest.skip(f"{result.verdict}: {result.reason}")
        if reason is not None:
            pytest.fail(f"[XPASS(strict)] {reason}", pytrace=False)

    def _examination(self, request: pytest.FixtureRequest) -> FaultCheck:
        """What the first test of the class finds for all of them."""
        stash: pytest.Stash = request.node.getparent(pytest.Class).stash
        if _BROKEN in stash:
            pytest.skip(f"not judged: {stash[_BROKEN]}")
        if _STASH not in stash:
            try:
                stash[_STASH] = self._examined()
            except (ProbeError, UsageError) as error:
                stash[_BROKEN] = str(error)
                pytest.fail(str(error), pytrace=False)
            request.node.add_report_section("call", SUITE_SECTION, _summary(stash[_STASH]))
        return stash[_STASH]

    def _examined(self) -> FaultCheck:
        _check_names(self.xfail)
        if not self.api:
            raise UsageError(f'set the API of {type(self).__name__}, as in api = "chat"')
        cases = [one for one in fault_cases(self.api) if self._is_chosen(one)]
        if not cases:
            raise UsageError(f"only: no case has one of the names {', '.join(self.only)}")
        with ServerThread([], ServerOptions(grace=0)) as thread:
            return check_faults(FunctionPlayer(thread, self.run), cases, self.policy)

    def _is_chosen(self, case: FaultCase) -> bool:
        names = (case.name, case.name.partition("/")[2])
        return not self.only or any(
            fnmatchcase(name, pattern) for name in names for pattern in self.only
        )


def _check_names(xfail: Mapping[str, str]) -> None:
    for name in xfail:
        if name not in RULES:
            near = get_close_matches(name, RULES, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise UsageError(
                f"xfail: there is no rule {name!r}; {hint}There are: {', '.join(RULES)}"
            )


def _summary(check: FaultCheck) -> str:
    """How many cases were run, and what was not judged."""
    lines = [f"{len(check.cases)} cases with faults"]
    lines += [
        f"{one.rule}: {one.verdict}: {one.reason}"
        for one in check.rules
        if one.verdict in ("not judged", "not applicable")
    ]
    lines += [
        f"{case.case}: {one.rule}, seen once in three times: {one.text}"
        for case in check.cases
        for one in case.unconfirmed
    ]
    return "\n".join(lines)


def _report(rule: RuleResult, check: FaultCheck) -> Iterator[str]:
    """The mistake, and the log of the connections of its first case."""
    yield f"{rule.rule}: a client {rule.promise}"
    cases = {one.case: one for one in check.cases}
    first = cases[rule.cases[0]]
    yield f"  {first.case}: {first.about}"
    yield from (f"    {one.text}" for one in first.wrong if one.rule == rule.rule)
    yield from (f"      {log_line(one)}" for one in first.log)
    if len(rule.cases) > 1:
        yield f"  also in {', '.join(rule.cases[1:])}"


def _test_of(rule: str, promise: str) -> Callable[..., None]:
    def test(self: ResilienceSuite, request: pytest.FixtureRequest) -> None:
        self._check(rule, request)

    test.__name__ = f"test_{rule.replace('-', '_')}"
    test.__qualname__ = f"ResilienceSuite.{test.__name__}"
    test.__doc__ = f"A client {promise}."
    return test


for _rule, _promise in RULES.items():
    _test = _test_of(_rule, _promise)
    setattr(ResilienceSuite, _test.__name__, _test)
