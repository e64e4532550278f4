"""Answers of runners as the outcomes that the rules judge, and the policy of a hello. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.checking.resilience.model import ClientOutcome, ReportedError
from mockllm.checking.resilience.policy import ResiliencePolicy
from mockllm.conformance.messages import Answer

__all__ = ["declared_policy", "outcomes_of"]


def outcomes_of(answer: Answer, *, late: bool) -> tuple[ClientOutcome, ...]:
    """The outcome of each request of a case, in their order.

    Args:
        late: whether the client answered only after its connections were broken off. Its outcome is
            none then: what it reports was caused by that, and not by the fault.
    """
    if late:
        return (ClientOutcome(answered=False),)
    return tuple(map(_outcome, (*answer.earlier, answer)))


def _outcome(answer: Answer) -> ClientOutcome:
    fault = answer.fault
    return ClientOutcome(
        outcome=answer.outcome,
        answered=not answer.ended,
        partial=fault.partial,
        handed_on=fault.handed_on,
        errors=tuple(
            ReportedError(one.message, one.type, one.kind, one.has_kind) for one in fault.errors
        ),
        left=fault.left,
    )


def declared_policy(declared: Mapping[str, Any]) -> ResiliencePolicy:
    """The policy of a client that declares settings, as `fault_fields.read_declared` has them.

    `tries` of null, or of 1, says that the client does not retry.
    """
    given = dict(declared)
    tries, idle = given.get("tries"), given.get("idle_timeout")
    return ResiliencePolicy(
        tries=tries,
        idle_timeout=idle,
        has_idle_timeout="idle_timeout" not in given or idle is not None,
        longest_wait=given.get("longest_wait"),
        final_errors=frozenset(given.get("final_errors", ())),
        retries="tries" not in given or tries not in (None, 1),
    )
