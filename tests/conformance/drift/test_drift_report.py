"""The report of `mockllm drift`, as people and programs read it."""

from __future__ import annotations

import pytest

from mockllm.conformance.drift.compare import DriftDifference, DriftFinding, Group
from mockllm.conformance.drift.drift_report import DriftReport, report_json, report_text, title
from mockllm.conformance.drift.selection import RecordingNote

GROUP = Group("chat", "api.openai.com", "", "gpt-5", streamed=True, error=False)
ROUTE = Group("", "api.openai.com", "POST /v1/embeddings", "", streamed=False, error=False)
ADDED = DriftDifference("added", "lane", "string")


def report(*findings: DriftFinding, compared: int = 1, **fields: object) -> DriftReport:
    return DriftReport("1.0", "2026-01-31", compared, findings, **fields)  # type: ignore[arg-type]


def notes(*names: str, text: str = "there is no key") -> tuple[RecordingNote, ...]:
    return tuple(RecordingNote(name, text) for name in names)


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (GROUP, "chat, gpt-5, streamed, api.openai.com"),
        (
            Group("chat", "api.openai.com", "", "gpt-5", streamed=False, error=False),
            "chat, gpt-5, whole, api.openai.com",
        ),
        (
            Group("chat", "api.openai.com", "", "gpt-5", streamed=True, error=True),
            "chat, gpt-5, errors, api.openai.com",
        ),
        (ROUTE, "POST /v1/embeddings, whole, api.openai.com"),
    ],
)
def test_titles_of_groups(group: Group, expected: str) -> None:
    """API or route, model if there is one, the form of the answers, and the service."""
    assert title(group) == expected
    assert report_text(report(DriftFinding(group, ADDED, ("a",), 1))).startswith(f"{expected}:\n")


def test_a_finding_says_in_how_many_answers_it_is() -> None:
    """It names the first of them, and what the SDK's types say."""
    finding = DriftFinding(GROUP, ADDED, ("greet turn 1", "bye turn 1"), 3, "openai 3 knows it")
    other = DriftFinding(ROUTE, ADDED, ("embed turn 1",), 1)
    assert report_text(report(finding, other, compared=4, chance=2)).splitlines() == [
        "chat, gpt-5, streamed, api.openai.com:",
        "  added          lane  string (in 2 of 3: greet turn 1; openai 3 knows it)",
        "",
        "POST /v1/embeddings, whole, api.openai.com:",
        "  added          lane  string (in 1 of 1: embed turn 1)",
        "",
        "drift: 2 differences, 4 answers compared; 2 fields that not every answer has differed",
    ]


def test_a_reason_is_said_once() -> None:
    """With the first recording that has it, and how many more do."""
    failed = (*notes("a", "b", "c"), *notes("d", text="HTTP 500"))
    left = notes("e", text="it is not in the sample")
    assert report_text(report(failed=failed, left_out=left, compared=0)).splitlines() == [
        "could not be looked at: 4",
        "  a and 2 more: there is no key",
        "  d: HTTP 500",
        "not looked at: 1",
        "  e: it is not in the sample",
        "unknown: nothing was compared; 0 answers compared",
    ]


@pytest.mark.parametrize(
    ("made", "verdict", "last"),
    [
        (report(), "same", "same: 1 answer compared"),
        (report(left_out=notes("a")), "same", "same: 1 answer compared"),
        (report(compared=0), "unknown", "unknown: nothing was compared; 0 answers compared"),
        (
            report(failed=notes("a"), compared=2),
            "unknown",
            "unknown: not all could be looked at; 2 answers compared",
        ),
        (
            report(DriftFinding(GROUP, ADDED, ("a",), 1), failed=notes("b")),
            "drift",
            "drift: 1 difference, 1 answer compared",
        ),
    ],
)
def test_verdicts(made: DriftReport, verdict: str, last: str) -> None:
    """Drift where there is a difference; the same only where every answer was compared."""
    assert made.verdict == verdict
    assert report_text(made).splitlines()[-1] == last


def test_the_json_of_a_finding() -> None:
    """Programs get the parts of the title as fields, and all recordings."""
    (finding,) = report_json(report(DriftFinding(GROUP, ADDED, ("a", "b"), 3)))["findings"]
    assert (finding["api"], finding["model"], finding["streamed"]) == ("chat", "gpt-5", True)
    assert (finding["place"], finding["recordings"], finding["compared"]) == ("lane", ["a", "b"], 3)
    (finding,) = report_json(report(DriftFinding(ROUTE, ADDED, ("a",), 1)))["findings"]
    assert (finding["api"], finding["streamed"]) == ("", False)
    assert finding["route"] == "POST /v1/embeddings"
