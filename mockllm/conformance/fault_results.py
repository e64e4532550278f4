"""What a results file holds about faults: rules, and the cases they were judged in. Only data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "RULE_GROUP",
    "Accusation",
    "FaultCaseResult",
    "LoggedRequest",
    "RuleResult",
    "RuleVerdict",
]

RULE_GROUP = "faults"
"""The group of rules that are listed like cases."""

RuleVerdict = Literal["right", "wrong", "not judged", "not applicable"]

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


@dataclass(frozen=True, slots=True)
class Accusation:
    """A rule that a client breaks in a case.

    Args:
        text: what it did, in a sentence.
    """

    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class FaultCaseResult:
    """A case with a fault.

    Args:
        case: its name, `API/NAME`.
        about: what happens in it, in a sentence.
        rules: those that were judged in it.
        wrong: those of them that the client breaks.
        not_judged: why further rules were not judged, by their names.
        unconfirmed: rules that the client broke the first time only, when cases ran side by side.
        scenario: YAML text of what was played; of cases with a mistake only.
        faults: of every answer in the session, besides those of the scenario.
        log: every request; of cases with a mistake only.
        actual: the client's answer, in the form of the answers of runners; of cases with a
            mistake only.
        reproduce: command lines that run the case again.
    """

    case: str
    about: str = ""
    rules: tuple[str, ...] = ()
    wrong: tuple[Accusation, ...] = ()
    not_judged: Mapping[str, str] = field(default_factory=dict)
    unconfirmed: tuple[Accusation, ...] = ()
    scenario: str = ""
    faults: tuple[str, ...] = ()
    log: tuple[LoggedRequest, ...] = ()
    actual: Mapping[str, Any] = field(default_factory=dict)
    reproduce: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleResult:
    """A client and a rule.

    Args:
        promise: what the rule says of a client.
        reason: why it was not judged or does not apply.
        judged, wrong, not_judged: how many cases.
        cases: the names of the cases with a mistake, the plainest first.
    """

    rule: str
    verdict: RuleVerdict
    promise: str = ""
    reason: str = ""
    judged: int = 0
    wrong: int = 0
    not_judged: int = 0
    cases: tuple[str, ...] = ()
