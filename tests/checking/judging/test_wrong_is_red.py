"""What a report counts as wrong makes the run red: both come from the same results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from examples.accumulators import REFERENCES
from mockllm.checking import Case, Outcome, Policy, Probe, Report, cases, examine
from mockllm.play.quirks.samples import TEXT
from mockllm.play.replay.loading import load, shipped_scenarios
from mockllm.scenario.model import Api, Comments, Scenario, TurnSpec, Wire
from mockllm.wire.protocols import PROTOCOLS

WIRED = ("unicode", "keepalive")
"""Shipped scenarios that say themselves how their events are written or cut."""


def _without_astral(text: str) -> str:
    return "".join(char for char in text if ord(char) <= 0xFFFF)


def _none(text: str) -> str:
    return ""


def _client(api: Api, change: Callable[[str], str]) -> Callable[[], Probe]:
    class Changed(REFERENCES[api]):  # type: ignore[misc]  # each API has its own class
        def outcome(self) -> Outcome:
            outcome = super().outcome()
            return replace(outcome, text=change(outcome.text))

    return Changed


def _unexplained(report: Report) -> set[str]:
    """The wrong cases that are neither excused nor failures, nor have a plain form that is."""
    red = {failure.case.name for failure in report.failures}
    wrong = (one for one in report.results if one.judgement.differences and not one.excuse)
    return {
        result.case.name
        for result in wrong
        if result.case.name not in red
        and (result.case.plain is None or result.case.plain.name not in red)
    }


@pytest.mark.parametrize("change", [_without_astral, _none])
@pytest.mark.parametrize("api", PROTOCOLS)
def test_shipped_scenarios_that_cut_themselves_fail(api: Api, change: Callable[[str], str]) -> None:
    """A scenario with `wire` is no case of its plain form; its mistakes are failures of its own."""
    scenarios = [each for each in load([shipped_scenarios()]) if each.name in WIRED]
    found = list(cases(api, scenarios, variations=2, quirks=False, level="payloads"))
    report = examine(_client(api, change), found)
    assert report.verdicts["wrong"]
    assert set(report.broken()) == {"text-accumulates"}
    assert not _unexplained(report)


def _with_wire(scenario: Scenario, wire: Wire) -> Scenario:
    def wired(turn: TurnSpec) -> TurnSpec:
        return replace(turn, wire=wire)

    return replace(scenario, name="wired", turns=tuple(map(wired, scenario.turns)))


@pytest.mark.parametrize(
    "wire", [Wire(comments=Comments(1, "~")), Wire(quirks=("chat-delta-null",))]
)
def test_a_scenario_with_wire_fails_under_the_name_of_the_mistake(wire: Wire) -> None:
    """Comments or a quirk of the scenario are not blamed for what its plain form shows, too."""
    found = list(cases("chat", [_with_wire(TEXT, wire)], variations=2, quirks=False))
    report = examine(_client("chat", _none), found)
    assert {failure.invariant for failure in report.failures} == {"text-accumulates"}
    assert {failure.case.name for failure in report.failures} == {"chat/wired"}


def _allow(*names: str) -> Policy:
    return Policy(allow=dict.fromkeys(names, "a known limit"))


def _of_text() -> list[Case]:
    return list(cases("chat", [TEXT], variations=2, quirks=False, level="payloads"))


def test_an_excused_case_excuses_what_repeats_its_mistake() -> None:
    """Its variations, wrong in nothing else, are excused by the same name, and counted there."""
    found = _of_text()
    report = examine(_client("chat", _none), found, _allow("chat/sample-text"))
    assert report.good
    assert report.verdicts == {}
    assert {result.case.name for result in report.excused} == {each.name for each in found}


def test_what_a_variation_adds_to_an_excused_case_is_a_failure() -> None:
    """The excuse covers the mistakes of the case alone."""
    lengths: list[int] = []

    class FinishLostInFragments(_client("chat", _none)):  # type: ignore[misc]  # a class
        def __init__(self) -> None:
            super().__init__()
            self.count = 0

        def feed(self, payload: object, event: str | None = None) -> object:
            self.count += 1
            return super().feed(payload, event)

        def outcome(self) -> Outcome:
            lengths.append(self.count)
            outcome: Outcome = super().outcome()
            return replace(outcome, finish="length") if self.count != lengths[0] else outcome

    report = examine(FinishLostInFragments, _of_text(), _allow("chat/sample-text"))
    assert report.verdicts == {"wrong": 2}
    assert {f.case.name for f in report.failures} == {
        result.case.name for result in report.results if not result.excuse
    }
