"""Finds faults that cannot strike: their place does not come in the answer of their turn. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from mockllm.matching.select import Selection
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import WireProtocol
from mockllm.replay.client_requests import first_request
from mockllm.replay.compilation.compiler import Replayer
from mockllm.replay.faults.broken_answer import broken, circumstances
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.model import AutoPart, Scenario, TurnSpec
from mockllm.scenario.reading.locate import KeyPath


def fault_mistakes(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    """The faults of a scenario that strike over none of its APIs: where each is, and why.

    Answers that depend on the request (`auto`) or were recorded are not known here: when they are
    played, the journal says that a fault did not strike.
    """
    if scenario.route is not None:
        return
    for index, turn in enumerate(scenario.turns):
        base: KeyPath = ("turns", index)
        apis = [name for name in PROTOCOLS if scenario.plays_over(name)]
        own = [name for name, _ in turn.variants]
        yield from _mistakes(scenario, index, turn, base, [api for api in apis if api not in own])
        for number, (name, variant) in enumerate(turn.variants):
            if variant.fault != turn.fault or variant.reply != turn.reply:
                yield from _mistakes(scenario, index, variant, (*base, "when", number), [name])


def _mistakes(
    scenario: Scenario, index: int, turn: TurnSpec, path: KeyPath, apis: list[str]
) -> Iterator[tuple[KeyPath, str]]:
    if turn.fault and turn.recorded is None and turn.http is None:
        yield from _of_answer(scenario, index, turn, turn.fault, path, apis)
    for number, attempt in enumerate(turn.attempts):
        tried = turn.tried(attempt)
        if attempt.fault and tried.http is None:
            where = (*path, "attempts", number)
            yield from _of_answer(scenario, index, tried, attempt.fault, where, apis)


def _of_answer(
    scenario: Scenario,
    index: int,
    turn: TurnSpec,
    faults: tuple[Fault, ...],
    path: KeyPath,
    apis: list[str],
) -> Iterator[tuple[KeyPath, str]]:
    if any(isinstance(part, AutoPart) for part in turn.reply):
        return
    reasons = {api: _missed(scenario, index, turn, faults, PROTOCOLS[api]) for api in apis}
    if reasons and all(reasons.values()):
        api, reason = next(iter(reasons.items()))
        yield (*path, "fault"), f"cannot strike: over {api}, {reason}"


def _missed(
    scenario: Scenario,
    index: int,
    turn: TurnSpec,
    faults: tuple[Fault, ...],
    protocol: WireProtocol,
) -> str:
    """Why a fault does not strike in the streamed answer of a turn; "" where each does."""
    request = first_request(protocol, scenario, "Hello", "model")
    answer = Replayer().answer(
        Selection(scenario, index, index), request, protocol, tried=turn, attempt=1
    )
    note = broken(answer, faults, circumstances(protocol, request, "", scenario, index)).fault
    return "" if note is None else note.missed
