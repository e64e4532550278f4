"""The contents of a results file: a client, and how it was judged in each case. Pure.

`file` reads and writes it; `results.schema.json` describes it for other tools.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from mockllm.checking.rules import CASE_RULES, COSTS, Cost, Verdict
from mockllm.play.replay.sessions.exchange import Exchange

GATEWAY_LEVEL = "gateway"
"""The level of the results of a gateway, whose `api` names those of its clients and upstream."""

ClosedBy = Literal["client", "server", "kept open", "still sending"]
"""`kept open`: the answer was complete, and the connection could be used again; `still sending`:
the answer was not over when the case was judged."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """A request of a case, and what happened on its connection. All times are in seconds.

    Args:
        number: from 1, in the order of arrival.
        connection: the number of the client's connection within the server.
        at: after the first request of the case.
        request: method and path.
        headers: of the request, credentials masked.
        body_digest: the beginning of the SHA-256 of the request's body, in hexadecimal: the same
            for the same body.
        status: of the answer; 0 where the client got none.
        bytes_sent: of the answer's body.
        fault: as it is written for `x-mockllm-fault`; "" for none.
        struck: when the fault struck, after this request; None where it did not.
        struck_after: how many bytes of the body were sent before.
        duration: until the end of the answer; None where it was not over.
        closed_by: who ended the connection.
    """

    number: int
    connection: int
    at: float
    request: str
    headers: Mapping[str, str]
    body_digest: str
    status: int
    bytes_sent: int
    fault: str = ""
    struck: float | None = None
    struck_after: int | None = None
    duration: float | None = None
    closed_by: ClosedBy = "kept open"


def request_log(exchanges: Sequence[Exchange]) -> tuple[LoggedRequest, ...]:
    """The log of the requests of a case."""
    if not exchanges:
        return ()
    begin = exchanges[0].received.clock
    ports = list(dict.fromkeys(exchange.received.connection for exchange in exchanges))
    return tuple(
        LoggedRequest(
            number=number,
            connection=ports.index(exchange.received.connection) + 1,
            at=round(exchange.received.clock - begin, 4),
            request=f"{exchange.received.method} {exchange.path}",
            headers=dict(exchange.headers),
            body_digest=sha256(exchange.body).hexdigest()[:16],
            status=exchange.status,
            bytes_sent=exchange.sent.bytes,
            fault=exchange.fault,
            struck=None if exchange.sent.struck is None else round(exchange.sent.struck, 4),
            struck_after=exchange.sent.struck_after,
            duration=None if exchange.in_use else round(exchange.sent.duration, 4),
            closed_by=_closed_by(exchange),
        )
        for number, exchange in enumerate(exchanges, 1)
    )


def _closed_by(exchange: Exchange) -> ClosedBy:
    if exchange.in_use:
        return "still sending"
    if exchange.sent.client_gone:
        return "client"
    if exchange.sent.stopped:
        return "still sending"
    breaks = any(
        part.startswith(_CLOSING) and _ORDERLY not in part for part in exchange.fault.split(";")
    )
    return (
        "server" if not exchange.sent.complete and (breaks or not exchange.fault) else "kept open"
    )


_CLOSING = ("cut", "refuse")
_ORDERLY = "end=orderly"


def log_line(entry: LoggedRequest) -> str:
    """A request of the log of a case."""
    words = [
        f"{entry.number}. at {entry.at:.3f} s, connection {entry.connection}: {entry.request} ->",
        f"{entry.status}, {entry.bytes_sent:,} bytes" if entry.status else "no answer",
    ]
    if entry.fault:
        struck = f" after {entry.struck:.3f} s" if entry.struck is not None else " did not strike"
        after = f" and {entry.struck_after:,} bytes" if entry.struck_after is not None else ""
        words[-1] += f"; {entry.fault}{struck}{after}"
    took = f" after {entry.duration:.3f} s" if entry.duration is not None else ""
    ends = {"client": "the client closed it", "server": "mockllm closed it"}
    words[-1] += f"; {ends.get(entry.closed_by, entry.closed_by)}{took}"
    return " ".join(words)


@dataclass(frozen=True, slots=True)
class Client:
    """The client under test.

    Args:
        version: "" where it is not known.
        language: in lower case, such as `python`.
        entry_point: the function that was used, as users call it.
        adapter: the runner or adapter: its command line, or its path.
        libraries: the versions of all that ran, by name; the language's own, too.
    """

    name: str
    version: str = ""
    language: str = ""
    entry_point: str = ""
    adapter: str = ""
    notes: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Stream:
    """The exact bytes that a client received.

    Args:
        writes: what each write of the server, or each read of the client, holds; joined, they are
            the body.
        times: when each write is due, in microseconds after the request; () if all are due at once.
        ending: `complete`, `closed` (before the last chunk) or `reset`.
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
    """The facts about a quirk, so that a report needs nothing else. See `quirks.base.Quirk`.

    Args:
        description: what the bytes of its variant look like.
        sources: `owner/repository#number` of reports, and addresses of clauses.
    """

    title: str
    description: str = ""
    servers: str = ""
    sources: tuple[str, ...] = ()
    correct: str = ""
    faults: str = ""


