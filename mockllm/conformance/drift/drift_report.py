"""The findings of `mockllm drift`, as text and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, Literal

from mockllm.conformance.drift.compare import DriftFinding, Group
from mockllm.conformance.drift.selection import RecordingNote
from mockllm.core.record import record
from mockllm.core.text import printable, quantity

FORMAT = 1
"""The version of the JSON: the value of `mockllm_drift`."""

DriftVerdict = Literal["same", "drift", "unknown"]

EXIT_CODES: dict[DriftVerdict, int] = {"same": 0, "drift": 1, "unknown": 2}


@record
class DriftReport:
    """The result of one run.

    Args:
        date: of the run, YYYY-MM-DD.
        compared: how many answers were compared with their recordings.
        otherwise: of these, what the model answered otherwise, and how.
        chance: how many fields differed that not every answer has.
        same_request: how many recordings have the request of another one.
        failed: what was sent or should have been, and why there is no answer to compare.
        left_out: what was not looked at.
        updated: the recordings that were written anew, each with what became of it.
    """

    mockllm: str
    date: str
    compared: int
    findings: tuple[DriftFinding, ...]
    otherwise: tuple[RecordingNote, ...] = ()
    chance: int = 0
    same_request: int = 0
    failed: tuple[RecordingNote, ...] = ()
    left_out: tuple[RecordingNote, ...] = ()
    updated: tuple[RecordingNote, ...] = ()

    @property
    def verdict(self) -> DriftVerdict:
        """`unknown` where an answer to a chosen request could not be compared, or none was."""
        if self.findings:
            return "drift"
        return "unknown" if self.failed or not self.compared else "same"


def title(group: Group) -> str:
    """The title of a group, for people: `chat, gpt-5, streamed, api.openai.com`."""
    form = "streamed" if group.streamed else "whole"
    kind = "errors" if group.error else form
    parts = (group.api or group.route, group.model, kind, group.host)
    return ", ".join(filter(None, parts))


# Text


def report_text(report: DriftReport) -> str:
    """The report for a terminal."""
    return "\n".join(map(printable, _lines(report)))


def _lines(report: DriftReport) -> Iterator[str]:
    for group, found in groupby(report.findings, lambda finding: finding.group):
        yield f"{title(group)}:"
        for finding in found:
            yield f"  {_line(finding)}"
        yield ""
    if report.otherwise:
        yield f"answered otherwise, so not all of it is comparable: {len(report.otherwise)}"
        yield from (f"  {note.name}: {note.text}" for note in report.otherwise)
    if report.failed:
        yield f"could not be looked at: {len(report.failed)}"
        yield from _reasons(report.failed)
    if report.left_out:
        yield f"not looked at: {len(report.left_out)}"
        yield from _reasons(report.left_out)
    if report.updated:
        yield f"recorded anew: {len(report.updated)}"
        yield from (f"  {note.name}: {note.text}" for note in report.updated)
    yield _summary(report)


def _line(finding: DriftFinding) -> str:
    difference = finding.difference
    where = f"in {len(finding.answers)} of {finding.compared}"
    said = f"; {finding.witness}" if finding.witness else ""
    first = finding.answers[0]
    return f"{difference.kind:<14} {difference.place}  {difference.detail} ({where}: {first}{said})"


def _reasons(notes: tuple[RecordingNote, ...]) -> Iterator[str]:
    """Each reason once, with how many recordings have it."""
    reasons: dict[str, list[str]] = {}
    for note in notes:
        reasons.setdefault(note.text, []).append(note.name)
    for reason, names in reasons.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"  {names[0]}{more}: {reason}"


def _summary(report: DriftReport) -> str:
    compared = f"{quantity(report.compared, 'answer')} compared"
    chance = ""
    if report.chance:
        chance = f"; {quantity(report.chance, 'field')} that not every answer has differed"
    match report.verdict:
        case "drift":
            return f"drift: {quantity(len(report.findings), 'difference')}, {compared}{chance}"
        case "same":
            return f"same: {compared}{chance}"
    why = "not all could be looked at" if report.compared else "nothing was compared"
    return f"unknown: {why}; {compared}{chance}"


# JSON


def report_json(report: DriftReport) -> dict[str, Any]:
    """The report as a JSON object, in the form of `drift.schema.json`."""
    return {
        "mockllm_drift": FORMAT,
        "mockllm": report.mockllm,
        "date": report.date,
        "verdict": report.verdict,
        "compared": report.compared,
        "findings": list(map(_finding, report.findings)),
        "otherwise": [{"recording": note.name, "how": note.text} for note in report.otherwise],
        "chance": report.chance,
        "same_request": report.same_request,
        "failed": _notes_json(report.failed),
        "not_looked_at": _notes_json(report.left_out),
        "updated": _notes_json(report.updated),
    }


def _finding(finding: DriftFinding) -> dict[str, Any]:
    group, difference = finding.group, finding.difference
    return {
        "kind": difference.kind,
        "api": group.api,
        "route": group.route,
        "host": group.host,
        "model": group.model,
        "streamed": group.streamed,
        "event": difference.field.event if difference.field is not None else "",
        "place": difference.field.path if difference.field is not None else difference.place,
        "detail": difference.detail,
        "recordings": list(finding.answers),
        "compared": finding.compared,
        "witness": finding.witness,
    }


def _notes_json(notes: tuple[RecordingNote, ...]) -> list[dict[str, str]]:
    return [{"recording": note.name, "reason": note.text} for note in notes]
