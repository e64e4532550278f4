"""Streams that are cut at every place: the prefixes that a client gets, and what came of them.

`check_cuts` and `examine_cuts` run accumulators in Python, `cut_answers` asks a runner. Either way
`cut_results` makes a line for each sample, kind of place and rule. Its stream is the shortest
prefix that fools the client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from mockllm.checking.cases.case import Case, Cut, Level
from mockllm.checking.cases.compile import check_api
from mockllm.checking.cuts.judging import NO_PLACE, CutAnswer, judge_cut, why_not_judged
from mockllm.checking.cuts.prefixes import (
    PLACES,
    CutLevel,
    cut_of,
    kit_samples_of,
    prefix_at,
    prefixes,
    samples_of,
)
from mockllm.checking.judging.received import with_declared_types
from mockllm.checking.judging.running import Factory, drive, feed_arguments, new_probe
from mockllm.checking.outcome import Call, Outcome
from mockllm.checking.probes import Delta
from mockllm.checking.reports.check import Scenarios, scenarios_of
from mockllm.checking.rules import CUT_RULES, Verdict
from mockllm.conformance.case_names import Setting, check_command
from mockllm.conformance.clients.client_results import AdapterFrames, json_value, rule_line
from mockllm.conformance.clients.messages import Answer, as_json
from mockllm.conformance.clients.runner import Runner
from mockllm.conformance.driver import UNWATCHED, Driver
from mockllm.conformance.reports.terminal import terminal_lines
from mockllm.conformance.results import CaseResult, Client, Results, Stream
from mockllm.conformance.results.known import Standing
from mockllm.core.text import quantity, shorten
from mockllm.scenario.model import Api


def check_cuts(
    client: Factory, *, api: Api, level: Level = "payloads", scenarios: Scenarios = ()
) -> Results:
    """Cuts streams at every place that matters; the results, if the client reports each cut.

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
    results = examine_cuts(client, api=api, level=level, scenarios=scenarios)
    failed = any(case.failed for case in results.cases)
    if not failed and any(case.verdict == "right" for case in results.cases):
        return results
    raise AssertionError("\n".join(terminal_lines(results, Standing.of(results.cases))))


def examine_cuts(
    client: Factory, *, api: Api, level: Level = "payloads", scenarios: Scenarios = ()
) -> Results:
    """The same as `check_cuts`, but returns all results."""
    name = getattr(client, "__qualname__", type(client).__name__)
    run = Results(Client(name, language="python"), api, level, mockllm="", date="")
    listed = planned_cuts(api, level, scenarios)
    return cut_results(run, ((case, answer_to(client, case, level)) for case in listed))


# What a client gets


def planned_cuts(api: Api, level: CutLevel, scenarios: Scenarios = ()) -> Iterator[Case]:
    """The prefixes of all samples, for each of them after the whole stream."""
    check_api(api)
    yield from _of_kit(api, level)
    for case in samples_of(api, scenarios_of(scenarios)):
        yield from _prefixes(case, level)


@cache
def _of_kit(api: Api, level: CutLevel) -> tuple[Case, ...]:
    """The prefixes of the kit's samples, made once: several tests of a project need them."""
    return tuple(cut for case in kit_samples_of(api) for cut in _prefixes(case, level))


def _prefixes(case: Case, level: CutLevel) -> Iterator[Case]:
    if level == "bytes" or case.events is not None:
        yield prefix_at(case, sum(map(len, case.chunks)), level)
        yield from prefixes(case, level)


def answer_to(client: Factory, case: Case, level: Level) -> CutAnswer:
    """The answer of a client to a prefix: an exception is an error that it reports."""
    handed_on: list[Call] = []

    def note(delta: object) -> None:
        calls: Any = delta.tool_calls if isinstance(delta, Delta) else ()
        calls = Outcome.of(tool_calls=calls).tool_calls
        if isinstance(calls, tuple):
            handed_on.extend(call for call in calls if isinstance(call, Call))

    outcome = drive(new_probe(client, case), feed_arguments(case, level), note)
    return CutAnswer(outcome, tuple(handed_on))


def cut_answers(
    runner: Runner, cases: Sequence[Case], command: Sequence[str], driver: Driver = UNWATCHED
) -> Iterator[tuple[Case, CutAnswer]]:
    """The answers of a client to prefixes, in their order.

    Args:
        command: of the runner; an exception that its file raised is not the client's.
    """
    frames = AdapterFrames(runner.hello.client.adapter, command)
    for case, answer in runner.each(cases, driver, "prefixes"):
        yield case, _cut_answer(answer, frames, runner.hello.unsupported)


def _cut_answer(answer: Answer, frames: AdapterFrames, unsupported: frozenset[str]) -> CutAnswer:
    frame = frames.raised_in(answer) if any(error.crash for error in answer.outcome.errors) else ""
    unusable = answer.invalid
    if frame and not unusable:
        unusable = f"{frame} raised an exception, which is in the runner and not in the client"
    # Of an exception, an answer has the error alone: nothing else was handed on.
    absent = frozenset[str]() if answer.outcome.errors else answer.absent
    return CutAnswer(answer.outcome, absent=absent | unsupported, unusable=unusable)


# What comes of it


