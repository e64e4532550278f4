"""The answers of a turn to its tries: an error, an answer of the try's own, or that of the turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockllm.protocols.base import WireProtocol
from mockllm.replay.compilation.compiler import Replayer
from mockllm.replay.compilation.http_answer import HttpAnswer, http_error_answer
from mockllm.replay.decision_cache import Decision
from mockllm.scenario.fault_model import Fault

if TYPE_CHECKING:
    from mockllm.replay.compilation.tape_player import RecordedAnswer


def try_answer(
    replayer: Replayer, decision: Decision, protocol: WireProtocol, attempt: int
) -> tuple[HttpAnswer, tuple[Fault, ...]]:
    """What an earlier try gets, counted from 1, and the faults of that."""
    tried = decision.spec.tried(decision.spec.attempts[attempt - 1])
    selection = decision.selection
    if tried.http is not None:
        return http_error_answer(protocol, tried, selection, attempt), tried.fault
    answer = replayer.answer(
        selection, decision.request, protocol, decision.quirks, tried=tried, attempt=attempt
    )
    return answer, tried.fault


def last_answer(
    replayer: Replayer,
    decision: Decision,
    protocol: WireProtocol,
    recorded: RecordedAnswer | None,
    attempt: int,
) -> HttpAnswer:
    """What the try that succeeds gets: the recording of the turn, an error, or its reply.

    Args:
        attempt: its number, from 1.
    """
    if recorded is not None and recorded.answer is not None:
        return recorded.answer
    if decision.spec.http is not None:
        return http_error_answer(protocol, decision.spec, decision.selection, attempt)
    duration = 0 if recorded is None else recorded.duration
    return replayer.answer(
        decision.selection, decision.request, protocol, decision.quirks, duration=duration
    )


def with_faults(
    answer: HttpAnswer,
    faults: tuple[Fault, ...],
    decision: Decision,
    protocol: WireProtocol,
    speed: float = 1.0,
) -> HttpAnswer:
    """An answer of a turn with its faults, whose modules are imported with the first ones."""
    if not faults:
        return answer
    from mockllm.replay.faults.broken_answer import broken, circumstances

    scenario, position = decision.selection.scenario, decision.selection.position
    around = circumstances(protocol, decision.request, decision.path, scenario, position)
    return broken(answer, faults, around, speed)
