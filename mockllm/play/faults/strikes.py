"""The effect of a fault at its place, in a whole answer and in one that arrives; errors of
services."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mockllm.core.errors import MockLLMError
from mockllm.core.events import Event, Frame, Start, Timed
from mockllm.core.http import Ending
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Turn
from mockllm.play.faults.places import HEADERS, seen_events
from mockllm.play.faults.transmission import Circumstances, SocketFault
from mockllm.scenario.fault_model import Fault, Place
from mockllm.wire.protocols.base import WireProtocol

ENDINGS: dict[str, Ending] = {
    "close": "closed",
    "reset": "reset",
    "chunk": "chunk",
    "orderly": "complete",
    "expired": "complete",
}
"""How an answer ends, by the parameter `end` of a fault."""

_TICK = 10_000
"""The least time between two pieces of an answer that drips, in microseconds."""


@dataclass(frozen=True, slots=True)
class Strike:
    """The effect of a fault: in place of the rest of an answer, or before it.

    Args:
        data: is sent.
        pause: what comes next comes later by this time, in microseconds.
        ending: the answer ends so; None: the rest of it follows.
    """

    data: bytes = b""
    pause: int = 0
    ending: Ending | None = None


def place_of(fault: Fault) -> Place:
    """Where a fault strikes."""
    default = Place("before", name="first") if fault.name == "error" else HEADERS
    return fault.place or default


def strike_of(fault: Fault, around: Circumstances, before: bytes) -> Strike:
    """The effect of `cut`, `error` or `stall`.

    Args:
        before: the body up to the place; an error comes between two events.
    """
    if fault.name == "cut":
        return Strike(ending=end_of(fault))
    if fault.name == "error":
        return Strike(error_frames(around, before, error_kind(fault)), ending="complete")
    pause = fault.get("for")
    return Strike(pause=pause) if isinstance(pause, int) else Strike(ending="open")


NO_CLOSE_FRAME = 1006
"""The code of a connection that ended without a close frame (RFC 6455, section 7.1.5)."""


def end_of(fault: Fault) -> Ending:
    """The ending of an answer by a fault; a close frame ends it in order."""
    code = fault.number("code")
    return "complete" if code not in (0, NO_CLOSE_FRAME) else ENDINGS[fault.text("end", "close")]


def socket_end(before: SocketFault, fault: Fault) -> SocketFault:
    """What `cut` and `stall` do to a WebSocket, besides what breaks already."""
    code = fault.number("code")
    return replace(
        before,
        code=0 if code == NO_CLOSE_FRAME else code,
        reason=fault.text("reason", ""),
        expires=fault.get("end") == "expired",
        answers_pings=fault.get("pings") is not False,
    )


_OF_HTTP = "content-type", "gzip", "checksum", "prelude-checksum"


def carrier_mismatch(fault: Fault, on_socket: bool) -> str:
    """Why a fault cannot be one of an answer over HTTP, or over a WebSocket; "" where it can."""
    if fault.name == "handshake":
        return "the request opens no WebSocket"
    if on_socket and (fault.name == "redirect" or fault.get("what") in _OF_HTTP):
        return "the answer goes over a WebSocket, as messages, which have no such thing"
    keys = {key for key, _ in fault.values}
    is_of_sockets = (
        fault.name == "fragment"
        or fault.get("what") == "opcode"
        or fault.get("end") == "expired"
        or bool(keys & {"code", "pings"})
    )
    if is_of_sockets and not on_socket:
        return "the answer goes over HTTP, not over a WebSocket"
    return ""


def error_kind(fault: Fault) -> str:
    """The kind of error that a fault has a service send."""
    return fault.text("kind", "overloaded")


def pace(fault: Fault) -> tuple[int, int]:
    """The pace of an answer that drips: bytes of a piece, and microseconds from one to the next."""
    each = fault.number("every") or 1_000_000 / fault.number("rate", 1)
    size = max(1, -(-_TICK // max(1, int(each)))) if each < _TICK else 1
    return size, round(each * size)


def error_frames(around: Circumstances, before: bytes, kind: str) -> bytes:
    """The bytes of an error after the bytes of a stream: numbers and open items go on from there.

    Args:
        before: the stream so far, cut between two events.
    """
    protocol = around.protocol
    error = protocol.service_errors[kind].error
    frames = [event.frame for event in seen_events(protocol, before, around.carrier)]
    turn, events = _so_far(protocol, frames)
    encoder = protocol.encoder(replace(turn, finish=None, error=error), around.reply)
    for event in events:
        encoder.encode(event)
    errors = encoder.encode(error)
    if protocol.with_sequence_numbers is not None:
        errors = protocol.with_sequence_numbers(errors, len(frames))
    return b"".join(around.carrier.encode(frame, protocol.line_end) for frame in errors)


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