@dataclass(slots=True)
class _Line:
    """One sample, one kind of place and one rule.

    Args:
        not_judged: why prefixes were not judged, each reason with their number.
        shortest: the shortest prefix that fools the client, its answer, and what is wrong.
    """

    rule: str
    judged: int = 0
    wrong: int = 0
    shortest: tuple[Cut, CutAnswer, str] | None = None
    not_judged: Counter[str] = field(default_factory=Counter)

    def add(self, cut: Cut, answer: CutAnswer, whole: CutAnswer, reason: str) -> None:
        """Counts a prefix.

        Args:
            whole: what the client does with the whole stream.
            reason: why the prefix is not judged; "" if nothing but the answer says so.
        """
        reason = reason or answer.unusable_for(self.rule)
        if reason:
            self.not_judged[reason] += 1
            return
        self.judged += 1
        wrong = judge_cut(self.rule, cut, answer, whole)
        self.wrong += bool(wrong)
        if wrong and (self.shortest is None or cut.size < self.shortest[0].size):
            self.shortest = cut, answer, wrong

    @property
    def verdict(self) -> Verdict:
        """The verdict on the shortest prefix; without one, whether any was judged."""
        if self.shortest is None and self.not_judged:
            return "not applicable" if self.not_judged.keys() == {NO_PLACE} else "not judged"
        if self.shortest is None:
            return "right"
        errors = self.shortest[1].outcome.errors
        if self.rule == "cut-call-not-executed":
            return "wrong"
        if any(error.crash for error in errors):
            return "crash"
        return "wrong" if errors else "silent"

    def result(self, name: str, level: str, setting: Setting | None) -> CaseResult:
        """The line of the results."""
        shown: dict[str, Any] = {}
        mistakes: tuple[str, ...] = ()
        if self.shortest is not None:
            cut, answer, wrong = self.shortest
            count = f"{self.wrong} of {self.judged} prefixes fool the client"
            mistakes = (f"{count}; the shortest ends {_where(cut)}", *_prefix(cut, wrong, level))
            ending = "complete" if cut.ending == "orderly" else "closed"
            shown = {
                "actual": json_value(as_json(answer.outcome, answer.absent)),
                "stream": Stream(cut.chunks, (), cut.whole.answer.headers, ending),
            }
        return rule_line(
            name,
            self.rule,
            self.verdict,
            mistakes,
            "loud failure" if self.verdict == "crash" else None,
            reaction="error",
            reason="; ".join(f"{count} prefixes: {why}" for why, count in self.not_judged.items()),
            reproduce=() if setting is None else (check_command(setting, name),),
            **shown,
        )


def line_names(case: Case) -> list[str]:
    """The names of the lines that a prefix belongs to, such as
    `chat/cut-call@inside-event:cut-reported`; over HTTP, `+close` is behind the place of a
    connection that is closed."""
    cut = cut_of(case)
    closed = "+close" if cut.ending == "close" else ""
    sample = f"{case.api}/{cut.whole.scenario.name}@{cut.place}{closed}"
    return [f"{sample}:{rule}" for rule in case.rules]


def cut_results(
    run: Results, answers: Iterable[tuple[Case, CutAnswer]], setting: Setting | None = None
) -> Results:
    """The results of a client that was given prefixes.

    Args:
        run: the results but for the lines.
        answers: for each sample the whole stream first.
        setting: how the client was attached, for the lines that reproduce a case.
    """
    lines: dict[str, _Line] = {}
    unread: dict[str, str] = {}
    reasons: dict[str, str] = {}
    whole = CutAnswer(Outcome())
    for case, given in answers:
        cut = cut_of(case)
        answer = replace(given, outcome=with_declared_types(given.outcome)[0])
        if cut.place == "whole":
            whole = answer
            reasons = {rule: _reason(rule, cut.whole, answer, unread) for rule in CUT_RULES}
        for rule, name in zip(case.rules, line_names(case), strict=True):
            lines.setdefault(name, _Line(rule)).add(cut, answer, whole, reasons[rule])
    rows = (line.result(name, run.level, setting) for name, line in lines.items())
    return replace(run, cases=tuple(rows))


def _reason(rule: str, case: Case, answer: CutAnswer, unread: dict[str, str]) -> str:
    """Why the prefixes of a sample are not judged under a rule; "" if they are.

    Args:
        answer: to the whole stream.
        unread: the reason of the first sample, until one is read as it was sent.
    """
    reason = why_not_judged(rule, case, answer)
    if case.malformed:
        # What a client does with malformed arguments is its own choice; other samples show that it
        # reads calls at all.
        return reason or unread.get(rule, "")
    if case.expected.tool_calls or rule == "cut-reported":
        unread[rule] = reason and unread.get(rule, reason)
    return reason


_WIDEST = 150


def _where(cut: Cut) -> str:
    whole = sum(map(len, cut.whole.chunks))
    closed = ", and the connection is closed" if cut.ending == "close" else ""
    events = quantity(cut.events, "event")
    return f"after {events}, {cut.size} of {whole} bytes: {PLACES[cut.place]}{closed}"


def _prefix(cut: Cut, wrong: str, level: str) -> Iterator[str]:
    """The mistake with a prefix, its bytes and its last event."""
    yield f"wrong: {wrong}"
    if level != "payloads":
        rest = shorten(repr(cut.rest), _WIDEST, keep=60, tail=80)
        yield f"bytes after it: {rest if cut.rest else 'none'}"
    last = shorten(cut.last_event, 180, keep=60, tail=110)  # its end may be padding
    yield f"last event: {last or 'none'}"
