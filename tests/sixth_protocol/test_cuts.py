"""Streams of a new protocol are cut like those of any other."""

from __future__ import annotations

from dataclasses import replace

from mockllm.checking.cuts import CUT_RULES, check_cuts, cut_text, examine_cuts
from tests.sixth_protocol.accumulator import EchoAccumulator


def test_a_correct_accumulator_passes():
    """At the level of payloads, under both rules."""
    report = check_cuts(EchoAccumulator, api="echo")
    assert all(sum(row.judged for row in report.of(rule)) for rule in CUT_RULES)


def test_a_client_that_reports_no_cut_is_found():
    """With the last event of the shortest prefix."""

    class Silent(EchoAccumulator):
        def outcome(self):
            return replace(super().outcome(), errors=())

    report = examine_cuts(Silent, api="echo")
    assert report.shortest("cut-reported") is not None
    assert "last event: {" in cut_text(report)
