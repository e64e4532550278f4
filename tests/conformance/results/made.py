"""Results that tests are about."""

from __future__ import annotations

from typing import Any

from mockllm.conformance.results import CaseResult, Client, Results


def row(case: str, verdict: Any = "right", **fields: Any) -> CaseResult:
    """A case; its group is its quirk's first word."""
    quirk = case.partition("+")[2]
    group = fields.pop("group", quirk.partition("-")[0] or "plain")
    if verdict in ("wrong", "silent", "rejected", "crash"):
        fields.setdefault("cost", "data lost")
        fields.setdefault("differences", ("text is lost",))
        fields.setdefault("invariant", "text-accumulates")
    return CaseResult(case, group, verdict, quirk=quirk, **fields)


def results(*cases: CaseResult, **fields: Any) -> Results:
    """Results of a client of an API that does not exist."""
    client = Client("demo", "1.0", "python")
    return Results(client, "echo", "bytes", "1.0", "2026-01-01", cases=cases, **fields)
