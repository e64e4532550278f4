"""The answer of a gateway, as a client of its API reads it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from mockllm.core.errors import MockLLMError, StreamFormatError
from mockllm.core.http import TimedBytes
from mockllm.core.turn import Turn
from mockllm.play.tapes.captured import Captured
from mockllm.play.tapes.recorded_turn import carrier_of, recorded_error, recorded_turn
from mockllm.scenario.model import Http
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.extra import in_envelope, objects_at
from mockllm.wire.protocols.records import FormMistake, NamedEvent, Way
from mockllm.wire.protocols.values import json_object

Transfer = Literal["whole", "broken", "late", "left"]
"""How the connection ended: the answer came whole, it broke off, it had not ended in time, or the
client left."""

Ending = Literal["whole", "error", "refused", "broken", "unfinished", "body", "late", "left"]
"""How an answer ends for a client of its API. `whole`: as answers do; `error`: with an error that
the client is told; `refused`: with an HTTP error; `broken`: the connection broke off; `unfinished`:
the connection ended in order, and the answer has no end; `body`: a stream was requested, and a body
came; `late`: not in time; `left`: the client left."""


@dataclass(slots=True)
class HttpReply:
    """An answer as it comes.

    Args:
        status: 0 where no answer came.
        headers: names in lower case.
        chunks: of the body, in microseconds after the request.
        began: when the request was sent, in seconds of `time.perf_counter`.
        left: when the client left, in the same clock; 0 where it did not.
        problem: why there is no whole answer, in words.
    """

    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    chunks: list[TimedBytes] = field(default_factory=list)
    transfer: Transfer = "whole"
    began: float = 0.0
    left: float = 0.0
    problem: str = ""

    @property
    def body(self) -> bytes:
        return b"".join(chunk.data for chunk in self.chunks)


NOTHING = Turn()


@dataclass(frozen=True, slots=True)
class Reading:
    """An answer as a client of the API reads it.

    Args:
        turn: what came of it.
        id: of the answer; "" where it has none.
        mistakes: against the form of the API's streams.
        ways: every way in which clients of the API read it, where it is whole.
        costs: what it says that it costs, each time that it does.
        problem: why the turn is not all of the answer; "" where it is.
        error: the HTTP error; None where it is none.
    """

    reply: HttpReply
    ending: Ending
    turn: Turn = NOTHING
    id: str = ""
    mistakes: tuple[FormMistake, ...] = ()
    ways: tuple[Way, ...] = ()
    costs: tuple[float, ...] = ()
    problem: str = ""
    error: Http | None = None

    @property
    def error_message(self) -> str:
        """The message of the error, in the stream or over HTTP; "" where it says nothing, or is
        none."""
        error = self.turn.error if self.error is None else self.error.error
        return (error and error.message) or ""


def read_reply(reply: HttpReply, protocol: WireProtocol, *, streamed: bool) -> Reading:
    """Reads an answer to a request for a stream, or for a body."""
    captured = Captured("POST", "", (), b"", reply.status, reply.headers, tuple(reply.chunks))
    try:
        plain = captured.plain()
    except MockLLMError as error:
        return Reading(reply, "broken", problem=str(error))
    if reply.status == 0:
        return Reading(reply, "late" if reply.transfer == "late" else "broken")
    if reply.status >= 400:
        return Reading(reply, "refused", error=recorded_error(plain, protocol))
    carrier = carrier_of(plain.header("content-type"), protocol.carriers)
    if carrier is not None and not streamed:
        return Reading(reply, "broken", problem="it is a stream, and none was requested")
    if streamed and carrier is None and reply.transfer == "whole" and _is_body(plain, protocol):
        return Reading(reply, "body", problem="it is a body, and a stream was requested")
    recorded = recorded_turn(plain, protocol, streamed=streamed)
    complete = not recorded.problem if carrier is None else recorded.complete
    mistakes = () if carrier is None else stream_mistakes(plain.body, protocol, carrier)
    ending = _ending(reply, recorded.turn, complete=complete)
    ways: tuple[Way, ...] = ()
    costs: tuple[float, ...] = ()
    if ending == "whole":
        ways = answer_ways(plain.body, protocol, carrier)
        costs = tuple(_costs(plain, protocol, carrier))
    turn, id, problem = recorded.turn, recorded.id, recorded.problem
    return Reading(reply, ending, turn, id, mistakes, ways, costs, problem)


_COST_HEADER = "x-litellm-response-cost"
"""LiteLLM says there what an answer costs that is not streamed. OpenRouter, and LiteLLM for
streams, have `cost` beside the token counts."""


def _costs(plain: Captured, protocol: WireProtocol, carrier: Carrier | None) -> Iterator[float]:
    with suppress(ValueError):
        yield float(plain.header(_COST_HEADER))
    if b'"cost"' in plain.body:
        events = [dict(event) for _, event in _answer_events(plain.body, protocol, carrier)]
        for counts in objects_at(protocol, "usage", events, streamed=carrier is not None):
            if isinstance(cost := counts.get("cost"), int | float):
                yield float(cost)


def _is_body(plain: Captured, protocol: WireProtocol) -> bool:
    """Whether clients that read a stream find nothing in an answer."""
    try:
        return not any(frame.data for frame in protocol.usual.decode(plain.body))
    except StreamFormatError:
        return True


def _ending(reply: HttpReply, turn: Turn, *, complete: bool) -> Ending:
    if turn.error is not None:
        return "error"
    if reply.transfer != "whole":
        return reply.transfer
    return "whole" if complete and turn.finish is not None else "unfinished"


def stream_mistakes(
    body: bytes, protocol: WireProtocol, carrier: Carrier
) -> tuple[FormMistake, ...]:
    """The breaches of the form of a stream; nothing where its frames cannot be read at all."""
    try:
        events = _events(body, carrier)
    except StreamFormatError as error:
        return ((str(error), True),)
    return tuple(protocol.events.mistakes([event for _, event in events]))


def answer_ways(body: bytes, protocol: WireProtocol, carrier: Carrier | None) -> tuple[Way, ...]:
    """Every way in which clients read an answer; nothing where its frames cannot be read at all.

    Args:
        carrier: None for a body.
    """
    try:
        return tuple(protocol.events.ways(_answer_events(body, protocol, carrier)))
    except StreamFormatError:
        return ()


def _answer_events(
    body: bytes, protocol: WireProtocol, carrier: Carrier | None
) -> list[NamedEvent]:
    """The objects of an answer, with the names of their frames; a body is one.

    Raises:
        StreamFormatError: it is no stream of the carrier.
    """
    if carrier is not None:
        return _events(body, carrier)
    value = json_object(body.decode("utf-8", "replace"))
    return [] if value is None else [("", in_envelope(protocol, value))]


def _events(body: bytes, carrier: Carrier) -> list[NamedEvent]:
    """The objects in the frames of a stream, with the names of the frames.

    Raises:
        StreamFormatError: it has none.
    """
    return [
        (frame.event or "", value)
        for frame in carrier.decode(body)
        if (value := json_object(frame.data)) is not None
    ]
