"""Streams of a new protocol are cut like those of any other."""

from __future__ import annotations

from dataclasses import replace

from mockllm.checking.rules import CUT_RULES
from mockllm.conformance.cuts import check_cuts, examine_cuts
from mockllm.conformance.reports.terminal import broken_rule_lines
from tests.sixth_protocol.accumulator import EchoAccumulator


def test_a_correct_accumulator_passes():
    """At the level of payloads, under both rules."""
    results = check_cuts(EchoAccumulator, api="echo")
    assert {case.verdict for case in results.cases} == {"right"}
    assert set(results.rules) == set(CUT_RULES)


def test_a_client_that_reports_no_cut_is_found():
    """With the last event of the shortest prefix."""

    class Silent(EchoAccumulator):
        def outcome(self):
            return replace(super().outcome(), errors=())

    results = examine_cuts(Silent, api="echo")
    assert "last event: {" in "\n".join(broken_rule_lines("cut-reported", results))
