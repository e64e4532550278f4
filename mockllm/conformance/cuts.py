"""Clients in any language and streams that are cut: the answers of a runner, and the lines of a
results file that are made from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from mockllm.checking.cases.case import Case
from mockllm.checking.cuts import CutAnswer, CutReport, CutRow
from mockllm.checking.cuts.judging import NO_PLACE
from mockllm.checking.cuts.report import Fooled, prefix_lines
from mockllm.checking.rules import Verdict
from mockllm.conformance.attachments.messages import Answer
from mockllm.conformance.attachments.outcome_json import as_json
from mockllm.conformance.attachments.runner import Runner
from mockllm.conformance.case_names import Setting, check_command
from mockllm.conformance.measured import AdapterFrames, json_value, rule_line
from mockllm.conformance.results import CaseResult, Results, Stream


def cut_answers(
    runner: Runner, cases: Sequence[Case], command: Sequence[str]
) -> Iterator[tuple[Case, CutAnswer]]:
    """What a client does with prefixes, in their order.

    Args:
        command: of the runner; an exception that its file raised is not the client's.
    """
    frames = AdapterFrames(runner.hello.client.adapter, command)
    for case, answer in runner.each(cases):
        yield case, _cut_answer(answer, frames, runner.hello.unsupported)


def _cut_answer(answer: Answer, frames: AdapterFrames, unsupported: frozenset[str]) -> CutAnswer:
    frame = frames.raised_in(answer) if any(error.crash for error in answer.outcome.errors) else ""
    unusable = answer.invalid
    if frame and not unusable:
        unusable = f"{frame} raised an exception, which is in the runner and not in the client"
    # Of an exception, an answer has the error alone: nothing else was handed on.
    absent = frozenset[str]() if answer.outcome.errors else answer.absent
    return CutAnswer(answer.outcome, absent=absent | unsupported, unusable=unusable)


def cut_results(report: CutReport, run: Results, setting: Setting) -> Results:
    """The results file of a report: a line for each sample, kind of place and rule.

    The stream of a line is the shortest prefix that fools the client.

    Args:
        run: the results but for the lines.
    """
    return replace(run, cases=tuple(_line(row, report.level, setting) for row in report.rows))


def _line(row: CutRow, level: str, setting: Setting) -> CaseResult:
    fooled = row.shortest
    return rule_line(
        row.name,
        row.rule,
        _verdict(row),
        () if fooled is None else _mistakes(row, fooled, level),
        "loud failure" if _verdict(row) == "crash" else None,
        reaction="error",
        reason="; ".join(f"{count} prefixes: {why}" for why, count in row.not_judged.items()),
        reproduce=(check_command(setting, row.name),),
        **({} if fooled is None else _shown(fooled)),
    )


def _mistakes(row: CutRow, fooled: Fooled, level: str) -> tuple[str, ...]:
    where, *lines = prefix_lines(fooled, level)
    count = f"{row.wrong} of {row.judged} prefixes fool the client; the shortest ends {where}"
    return count, *reversed(lines)


def _shown(fooled: Fooled) -> dict[str, Any]:
    cut, answer = fooled.cut, fooled.answer
    return {
        "actual": json_value(as_json(answer.outcome, answer.absent)),
        "stream": Stream(cut.chunks, (), cut.whole.answer.headers, _ENDINGS[cut.ending]),
    }


_ENDINGS = {"orderly": "complete", "close": "closed"}
"""The endings of streams, as results files have them."""


def _verdict(row: CutRow) -> Verdict:
    if row.shortest is None and row.not_judged:
        return "not applicable" if row.not_judged.keys() == {NO_PLACE} else "not judged"
    if row.shortest is None:
        return "right"
    errors = row.shortest.answer.outcome.errors
    if row.rule == "cut-call-not-executed":
        return "wrong"
    if any(error.crash for error in errors):
        return "crash"
    return "wrong" if errors else "silent"
