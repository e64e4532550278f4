"""What verify finds at one request."""

from __future__ import annotations

from collections.abc import Mapping

from mockllm.checking.conversations.judge import verify
from mockllm.core.text import shorten
from mockllm.replay.sessions.session import Session
from mockllm.scenario.model import Scenario

_LONGEST = 4_000


def findings_json(
    session: Session, scenarios: Mapping[str, Scenario], number: int
) -> tuple[list[dict[str, str]], str]:
    """The rules that a request broke, and why there may be others that are not known."""
    verification = verify(session, scenarios, allow_unplayed=True)
    why = [f"{gap}" for gap in verification.gaps]
    if number in verification.not_judged:
        why.append("The request is too large to be kept whole, so it is not judged.")
    if verification.evicted or verification.forgotten:
        why.append("The journal has dropped requests before it, so they are not judged with it.")
    if number in verification.missed_faults:
        why.append("A fault did not strike in its answer, so its retries are not judged.")
    findings = [
        {"rule": violation.invariant, "message": shorten(violation.message, _LONGEST)}
        for violation in verification.violations
        if violation.exchange == number
    ]
    return findings, " ".join(why)
