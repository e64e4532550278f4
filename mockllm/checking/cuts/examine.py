"""Runs accumulators that are written in Python through the prefixes of streams."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.cases.compile import check_api
from mockllm.checking.cuts.judging import CutAnswer
from mockllm.checking.cuts.prefixes import CutLevel, kit_samples_of, prefix_at, prefixes, samples_of
from mockllm.checking.cuts.report import CutReport, cut_report, cut_text
from mockllm.checking.judging.running import Factory, Level, drive, feed_arguments, new_probe
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.probes import Delta
from mockllm.checking.reports.check import Scenarios, scenarios_of
from mockllm.scenario.model import Api


def check_cuts(
    client: Factory,
    *,
    api: Api,
    level: Level = "payloads",
    scenarios: Scenarios = (),
) -> CutReport:
    """Cuts streams at every place that matters; the report, if the client reports each cut.

    Args:
        client: makes a new probe (`Probe`, or `ByteProbe` with `level="bytes"`) for each stream.
        api: the name of the protocol that the client speaks.
        scenarios: files, folders or scenarios whose answers are cut, besides the kit's samples.

    Raises:
        AssertionError: a prefix fools the client, or nothing could be judged; the message has the
            shortest such prefix with its last event and bytes.
        ProbeError: the client cannot be run.
        UsageError: there is no such API.
    """
    report = examine_cuts(client, api=api, level=level, scenarios=scenarios)
    if not report.good or not report.judged:
        raise AssertionError(cut_text(report))
    return report


def examine_cuts(
    client: Factory,
    *,
    api: Api,
    level: Level = "payloads",
    scenarios: Scenarios = (),
) -> CutReport:
    """The same as `check_cuts`, but returns every report."""
    found = planned(api, level, scenarios)
    return cut_report(api, level, ((cut, answer_to(client, cut, level)) for cut in found))


def planned(api: Api, level: CutLevel, scenarios: Scenarios = ()) -> Iterator[Case]:
    """The prefixes of all samples, for each of them after the whole stream."""
    check_api(api)
    yield from _of_kit(api, level)
    for case in samples_of(api, scenarios_of(scenarios)):
        yield from _of(case, level)


@cache
def _of_kit(api: Api, level: CutLevel) -> tuple[Case, ...]:
    """The prefixes of the kit's samples, made once: several tests of a project need them."""
    return tuple(cut for case in kit_samples_of(api) for cut in _of(case, level))


def _of(case: Case, level: CutLevel) -> Iterator[Case]:
    if level == "bytes" or case.events is not None:
        yield prefix_at(case, sum(map(len, case.chunks)), level)
        yield from prefixes(case, level)


def answer_to(client: Factory, case: Case, level: Level) -> CutAnswer:
    """What a client does with a prefix: an exception is an error that it reports."""
    handed_on: list[Call] = []

    def note(delta: object) -> None:
        calls: Any = delta.tool_calls if isinstance(delta, Delta) else ()
        calls = Outcome.of(tool_calls=calls).tool_calls
        if isinstance(calls, tuple):
            handed_on.extend(call for call in calls if isinstance(call, Call))

    outcome = drive(new_probe(client, case), feed_arguments(case, level), note)
    return CutAnswer(outcome, tuple(handed_on))
