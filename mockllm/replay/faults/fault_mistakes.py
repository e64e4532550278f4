"""Finds faults that cannot strike: their place does not come in the answer of their turn. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from mockllm.matching.select import Selection
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import WireProtocol
from mockllm.replay.client_requests import first_request
from mockllm.replay.compilation.compiler import Replayer
from mockllm.replay.faults.broken_answer import broken, circumstances
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
        variants = dict(turn.variants)
        apis = [name for name in PROTOCOLS if scenario.plays_over(name) and name not in variants]
        written = [(turn, base, apis)]
        for number, (name, variant) in enumerate(turn.variants):
            if variant.fault != turn.fault or variant.reply != turn.reply:
                written.append((variant, (*base, "when", number), [name]))
        for spec, path, names in written:
            for answer, where in _broken_answers(spec, path):
                missed = {api: _missed(scenario, index, answer, PROTOCOLS[api]) for api in names}
                if missed and all(missed.values()):
                    api, reason = next(iter(missed.items()))
                    yield (*where, "fault"), f"cannot strike: over {api}, {reason}"


def _broken_answers(turn: TurnSpec, path: KeyPath) -> Iterator[tuple[TurnSpec, KeyPath]]:
    """The answers of a turn, and of the tries before it, that have faults and are known."""
    answers = [] if turn.recorded is not None else [(turn, path)]
    for number, attempt in enumerate(turn.attempts):
        answers.append((turn.tried(attempt), (*path, "attempts", number)))
    for answer, where in answers:
        if answer.fault and answer.http is None and AutoPart() not in answer.reply:
            yield answer, where


def _missed(scenario: Scenario, index: int, turn: TurnSpec, protocol: WireProtocol) -> str:
    """Why a fault does not strike in the streamed answer of a turn; "" where each does."""
    request = first_request(protocol, scenario, "Hello", "model")
    answer = Replayer().answer(
        Selection(scenario, index, index), request, protocol, tried=turn, attempt=1
    )
    around = circumstances(protocol, request, "", scenario, index)
    note = broken(answer, turn.fault, around).fault
    return "" if note is None else note.missed