@dataclass(frozen=True, slots=True)
class Play:
    """A case with a fault, as it was played: what all its rules were judged from.

    Args:
        title: what happens in it, in a sentence.
        scenario: YAML text of what was played; like all that follows, of cases with a mistake only.
        faults: of every answer in the session, besides those of the scenario.
        log: every request.
        answer: the client's, in the form of the answers of runners.
    """

    title: str
    scenario: str = ""
    faults: tuple[str, ...] = ()
    log: tuple[LoggedRequest, ...] = ()
    answer: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case and how its outcome was judged.

    Args:
        case: the stable name of the case: `API/SCENARIO`, with `+QUIRK` or `+QUIRK:VARIANT`, and
            `~VARIATION`. Where a rule of resilience was judged, its name follows:
            `API/SCENARIO@PLACE:RULE` of streams that are cut at every place, `API/FAULT:RULE` of
            answers with faults.
        group: the topic that the case is about, such as `index` or `framing`; the rule of
            resilience, where one was judged.
        quirk: `NAME` or `NAME:VARIANT`; "" for a case without.
        cost: of the mistake; None for `right`, `tolerated`, `adapter` and `not judged`.
        invariant: the one that the client breaks; "" if none.
        reaction: what a correct client does: `same`, `error` or `either`.
        baseline: the name of the plain case in which the client makes the same mistakes, which
            excuses this one; "" if there is none.
        fields: the fields of the outcome that the differences are about.
        exception: the client's own exception or error, with the place that raised it.
        reason: why the case was tolerated, not judged, not counted, excused or attributed to the
            adapter, or what made it right beside the client.
        not_judged: the fields of the outcome that were not judged.
        expected, actual: outcomes, in the form of the answers of runners (`messages`). A field
            that is absent is one that the client has no place for.
        stream: what was sent; None only where the client cannot get it at this level.
        smallest: only for the first case of each invariant that is broken.
        reproduce: command lines that show the same again.
        unconfirmed: what the client did once in three times, and is not counted.
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
    fields: tuple[str, ...] = ()
    exception: str = ""
    reason: str = ""
    not_judged: tuple[str, ...] = ()
    expected: Mapping[str, Any] = field(default_factory=dict)
    actual: Mapping[str, Any] = field(default_factory=dict)
    stream: Stream | None = None
    smallest: Smallest | None = None
    reproduce: tuple[str, ...] = ()
    unconfirmed: str = ""

    @property
    def played(self) -> str:
        """The name of the case without the rule that was judged in it."""
        return self.case.removesuffix(f":{self.group}")

    @property
    def failed(self) -> bool:
        """Whether it counts as a mistake of the client."""
        wrong = self.verdict in ("wrong", "silent", "rejected", "crash")
        return wrong and self.cost is not None and not self.baseline


@dataclass(frozen=True, slots=True)
class Results:
    """A client and all its cases over one API: what a results file holds.

    Args:
        commit: of mockllm's source; "" where it is not known.
        date: when it was measured, as `YYYY-MM-DD`.
        arguments: what chose the cases: `variations`, `seed`, `only`, `policy`; and what none of
            them is about, in words: `outside`.
        unsupported: the fields of an outcome that the client has no place for.
        stopped: why the remaining cases were not judged; "" if all were.
        quirks: what is known of the quirks of the cases, by `NAME` or `NAME:VARIANT`.
        plays: the cases with faults, by `CaseResult.played`.
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
    plays: Mapping[str, Play] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdicts(self) -> dict[Verdict, int]:
        """The number of cases with each verdict."""
        return dict(Counter(case.verdict for case in self.cases))

    @property
    def groups(self) -> dict[str, list[CaseResult]]:
        """The cases of each group, in the order in which groups first occur."""
        groups: dict[str, list[CaseResult]] = {}
        for case in self.cases:
            groups.setdefault(case.group, []).append(case)
        return groups

    def worst(self, group: str) -> Cost | None:
        """The worst cost of a mistake in a group; None if the client makes none there."""
        costs = {case.cost for case in self.groups.get(group, ()) if case.failed}
        return next((cost for cost in COSTS if cost in costs), None)

    @property
    def rules(self) -> dict[str, list[CaseResult]]:
        """The cases of each rule that was to be judged in several."""
        groups = self.groups
        return {name: groups[name] for name in CASE_RULES if name in groups}


def passes(case: CaseResult) -> bool:
    """Whether a client gets a case right. What is not judged neither passes nor fails."""
    return case.verdict in ("right", "tolerated")


def rule_verdict(cases: Sequence[CaseResult]) -> Verdict:
    """The verdict of a rule of resilience by those of its cases.

    One mistake breaks it. It is kept where it was judged in at least half of the cases: a few easy
    ones say little of the others.
    """
    right = sum(map(passes, cases))
    unknown = sum(case.verdict in ("not judged", "adapter") for case in cases)
    if any(case.failed for case in cases):
        return "wrong"
    if right and right >= unknown:
        return "right"
    return "not judged" if right or unknown or not cases else "not applicable"
