"""HTTP answers with faults: from `mockllm.play.faults` to what the server sends. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from mockllm.core.errors import MockLLMError
from mockllm.core.http import TimedBytes
from mockllm.core.request import Request
from mockllm.core.seeded import derive
from mockllm.play.faults.breaking import REDIRECTED, break_answer
from mockllm.play.faults.transmission import Circumstances, Transmission
from mockllm.play.matching.conversation import Selection, planned_calls
from mockllm.play.replay.call import Answered, ApiCall
from mockllm.play.replay.client_requests import first_request
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.compilation.http_answer import HttpAnswer, bytes_answer
from mockllm.play.replay.sessions.exchange import Played
from mockllm.scenario.fault_model import Fault
from mockllm.scenario.model import Scenario, TurnSpec
from mockllm.scenario.reading.nodes import KeyPath
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply, WireProtocol


def circumstances(
    protocol: WireProtocol,
    request: Request | None,
    path: str,
    scenario: Scenario | None = None,
    position: int | None = None,
    on_socket: bool = False,
) -> Circumstances:
    """The circumstances of a request that faults depend on.

    Args:
        request: None for one that could not be read.
        path: with its query.
        scenario, position: of the turn that answers; None where none does.
        on_socket: whether the answer goes over a WebSocket.
    """
    planned = None
    if scenario is not None and position is not None:
        planned = planned_calls(scenario, position, protocol.name)
    options: Hashable = None if request is None else protocol.options(request)
    reply = Reply(
        seed=derive("", "fault", path, length=32),
        token=derive("", "fault", "token", length=40, hex=True),
        model="" if request is None else request.model,
        options=options,
    )
    redirected = f"{REDIRECTED}/" in path.partition("?")[0]
    names = {call.id: call.name for call in planned or ()}
    return Circumstances(protocol, reply, path, redirected, names, on_socket)


def broken(
    answer: HttpAnswer, faults: tuple[Fault, ...], around: Circumstances, speed: float = 1.0
) -> HttpAnswer:
    """The answer with faults; the id of an answer stays as it is.

    Args:
        speed: of the answer's own pauses, not of those of the faults; 0 removes them.

    Raises:
        MockLLMError: the answer has faults already.
    """
    if answer.fault is not None:
        raise MockLLMError("an answer with faults cannot get further ones")
    chunks = answer.chunks
    if speed != 1:
        times = (round(at / speed) if speed else 0 for at in answer.times)
        chunks = tuple(map(TimedBytes, times, answer.data))
    sent = Transmission(
        answer.status, answer.headers, chunks, answer.streamed, answer.ending, answer.length
    )
    changed = break_answer(sent, faults, around)
    plain = bytes_answer(
        changed.status,
        changed.headers,
        changed.parts,
        streamed=changed.streamed,
        segmented=True,
        ending=changed.ending,
        id=answer.id,
        reason=answer.reason if changed.status == answer.status else None,
        trailers=answer.trailers if changed.streamed else (),
        bodiless=answer.bodiless and not changed.parts,
        length=changed.length,
    )
    note = replace(changed, parts=())
    # Those are left out that the broken answer does not come to.
    gates = tuple(
        replace(gate, pause=round(gate.pause / speed) if speed else 0)
        for gate in answer.gates
        if gate.before <= plain.size
    )
    return replace(plain, fault=note, pace=answer.pace, generated=answer.generated, gates=gates)


def refused_handshake(protocol: WireProtocol, path: str, fault: Fault) -> Answered:
    """The answer to a request that opens a WebSocket, where a fault refuses that."""
    pause = fault.get("pause")
    faults = [replace(fault, name="status")]
    if pause is not None:
        faults.append(Fault("stall", values=(("for", pause),)))
    around = circumstances(protocol, None, path)
    whole: HttpAnswer = bytes_answer(101, (), (), streamed=False)
    answer = broken(whole, tuple(faults), around)
    if answer.status == 426:  # says which protocol (RFC 9110, section 15.5.22)
        answer = replace(answer, headers=(*answer.headers, ("upgrade", "websocket")))
    assert answer.fault is not None
    answer = replace(answer, fault=replace(answer.fault, faults=str(fault)))
    return Answered(answer, Played("error", answer.status, cause="server", api=protocol.name))


def break_answered(
    call: ApiCall,
    answered: Answered,
    faults: tuple[Fault, ...],
    scenario: Scenario | None,
    speed: float,
) -> Answered:
    """The answer to a call, with faults of a plan.

    Args:
        scenario: that answered.
        speed: as of `broken`.
    """
    position = answered.played.position
    around = circumstances(
        call.protocol, call.request, call.path, scenario, position, call.on_socket
    )
    answer = broken(answered.answer, faults, around, speed)
    played = answered.played
    return Answered(answer, replace(played, status=answer.status, cause=played.cause or "server"))


def fault_mistakes(scenario: Scenario) -> Iterator[tuple[KeyPath, str]]:
    """The faults of a scenario that strike over none of its APIs: where each is, and why.

    Answers that depend on the request (`auto`) or were recorded are not known here: when they are
    played, the journal says that a fault did not strike.
    """
    if scenario.route is not None:
        return
    scenario = replace(scenario, obey=())  # the limits of a request are not known here, either
    for index, turn in enumerate(scenario.turns):
        base: KeyPath = ("turns", index)
        every = [name for name in PROTOCOLS if scenario.plays_over(name)]
        always = {branch.api for branch in turn.branches if branch.condition is None}
        written = [(turn, base, [name for name in every if name not in always])]
        for number, branch in enumerate(turn.branches):
            if branch.turn.fault != turn.fault or branch.turn.reply != turn.reply:
                apis = every if branch.api is None else [branch.api]
                written.append((branch.turn, (*base, "when", number), apis))
        for spec, path, names in written:
            for answer, where in _broken_answers(spec, path):
                missed = {
                    api: _why_missed(scenario, index, answer, PROTOCOLS[api]) for api in names
                }
                if missed and all(missed.values()):
                    api, reason = next(iter(missed.items()))
                    yield (*where, "fault"), f"cannot strike: over {api}, {reason}"


def _broken_answers(turn: TurnSpec, path: KeyPath) -> Iterator[tuple[TurnSpec, KeyPath]]:
    """The answers of a turn, and of the tries before it, that have faults and are known."""
    answers = [] if turn.recorded is not None or turn.one_of else [(turn, path)]
    answers += [(drawn.turn, (*path, "one_of", n)) for n, drawn in enumerate(turn.one_of)]
    for number, attempt in enumerate(turn.attempts):
        answers.append((turn.for_attempt(attempt), (*path, "attempts", number)))
    for answer, where in answers:
        if answer.fault and answer.http is None and not answer.is_auto:
            yield answer, where


def _why_missed(scenario: Scenario, index: int, turn: TurnSpec, protocol: WireProtocol) -> str:
    """Why a fault does not strike in the streamed answer of a turn; "" where each does."""
    request = first_request(protocol, scenario, "Hello", "model")
    answer = Replayer().answer(
        Selection(scenario, index, index),
        request,
        protocol,
        tried=replace(turn, obey=()),
        attempt=1,
    )
    if answer.pace is not None and any(
        fault.place is not None and fault.place.kind == "time" for fault in turn.fault
    ):
        return ""  # its times are drawn for each request
    over = [False] * (not protocol.address.is_socket) + [True] * (protocol.socket is not None)
    reasons = []
    for on_socket in over:
        around = circumstances(protocol, request, "", scenario, index, on_socket)
        note = broken(answer, turn.fault, around).fault
        reasons.append("" if note is None else note.missed)
    return reasons[0] if all(reasons) else ""
