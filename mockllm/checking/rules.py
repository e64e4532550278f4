"""The one table of what the kit judges: each rule's name, promise, and what breaking it costs.

The invariants say how an answer is put together. The rules of resilience say what a client does
when connections and answers break; two of them are judged of accumulators, too, by streams that are
cut. The table stands in `rules.yaml`; this module reads it, and the other tables of the kit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from mockllm.play.tables import read_table


def table(path: str, package: str = __package__) -> Any:
    """The value of a YAML file of the kit, by its path below a package."""
    return read_table(path, package)


_TABLE: Mapping[str, Any] = table("rules.yaml")

Verdict = Literal[
    "right",
    "tolerated",
    "wrong",
    "silent",
    "rejected",
    "crash",
    "adapter",
    "not judged",
    "not applicable",
    "non-strict",
    "informational",
]
"""The result of one case. `tolerated` is not the expected outcome, but an acceptable one; `silent`
is an answer where an error has to be reported; `rejected` is an error where the stream can be read;
`crash` is an exception that points to a bug; `adapter` is one whose innermost frame is in the
adapter or runner, not in the client; `not applicable`: the client has nothing that is judged. Two
mistakes do not count: `non-strict` is an error on a stream that breaks its own protocol, and
`informational` is any mistake with a stream that no source shows."""

Cost = Literal[
    "wrong call",
    "silent failure",
    "error unseen",
    "cut unreported",
    "data lost",
    "request changed",
    "wrong metadata",
    "loud failure",
    "unreliable",
]

COST_MEANINGS: Mapping[Cost, str] = _TABLE["costs"]
"""What a mistake does to the client's users, the worst first."""

COSTS = tuple(COST_MEANINGS)

STREAM_COSTS: tuple[Cost, ...] = ("wrong call", "data lost", "wrong metadata", "loud failure")
"""Those of clients that read whole streams; only faults and gateways show the others."""

INVARIANTS: Mapping[str, str] = _TABLE["invariants"]
"""How an answer is put together: by name, the promise; reports list them in this order."""

RESILIENCE: Mapping[str, str] = {
    name: rule["promise"] for name, rule in _TABLE["resilience"].items()
}
"""What a resilient client does, by the name of the rule."""

GATEWAYS: Mapping[str, str] = {name: rule["promise"] for name, rule in _TABLE["gateways"].items()}
"""What a gateway does between a client and its upstream, by the name of the rule."""

CASE_RULES: Mapping[str, str] = {**RESILIENCE, **GATEWAYS}
"""The rules of which one case can judge several."""

RULE_COSTS: Mapping[str, Cost] = {
    name: rule["cost"] for part in ("resilience", "gateways") for name, rule in _TABLE[part].items()
}
"""What it costs to break one of them."""

CONVERSATION_INVARIANTS: tuple[str, ...] = tuple(_TABLE["conversations"])
"""The names of the conversation invariants, as reports order them."""

FIELDS_OF: Mapping[str, Sequence[str]] = _TABLE["fields"]
"""The fields that an invariant is about, where a client may have no place for them."""

CUT_RULES = ("cut-reported", "cut-call-not-executed")
"""The rules of resilience that prefixes of streams can show."""


def severity(cost: Cost | None) -> int:
    """The place of a cost among `COSTS`, 0 for the worst; None comes last."""
    return len(COSTS) if cost is None else COSTS.index(cost)


def promise(rule: str) -> str:
    """The promise of a rule, as a sentence without its end; "" for a name that is none."""
    if rule in CASE_RULES:
        return f"a {'gateway' if rule in GATEWAYS else 'client'} {CASE_RULES[rule]}"
    return INVARIANTS.get(rule, "")
