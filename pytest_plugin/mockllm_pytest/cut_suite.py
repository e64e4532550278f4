"""Streams that are cut at every place, as two tests: `CutSuite`."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from mockllm.checking import ByteProbe, Probe
from mockllm.checking.cuts import CUT_RULES, CutReport, cut_text, examine_cuts
from mockllm.checking.judging.running import Level
from mockllm.checking.rules import promise
from mockllm_pytest.suite_base import RuleSuite, each_rule_is_a_test


@each_rule_is_a_test(CUT_RULES, promise)
class CutSuite(RuleSuite):
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

    level: ClassVar[Level] = "payloads"
    scenarios: ClassVar[Any] = ()

    def probe(self) -> Probe | ByteProbe:
        """A new probe, for one stream."""
        raise NotImplementedError(f"give {type(self).__name__} a method probe()")

    def _examined(self, request: pytest.FixtureRequest) -> CutReport:
        return examine_cuts(self.probe, api=self.api, level=self.level, scenarios=self.scenarios)

    def _summary(self, found: CutReport) -> str:
        return cut_text(found, ())

    def _is_broken(self, rule: str, found: CutReport) -> bool:
        return found.shortest(rule) is not None

    def _mistake(self, rule: str, found: CutReport, request: pytest.FixtureRequest) -> str:
        return cut_text(found, [rule])

    def _not_judged(self, rule: str, found: CutReport) -> str:
        rows = found.of(rule)
        if any(row.judged for row in rows):
            return ""
        reasons = {text for row in rows for text in row.not_judged}
        return f"not judged: {'; '.join(sorted(reasons)) or 'no stream has a call'}"
