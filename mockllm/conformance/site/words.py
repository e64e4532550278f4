"""The symbols, words and style names of cells, and a case in one sentence. Pure.

A colour never stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mockllm.checking.rules import COST_MEANINGS, COSTS, RESILIENCE
from mockllm.conformance.results import CaseResult, rule_verdict
from mockllm.core.text import shorten


@dataclass(frozen=True, slots=True)
class Mark:
    """How a kind of result is shown."""

    key: str
    symbol: str
    word: str
    rank: int
    meaning: str


MISTAKES: tuple[Mark, ...] = tuple(
    Mark(cost.replace(" ", "-"), symbol, cost, rank, COST_MEANINGS[cost])
    for rank, (cost, symbol) in enumerate(zip(COSTS, "✖∅≠!↯", strict=True))
)
"""The marks of `rules.COSTS`, in the same order."""

_ALL = (
    *MISTAKES,
    Mark("as-plain", "≈", "as in the plain stream", 5, "the same mistake as without the quirk"),
    Mark("allowed", "△", "allowed", 6, "wrong, and excused by the policy of this run"),
    Mark("adapter", "⚙", "adapter", 7, "the adapter failed, not the client; not judged"),
    Mark("not-judged", "–", "not judged", 8, "nothing was compared; this is not a pass"),
    Mark("not-applicable", "·", "does not apply", 9, "the client has nothing the rule is about"),
    Mark("tolerated", "✓", "tolerated", 10, "not the expected outcome, but an acceptable one"),
    Mark("right", "✓", "right", 11, "the expected outcome"),
)

MARKS: dict[str, Mark] = {one.key: one for one in _ALL}
"""By key, the worst first."""


def mark_of(case: CaseResult) -> Mark:
    """The mark of one case."""
    if case.failed:
        assert case.cost is not None
        return MARKS[case.cost.replace(" ", "-")]
    if case.baseline and case.cost is not None:
        return MARKS["as-plain"]
    key = case.verdict.replace(" ", "-")
    return MARKS.get(key, MARKS["allowed"])


def worst(cases: Iterable[CaseResult]) -> Mark | None:
    """The mark of a cell that stands for several cases; None without cases.

    A mistake is shown before anything else. Without one, the cell is right as soon as one case was
    judged and is right: what was not judged beside it is counted in the text of the cell. Of a rule
    of resilience, at least half of the cases have to be judged.
    """
    rows = list(cases)
    marks = sorted({mark_of(row) for row in rows}, key=lambda mark: mark.rank)
    if not marks:
        return None
    if marks[0].rank <= MARKS["allowed"].rank:
        return marks[0]
    if rows[0].group in RESILIENCE:
        return MARKS[rule_verdict(rows).replace(" ", "-")]
    return max(marks, key=lambda mark: mark.rank)


_LONGEST = 180


def sentence(case: CaseResult) -> str:
    """What the client does in a case.

    Its own error says the most. Otherwise it is the first difference: the others follow from it.
    """
    if case.verdict in ("crash", "rejected") and case.group not in RESILIENCE:
        return _of_error(case)
    if case.differences and case.verdict != "adapter":
        text = _short(case.differences[0].rstrip("."))
        return f"{text[:1].upper()}{text[1:]}."
    reason = (case.reason or "no reason is recorded").removeprefix("accepted: ").rstrip(".")
    text = _WITHOUT_MISTAKE[case.group in RESILIENCE].get(case.verdict, "Not judged: {}.")
    once = f" Once in three times it was not: {case.unconfirmed}." if case.unconfirmed else ""
    return text.format(reason) + once


_WITHOUT_MISTAKE = {
    False: {
        "right": "The client ends with the expected outcome.",
        "tolerated": "The client ends with another outcome that is acceptable: {}.",
        "not judged": "This case was not judged: {}.",
        "adapter": "The adapter failed, and not the client, so that nothing is known of the "
        "client.",
    },
    True: {
        "right": "The rule is kept.",
        "not applicable": "The rule does not apply: {}.",
    },
}
"""By the verdict; of cases in which a rule of resilience was judged, and of the others."""


def _of_error(case: CaseResult) -> str:
    error = _short(case.exception or next(iter(case.differences), case.reason))
    if case.reaction != "same":
        return f"The client crashes instead of reporting a clear error: {error}"
    does = "crashes" if case.verdict == "crash" else "reports an error"
    return f"The client {does} where the stream can be read: {error}"


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), _LONGEST, keep=_LONGEST)
