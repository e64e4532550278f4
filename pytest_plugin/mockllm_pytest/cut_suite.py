"""Streams that are cut at every place, as two tests: `CutSuite`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest

from mockllm.checking import ByteProbe, Probe
from mockllm.checking.cuts import CUT_RULES, CutReport, cut_text, examine_cuts
from mockllm.checking.cuts.judging import CutRule
from mockllm.checking.judging.running import Level
from mockllm.errors import ProbeError, UsageError
from mockllm_pytest.plugin import SUITE_SECTION

__all__ = ["CutSuite"]

_STASH = pytest.StashKey[CutReport]()
_BROKEN = pytest.StashKey[str]()
"""Why the client cannot be run."""


class CutSuite:
    """Cuts the streams of a protocol at every place; each of the two rules is a test.

    Subclass it under a name that pytest collects, set `api`, and give it `probe`:

        class TestCuts(CutSuite):
            api = "chat"

            def probe(self):
                return MyProbe()

    Args:
        api: the name of the protocol that the client speaks.
        level: whether probes take decoded events (`payloads`) or `bytes`.
        scenarios: files, folders and scenarios whose answers are cut besides the kit's samples.
        xfail: the rules that are known to be broken, each with the reason. If one of them holds,
            its test fails.
    """

    api: ClassVar[str] = ""
    level: ClassVar[Level] = "payloads"
    scenarios: ClassVar[Any] = ()
    xfail: ClassVar[Mapping[str, str]] = {}

    def probe(self) -> Probe | ByteProbe:
        """A new probe, for one stream."""
        raise NotImplementedError(f"give {type(self).__name__} a method probe()")

    def _check(self, rule: CutRule, request: pytest.FixtureRequest) -> None:
        """Fails, skips or xfails the test of one rule."""
        report = self._report(request)
        reason = self.xfail.get(rule)
        if report.shortest(rule) is not None:
            if reason is not None:
                pytest.xfail(reason)
            pytest.fail(cut_text(report, [rule]), pytrace=False)
        rows = report.of(rule)
        if not any(row.judged for row in rows):
            reasons = {text for row in rows for text in row.not_judged}
            pytest.skip(f"not judged: {'; '.join(sorted(reasons)) or 'no stream has a call'}")
        if reason is not None:
            pytest.fail(f"[XPASS(strict)] {reason}", pytrace=False)

    def _report(self, request: pytest.FixtureRequest) -> CutReport:
        """The report, which the first test of the class makes for both.

        If the client cannot be run, this test fails, and the other is skipped.
        """
        stash: pytest.Stash = request.node.getparent(pytest.Class).stash
        if _BROKEN in stash:
            pytest.skip(f"not judged: {stash[_BROKEN]}")
        if _STASH not in stash:
            self._check_settings()
            try:
                report = examine_cuts(
                    self.probe, api=self.api, level=self.level, scenarios=self.scenarios
                )
            except ProbeError as error:
                stash[_BROKEN] = str(error)
                pytest.fail(str(error), pytrace=False)
            stash[_STASH] = report
            request.node.add_report_section("call", SUITE_SECTION, cut_text(report, ()))
        return stash[_STASH]

    def _check_settings(self) -> None:
        if not self.api:
            raise UsageError(f'set the API of {type(self).__name__}, as in api = "chat"')
        for name in self.xfail:
            if name not in CUT_RULES:
                raise UsageError(
                    f"xfail: there is no rule {name!r}; there are: {', '.join(CUT_RULES)}"
                )


def _test_of(rule: CutRule, promise: str) -> Callable[..., None]:
    def test(self: CutSuite, request: pytest.FixtureRequest) -> None:
        self._check(rule, request)

    test.__name__ = f"test_{rule.replace('-', '_')}"
    test.__qualname__ = f"CutSuite.{test.__name__}"
    test.__doc__ = f"{promise[0].upper()}{promise[1:]}."
    return test


for _rule, _promise in CUT_RULES.items():
    _test = _test_of(_rule, _promise)
    setattr(CutSuite, _test.__name__, _test)
