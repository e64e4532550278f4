"""The rule that each answer is given once: a client that has an answer does not request it again.

Pure. It is judged only where the caller wants it: many tests that share a session request the same
answers, and are right to do so.
"""

from __future__ import annotations

from mockllm.checking.conversations.round_trips import Step
from mockllm.checking.conversations.violations import JudgedSession, Violation, Violations
from mockllm.errors import UsageError
from mockllm.matching.positions import turn_at, turn_index
from mockllm.quirks import find
from mockllm.scenario.model import Scenario


def extra_requests(record: JudgedSession) -> Violations:
    """The requests for a turn that an earlier request got in full.

    Turns that repeat (`repeat: true`, `then: restart`) are not judged. A request after an error, a
    cut stream or a stream that the client left is a retry.
    """
    scenarios = record.history.scenarios
    given: dict[tuple[str, int], Step] = {}
    for step in record.history.steps:
        exchange = step.exchange
        scenario, position = scenarios.get(exchange.scenario or ""), exchange.played.position
        if exchange.outcome not in ("played", "error") or scenario is None or position is None:
            continue
        if _repeats(scenario, position):
            continue
        first = given.get((scenario.name, position))
        if first is not None:
            # Each extra request is a violation of its own, so its number is the location.
            message = _message(scenario, position, first, step)
            yield Violation("extra-request", step.number, message, location=step.number)
        elif _given(step, scenario, position):
            given[scenario.name, position] = step


def _repeats(scenario: Scenario, position: int) -> bool:
    index = turn_index(scenario, position)
    return scenario.restart or index is None or scenario.turns[index].repeat


def _given(step: Step, scenario: Scenario, position: int) -> bool:
    """Whether the client has got the whole answer, so that it has no reason to try again."""
    exchange = step.exchange
    return (
        exchange.outcome == "played"
        and exchange.status < 300
        and exchange.sent.complete
        and not step.failed
        and not exchange.broken_off
        and exchange.sent.ended is not None
        and not any(map(_allows_retry, _quirks(step, scenario, position)))
    )


def _quirks(step: Step, scenario: Scenario, position: int) -> tuple[str, ...]:
    spec = turn_at(scenario, position, step.request.api)
    own = spec.wire.quirks if spec is not None and spec.wire is not None else ()
    return (*own, *step.exchange.played.quirks) if step.exchange.played.stream else ()


def _allows_retry(name: str) -> bool:
    """Whether a correct client may report an error for a stream with this quirk."""
    try:
        quirk, variant = find(name)
    except UsageError:
        return True  # of a scenario that was read by another version
    return (variant.right or quirk.prose.right) != "same"


def _message(scenario: Scenario, position: int, first: Step, step: Step) -> str:
    same = "the same body" if first.exchange.body == step.exchange.body else "another body"
    return (
        f"turn {position + 1} of scenario {scenario.name!r} was the answer to request "
        f"{first.number} already, and is requested again with {same}; a client requests each "
        "answer once. If it may be requested again, add `repeat: true` to the turn or "
        "`then: restart` to the scenario"
    )
