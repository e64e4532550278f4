"""A captured answer to a turn of a scenario: the neutral reply, and the tape beside it. Pure.

The reply is what the decoder understood; people read and edit it, and other protocols play it. The
tape has the exact bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from mockllm.core.request import Request
from mockllm.core.seeded import derive
from mockllm.core.timeline import expand
from mockllm.core.turn import TokenUsage
from mockllm.errors import MockLLMError, RequestError, WireError
from mockllm.protocols.base import Reply, WireProtocol
from mockllm.protocols.detection import Detected
from mockllm.protocols.extra import added_fields, added_to_error
from mockllm.protocols.normalisation import in_envelope
from mockllm.recording.drafting.unresolve import unresolve
from mockllm.scenario.model import TurnSpec
from mockllm.tapes.captured import Captured
from mockllm.tapes.conversion import tape_of
from mockllm.tapes.model import Tape
from mockllm.tapes.recorded_turn import RecordedTurn, recorded_error, recorded_turn

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DraftedTurn:
    """A turn of a scenario, without conditions on its request.

    Args:
        problem: why the turn is not all of the answer; "" where it is.
        id: the service's id of the answer; "" where it has none.
        decoded: what the tape decodes to; None for an HTTP error.
    """

    spec: TurnSpec
    tape: Tape
    problem: str = ""
    id: str = ""
    decoded: RecordedTurn | None = None


def draft_turn(exchange: Captured, detected: Detected, request: Request) -> DraftedTurn:
    """The turn and the tape of an answer.

    Raises:
        WireError: it is no answer (a redirection), or is compressed in an unknown way.
    """
    protocol = detected.protocol
    assert protocol is not None
    if not (200 <= exchange.status < 300 or 400 <= exchange.status < 600):
        raise WireError(f"HTTP {exchange.status} is no answer of a model")
    plain = exchange.plain()
    tape = replace(tape_of(plain), streamed=request.stream)
    if plain.status >= 400:
        return DraftedTurn(_error(plain, protocol), tape)
    answer = recorded_turn(plain, protocol, streamed=request.stream)
    extra = _extra(answer, plain, protocol, request)
    spec = replace(unresolve(answer.turn), extra=((protocol.name, extra),) if extra else ())
    return DraftedTurn(spec, tape, answer.problem, answer.id, answer)


def _error(plain: Captured, protocol: WireProtocol) -> TurnSpec:
    """The turn of an HTTP error."""
    http = recorded_error(plain, protocol)
    assert http.error is not None
    own = http.error
    error = RequestError(own.message or "", status=plain.status, type=own.type, code=own.code)
    try:
        value = json.loads(plain.body)
    except (ValueError, RecursionError):
        value = None
    extra = {}
    if isinstance(value, dict):
        extra = added_to_error(protocol, protocol.error_body(error), value, error.message)
    return TurnSpec(http=http, extra=((protocol.name, extra),) if extra else ())


def _extra(
    answer: RecordedTurn, plain: Captured, protocol: WireProtocol, request: Request
) -> dict[str, Json]:
    """The fields that the service adds to its API; {} where the turn cannot be encoded again."""
    if not answer.events:
        return {}
    reply = Reply(
        seed=derive(plain.url, length=32),
        token=derive(plain.url, length=40, hex=True),
        model=answer.model or request.model,
        options=protocol.options(request),
        usage=answer.turn.usage or TokenUsage(0, 0),
    )
    try:
        encoded = _encoded(answer, protocol, reply, streamed=request.stream)
    except (MockLLMError, ValueError):
        return {}  # what cannot be encoded, such as a call without a name, is only on the tape
    return added_fields(protocol, answer.turn, encoded, answer.events, streamed=request.stream)


def _encoded(
    answer: RecordedTurn, protocol: WireProtocol, reply: Reply, *, streamed: bool
) -> list[Json]:
    """The events of a turn, with one for each part; a body is one, in its envelope."""
    turn = answer.turn.whole()
    if not streamed:
        return [in_envelope(protocol, protocol.encode_body(turn, reply))]
    encoder = protocol.encoder(turn, reply)
    frames = [frame for timed in expand(turn) for frame in encoder.encode(timed.event)]
    data = (frame.data for frame in frames if frame.data is not None and frame.data[:1] == "{")
    return [json.loads(text) for text in data]
