"""Runs accumulators that are written in Python through the prefixes of streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from mockllm.checking.cases.case import Case
from mockllm.checking.cuts.judging import CutAnswer
from mockllm.checking.cuts.prefixes import Level, Prefix, prefix_at, prefixes
from mockllm.checking.cuts.report import CutReport, cut_report, cut_text
from mockllm.checking.cuts.samples import kit_samples_of, samples_of
from mockllm.checking.judging.running import Factory, drive, new_probe
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.probes import Delta
from mockllm.checking.reports.check import Scenarios, scenarios_of
from mockllm.errors import UsageError
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import WireProtocol
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


def planned(api: Api, level: Level, scenarios: Scenarios = ()) -> Iterator[Prefix]:
    """The prefixes of all samples, for each of them after the whole stream."""
    if api not in PROTOCOLS:
        raise UsageError(f"there is no API {api!r}; there are: {', '.join(PROTOCOLS)}")
    yield from _of_kit(api, level)
    for case in samples_of(api, scenarios_of(scenarios)):
        yield from _of(case, level)


_made: dict[tuple[Api, Level], tuple[WireProtocol, tuple[Prefix, ...]]] = {}


def _of_kit(api: Api, level: Level) -> tuple[Prefix, ...]:
    """The prefixes of the kit's samples, made once: several tests of a project need them."""
    known = _made.get((api, level))
    if known is None or known[0] is not PROTOCOLS[api]:
        found = tuple(cut for case in kit_samples_of(api) for cut in _of(case, level))
        known = _made[api, level] = PROTOCOLS[api], found
    return known[1]


def _of(case: Case, level: Level) -> Iterator[Prefix]:
    if level == "bytes" or case.events is not None:
        yield prefix_at(case, sum(map(len, case.chunks)))
        yield from prefixes(case, level)


def answer_to(client: Factory, prefix: Prefix, level: Level) -> CutAnswer:
    """What a client does with a prefix: an exception is an error that it reports."""
    probe = _Recording(new_probe(client, prefix.case))
    outcome = drive(cast("Any", probe), _feeds(prefix, level))
    return CutAnswer(outcome, tuple(probe.handed_on))


class _Recording:
    """A probe that keeps the calls which a client hands on before the end."""

    def __init__(self, probe: Any) -> None:
        self._probe = probe
        self.handed_on: list[Call] = []

    def feed(self, *arguments: Any) -> None:
        delta = self._probe.feed(*arguments)
        calls: Any = Outcome.of(tool_calls=delta.tool_calls if isinstance(delta, Delta) else ())
        if isinstance(calls.tool_calls, tuple):
            self.handed_on += [call for call in calls.tool_calls if isinstance(call, Call)]

    def close(self) -> None:
        close = getattr(self._probe, "close", None)
        if close is not None:
            close()

    def outcome(self) -> Any:
        return self._probe.outcome()


def _feeds(prefix: Prefix, level: Level) -> Iterable[tuple[Any, ...]]:
    if level == "bytes":
        return [(chunk,) for chunk in prefix.chunks]
    assert prefix.case.events is not None, f"{prefix.case.name} shows at the level of bytes only"
    decoded = prefix.case.events.copy().decoded
    return decoded if prefix.place == "whole" else decoded[: prefix.events]
