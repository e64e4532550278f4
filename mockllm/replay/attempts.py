"""The answers of a turn to its tries: an error, an answer of the try's own, or that of the turn."""

from __future__ import annotations

from mockllm.core.request import Request
from mockllm.matching.select import Selection
from mockllm.protocols.base import WireProtocol
from mockllm.replay.compilation.compiler import Replayer
from mockllm.replay.compilation.http_answer import HttpAnswer, http_error_answer
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.model import Http, TurnSpec


def try_answer(
    replayer: Replayer,
    selection: Selection,
    request: Request,
    protocol: WireProtocol,
    spec: TurnSpec,
    failure: Http,
    attempt: int,
    quirks: tuple[str, ...] = (),
) -> tuple[HttpAnswer, tuple[Fault, ...]]:
    """What an earlier try gets, and the faults of that."""
    tried = spec.tried(failure)
    if tried.http is not None:
        return http_error_answer(protocol, tried.http, selection, attempt), tried.fault
    answer = replayer.answer(selection, request, protocol, quirks, tried=tried, attempt=attempt)
    return answer, tried.fault


def broken_answer(
    answer: HttpAnswer,
    faults: tuple[Fault, ...],
    selection: Selection,
    request: Request,
    protocol: WireProtocol,
    *,
    path: str = "",
    speed: float = 1.0,
) -> HttpAnswer:
    """An answer of a turn with its faults, whose modules are imported with the first ones."""
    if not faults:
        return answer
    from mockllm.replay.faults.broken_answer import broken, call_names, circumstances

    names = call_names(selection.scenario, selection.position, protocol)
    around = circumstances(protocol, request, path, call_names=names)
    return broken(answer, faults, around, speed)
