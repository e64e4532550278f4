"""What a results file holds: a client, and how it was judged in each case. Only data may live here.

`results_file` reads and writes it; `results.schema.json` describes it for other tools.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mockllm.conformance.fault_results import FaultCaseResult, RuleResult

__all__ = [
    "COSTS",
    "CaseResult",
    "Client",
    "Cost",
    "QuirkInfo",
    "Results",
    "Smallest",
    "Stream",
    "Verdict",
]

Verdict = Literal[
    "right", "tolerated", "wrong", "silent", "rejected", "crash", "adapter", "not judged"
]
"""As in `checking`, and `adapter`: the innermost frame of the exception is in the adapter or
runner, not in the client."""

Cost = Literal["wrong call", "data lost", "wrong metadata", "loud failure"]

COSTS: tuple[Cost, ...] = ("wrong call", "data lost", "wrong metadata", "loud failure")
"""What a mistake costs, the worst first: a call is executed that the model did not make; text, a
call or an error is lost silently; ids, usage, finish or role are wrong; the client fails with an
error where the stream can be read."""


@dataclass(frozen=True, slots=True)
class Client:
    """The client under test.

    Args:
        name: of the library, as its users know it.
        version: "" where it is not known.
        language: in lower case, such as `python`.
        entry_point: the function that was used, as users call it.
        adapter: the runner or adapter: its command line, or its path.
        notes: what a reader must know about its outcomes.
    """

    name: str
    version: str = ""
    language: str = ""
    entry_point: str = ""
    adapter: str = ""
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Stream:
    """The exact bytes that a client received.

    Args:
        writes: what each write of the server, or each read of the client, holds; joined, they are
            the body.
        times: when each write is due, in microseconds after the request; () if all are due at once.
        headers: of the HTTP answer.
        ending: `complete`, `closed` (before the last chunk) or `reset`.
        status: of the HTTP answer.
    """

    writes: tuple[bytes, ...]
    times: tuple[int, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    ending: str = "complete"
    status: int = 200


@dataclass(frozen=True, slots=True)
class Smallest:
    """The smallest stream found that shows the same mistake.

    Args:
        scenario: YAML text that plays it.
        expected, actual: outcomes of it, as in `CaseResult`.
    """

    stream: Stream
    scenario: str
    expected: Mapping[str, Any]
    actual: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QuirkInfo:
    """What is known of a quirk, so that a report needs nothing else. See `quirks.base.Quirk`.

    Args:
        description: what the bytes of its variant look like.
        sources: `owner/repository#number` of reports.
        correct: what a correct client does.
        faults: what clients get wrong.
    """

    title: str
    description: str = ""
    servers: str = ""
    sources: tuple[str, ...] = ()
    correct: str = ""
    faults: str = ""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case and how its outcome was judged.

    Args:
        case: the stable name of the case: `API/SCENARIO`, with `+QUIRK` or `+QUIRK:VARIANT`, and
            `~VARIATION`; of streams that are cut at every place, `API/SCENARIO@PLACE:RULE`.
        group: the topic that the case is about, such as `index` or `framing`.
        quirk: `NAME` or `NAME:VARIANT`; "" for a case without.
        cost: of the mistake; None for `right`, `tolerated`, `adapter` and `not judged`.
        invariant: the one that the client breaks; "" if none.
        reaction: what a correct client does: `same`, `error` or `either`.
        baseline: the name of the plain case in which the client makes the same mistakes, which
            excuses this one; "" if there is none.
        differences: from the expected outcome, a sentence each.
        exception: the client's own exception or error, with the place that raised it.
        reason: why the case was tolerated, not judged, excused or attributed to the adapter.
        not_judged: the fields of the outcome that were not judged.
        expected, actual: outcomes, in the form of the answers of runners (`messages`). A field
            that is absent is one that the client has no place for.
        stream: what was sent; None only where the client cannot get it at this level.
        smallest: only for the first case of each invariant that is broken.
        reproduce: command lines that show the same again.
    """

    case: str
    group: str
    verdict: Verdict
    quirk: str = ""
    cost: Cost | None = None
    invariant: str = ""
    reaction: str = "same"
    baseline: str = ""
    differences: tuple[str, ...] = ()
    exception: str = ""
    reason: str = ""
    not_judged: tuple[str, ...] = ()
    expected: Mapping[str, Any] = field(default_factory=dict)
    actual: Mapping[str, Any] = field(default_factory=dict)
    stream: Stream | None = None
    smallest: Smallest | None = None
    reproduce: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it counts as a mistake of the client."""
        return self.cost is not None and not self.baseline


@dataclass(frozen=True, slots=True)
class Results:
    """A client and all its cases over one API: what a results file holds.

    Args:
        mockllm: the version of mockllm.
        commit: of mockllm's source; "" where it is not known.
        date: when it was measured, as `YYYY-MM-DD`.
        level: `bytes`, `payloads` or `http`.
        arguments: what chose the cases: `variations`, `seed`, `only`, `policy`.
        unsupported: the fields of an outcome that the client has no place for.
        stopped: why the remaining cases were not judged; "" if all were.
        quirks: what is known of the quirks of the cases, by `NAME` or `NAME:VARIANT`.
        rules: how the client takes faults; () where that was not judged.
        faults: the cases in which the rules were judged.
        settings: of the client in these cases: what it declares, and what the cases set.
    """

    client: Client
    api: str
    level: str
    mockllm: str
    date: str
    commit: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    unsupported: tuple[str, ...] = ()
    stopped: str = ""
    cases: tuple[CaseResult, ...] = ()
    quirks: Mapping[str, QuirkInfo] = field(default_factory=dict)
    rules: tuple[RuleResult, ...] = ()
    faults: tuple[FaultCaseResult, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdicts(self) -> dict[Verdict, int]:
        """How many cases have each verdict."""
        return dict(Counter(one.verdict for one in self.cases))

    @property
    def groups(self) -> dict[str, list[CaseResult]]:
        """The cases of each group, in the order in which groups first occur."""
        found: dict[str, list[CaseResult]] = {}
        for one in self.cases:
            found.setdefault(one.group, []).append(one)
        return found

    def worst(self, group: str) -> Cost | None:
        """The worst cost of a mistake in a group; None if the client makes none there."""
        costs = {one.cost for one in self.groups.get(group, ()) if one.failed}
        return next((cost for cost in COSTS if cost in costs), None)
