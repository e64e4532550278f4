"""A badge for a README: how many groups of cases a client gets right. Pure."""

from __future__ import annotations

from xml.sax.saxutils import escape

from mockllm.checking.rules import COSTS, Cost
from mockllm.conformance.reports.junit import xml_text
from mockllm.conformance.results import Results, passes

_COLOURS: dict[Cost, str] = {
    "wrong call": "#a32020",
    "silent failure": "#a32020",
    "error unseen": "#b34700",
    "cut unreported": "#b34700",
    "data lost": "#b34700",
    "request changed": "#b34700",
    "wrong metadata": "#806000",
    "loud failure": "#5c5c8a",
    "unreliable": "#4a6078",
}
_RIGHT = "#1f7a34"
_UNKNOWN = "#5f5f5f"
"""White text on each of these has a contrast of at least 4.5."""


def right_groups(results: Results) -> tuple[int, int]:
    """The numbers of groups without a mistake and of those that were judged."""
    judged = {
        group
        for group, cases in results.groups.items()
        if any(case.failed or passes(case) for case in cases)
    }
    return sum(results.worst(group) is None for group in judged), len(judged)


def badge_svg(results: Results) -> str:
    """The text of an SVG image; its colour shows the worst mistake."""
    right, judged = right_groups(results)
    label = xml_text(f"mockllm {results.api}")
    value = f"{right}/{judged} groups" if judged else "not judged"
    if results.stopped:
        value = "not all judged"
    return _svg(label, value, _colour(results, judged))


def _colour(results: Results, judged: int) -> str:
    costs = {case.cost for case in results.cases if case.failed}
    worst = next((cost for cost in COSTS if cost in costs), None)
    if worst is not None:
        return _COLOURS[worst]
    return _RIGHT if judged and not results.stopped else _UNKNOWN


_CHARACTER = 6.6
_PADDING = 7


def _svg(label: str, value: str, colour: str) -> str:
    left, right = (round(len(text) * _CHARACTER) + 2 * _PADDING for text in (label, value))
    title = escape(f"{label}: {value}", {'"': "&quot;"})
    texts = "".join(
        f'<text x="{x + _PADDING}" y="14" textLength="{width - 2 * _PADDING}">{escape(text)}</text>'
        for x, width, text in ((0, left, label), (left, right, value))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" '
        f'role="img" aria-label="{title}"><title>{title}</title>'
        f'<clipPath id="round"><rect width="{left + right}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#round)"><rect width="{left}" height="20" fill="#3a3a3a"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">{texts}</g>'
        "</svg>\n"
    )
