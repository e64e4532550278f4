"""The page about the drift of recordings."""

from __future__ import annotations

from itertools import groupby

from mockllm.conformance.drift.drift_report import DriftReport, DriftVerdict, title
from mockllm.conformance.site import inline_files
from mockllm.conformance.site.rendering import environment

_HEADLINES: dict[DriftVerdict, str] = {
    "same": "The services answer as recorded",
    "drift": "The services do not answer as recorded",
    "unknown": "Not all recordings could be looked at",
}


def drift_page(report: DriftReport) -> str:
    """One page that stands alone."""
    groups = groupby(report.findings, lambda finding: finding.group)
    lists = (
        ("Answered otherwise, so not all of it is comparable", report.otherwise),
        ("Could not be looked at", report.failed),
        ("Not looked at", report.left_out),
        ("Recorded anew", report.updated),
    )
    return (
        environment()
        .get_template("drift.html")
        .render(
            report=report,
            headline=_HEADLINES[report.verdict],
            groups=[(title(group), list(findings)) for group, findings in groups],
            lists=lists,
            inline=inline_files(),
            root="",
        )
    )
