"""The errors of a service, as it would send them: as an answer, and in the middle of a stream."""

from __future__ import annotations

from dataclasses import replace

from mockllm.core.events import Event, Frame, Start, Timed
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Turn
from mockllm.errors import MockLLMError, RequestError
from mockllm.faults.events import seen_events
from mockllm.faults.transmission import Circumstances
from mockllm.framing.sse import encode
from mockllm.protocols.base import WireProtocol


def service_error(protocol: WireProtocol, kind: str) -> RequestError:
    """An error of a service, by its kind."""
    failure = protocol.service_errors[kind]
    own = failure.error
    return RequestError(own.message, status=failure.status, type=own.type, code=own.code)


def error_frames(around: Circumstances, before: bytes, kind: str) -> bytes:
    """The bytes of an error after the bytes of a stream: numbers and open items go on from there.

    Args:
        before: the stream so far, cut between two events.
    """
    protocol = around.protocol
    error = protocol.service_errors[kind].error
    frames = [Frame(event.data) for event in seen_events(protocol, before)]
    turn, events = _so_far(protocol, frames)
    encoder = protocol.encoder(replace(turn, finish=None, error=error), around.reply)
    for event in events:
        encoder.encode(event)
    errors = encoder.encode(error)
    if protocol.numbered is not None:
        errors = protocol.numbered(errors, len(frames))
    return b"".join(encode(frame, protocol.line_end) for frame in errors)


def _so_far(protocol: WireProtocol, frames: list[Frame]) -> tuple[Turn, list[Event]]:
    """The turn so far and its events; of a stream that cannot be read only the beginning."""
    decoder = protocol.decoder()
    seen: list[Timed] = []
    try:
        for frame in frames:
            seen += [Timed(0, event) for event in decoder.decode(frame)]
        turn = fold(seen)
    except (MockLLMError, ValueError):
        return Turn(), [Start()]
    return turn, [timed.event for timed in expand(turn)] if frames else []
