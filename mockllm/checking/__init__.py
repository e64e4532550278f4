"""Does a client put the stream together correctly? The kit that finds out; no pytest in here.

A client is attached by a probe (`probes`) or as a whole (`Run`), taken through cases (`cases`)
and judged (`examine`): what it gets wrong is blamed on one of the `INVARIANTS`, with the
smallest stream that shows it. `reference` holds accumulators that get everything right,
`conversations` judges a whole conversation from what the server received.

`corpus`, `masking`, `sdks` and `accumulators` examine recorded streams, and compare them with
what the official client libraries make of them.
"""

from __future__ import annotations

from mockllm.checking.cases.case import Case, Payload
from mockllm.checking.cases.compile import Plan, case, cases, plans
from mockllm.checking.invariants import INVARIANTS
from mockllm.checking.judging.compare import differences
from mockllm.checking.judging.examine import (
    Failure,
    Report,
    examine,
    examine_bodies,
    examine_client,
)
from mockllm.checking.outcome import Call, Outcome, Trouble, Usage
from mockllm.checking.policy import Policy
from mockllm.checking.probes import ByteProbe, Delta, Probe, Run
from mockllm.checking.reports.check import check, told

__all__ = [
    "INVARIANTS",
    "ByteProbe",
    "Call",
    "Case",
    "Delta",
    "Failure",
    "Outcome",
    "Payload",
    "Plan",
    "Policy",
    "Probe",
    "Report",
    "Run",
    "Trouble",
    "Usage",
    "case",
    "cases",
    "check",
    "differences",
    "examine",
    "examine_bodies",
    "examine_client",
    "plans",
    "told",
]
