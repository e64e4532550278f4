"""Does an accumulator report every stream that was cut, wherever that happens?

A stream is cut at every place that matters: before the first event, between two events, inside an
event, inside a character, before the blank line of an event. The accumulator gets each prefix, is
closed, and is judged by two rules:

- `cut-reported`: it reports the cut.
- `cut-call-not-executed`: it hands on no call whose end was not sent.

A prefix with the whole content of the answer is accepted either way, whether its end marker is
missing or not. `prefixes` makes the prefixes, `judging` judges one of them, `report` counts, and
`examine` runs Python accumulators; `mockllm.conformance` runs those in other languages.
"""

from __future__ import annotations

from mockllm.checking.cuts.examine import check_cuts, examine_cuts
from mockllm.checking.cuts.judging import CutAnswer
from mockllm.checking.cuts.prefixes import PLACES, prefixes
from mockllm.checking.cuts.report import CutReport, CutRow, cut_report, cut_text
from mockllm.checking.rules import CUT_RULES

__all__ = [
    "CUT_RULES",
    "PLACES",
    "CutAnswer",
    "CutReport",
    "CutRow",
    "check_cuts",
    "cut_report",
    "cut_text",
    "examine_cuts",
    "prefixes",
]
