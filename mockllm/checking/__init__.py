"""The checking kit: does a client put streams together correctly? It does not import pytest.

Here live the cases, the rules and the judges. Pure: the programs of clients are run in
`conformance`.

What may be imported from here:

- the client under test: `Probe` (takes decoded events), `ByteProbe` (takes bytes) or `Run` (a
  whole client over HTTP); what a probe gets from `offer`: `Tool`; what it returns for a chunk:
  `Delta`, with `Fragment`; the client's choices where good designs differ: `Policy`
- outcomes, the client's and the expected one: `Outcome`, with `Call`, `Usage` and `Trouble`;
  `NOT_KEPT` is the value of what a client has no place for
- cases, which are streams with their expected outcomes: `Case`, `Payload`, `cases`, `case`; the
  same cases, not compiled yet: `CaseSpec`, `case_specs`
- the check: `check` raises on failures; `examine`, `examine_bodies` and `examine_client` return a
  `Report` of `Failure`s, which `report_text` formats; `differences` judges a single outcome
- `INVARIANTS`, to which failures are attributed: name to promise

`conversations` judges whole conversations from the requests that the server received.
"""

from __future__ import annotations

from mockllm.checking.cases.build import case
from mockllm.checking.cases.case import Case, Payload
from mockllm.checking.cases.compile import CaseSpec, case_specs, cases
from mockllm.checking.judging.compare import differences
from mockllm.checking.judging.examination import Failure, Report
from mockllm.checking.judging.examine import examine, examine_bodies, examine_client
from mockllm.checking.outcome import NOT_KEPT, Call, NotKept, Outcome, Trouble, Usage
from mockllm.checking.policy import Policy
from mockllm.checking.probes import ByteProbe, Delta, Fragment, Probe, Run, Tool
from mockllm.checking.reports.check import check, report_text
from mockllm.checking.rules import INVARIANTS

__all__ = [
    "INVARIANTS",
    "NOT_KEPT",
    "ByteProbe",
    "Call",
    "Case",
    "CaseSpec",
    "Delta",
    "Failure",
    "Fragment",
    "NotKept",
    "Outcome",
    "Payload",
    "Policy",
    "Probe",
    "Report",
    "Run",
    "Tool",
    "Trouble",
    "Usage",
    "case",
    "case_specs",
    "cases",
    "check",
    "differences",
    "examine",
    "examine_bodies",
    "examine_client",
    "report_text",
]
