"""The page about drift."""

from __future__ import annotations

import html

from mockllm.conformance.drift.drift_report import DriftReport
from mockllm.conformance.drift.selection import RecordingNote
from mockllm.conformance.site.drift import drift_page

NOTES = {
    "otherwise": ("Answered otherwise", RecordingNote("greet turn 1", "Text; now ToolCall")),
    "failed": ("Could not be looked at", RecordingNote("greet turn 2", "no answer came")),
    "left_out": ("Not looked at", RecordingNote("greet turn 3", "it is of <another> day")),
    "updated": ("Recorded anew", RecordingNote("greet turn 4", "greet.yaml")),
}


def test_each_list_of_recordings_is_on_the_page() -> None:
    """With its number, and each recording with what is said of it."""
    report = DriftReport(
        mockllm="1.0",
        date="2026-07-26",
        compared=2,
        findings=(),
        **{name: (note,) for name, (_, note) in NOTES.items()},
    )
    page = drift_page(report)
    for heading, note in NOTES.values():
        section = page[page.index(f">{heading}") :]
        assert section.partition("</h2>")[0].endswith(": 1")
        assert f"<b>{note.name}</b>: {html.escape(note.text)}" in section


def test_lists_without_a_recording_are_left_out() -> None:
    """A page about services that answer as recorded says no more than that."""
    page = drift_page(DriftReport("1.0", "2026-07-26", 2, ()))
    assert not any(heading in page for heading, _ in NOTES.values())
