"""A captured answer to a turn of a scenario: the neutral reply, and the tape beside it.

The reply is what the decoder understood; people read it, and other protocols play it. Where
encoding it again would not give the recorded bytes, only the tape is exact, and the line of the
report says why. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mockllm.core.events import Start, StreamError, Timed
from mockllm.core.frame import Frame
from mockllm.core.request import Request
from mockllm.core.seeded import derive
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import TokenUsage, Turn, beats
from mockllm.errors import MockLLMError, RequestError, StreamFormatError, WireError
from mockllm.framing.sse import SSEDecoder
from mockllm.protocols.base import Reply, WireProtocol, dumps
from mockllm.protocols.detection import Detected
from mockllm.protocols.extra import content, difference, difference_of_errors
from mockllm.protocols.normalisation import difference_of_frames, in_envelope
from mockllm.recording.drafting.error_replies import error_of, retry_after_of
from mockllm.recording.drafting.unresolve import unresolve
from mockllm.replay.compilation.resolve import resolve
from mockllm.scenario.model import Http, Scenario, TurnSpec
from mockllm.tapes.captured import Captured
from mockllm.tapes.conversion import tape_of
from mockllm.tapes.model import Tape, digest

__all__ = ["DraftedTurn", "complete", "draft_turn"]

_NOT_OURS = frozenset(
    {"connection", "content-encoding", "content-length", "content-type", "date", "keep-alive"}
    | {"retry-after", "retry-after-ms", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers of an error that its neutral form writes itself, or that belong to the connection."""


@dataclass(frozen=True, slots=True)
class DraftedTurn:
    """A turn of a scenario, without conditions on its request.

    Args:
        outcome: `neutral` where playing the turn gives the recorded events, `frames` where only
            the tape does.
        reason: why it is `frames`; "" where it is `neutral`.
        id: the service's id of the answer; "" where it has none.
    """

    spec: TurnSpec
    tape: Tape
    outcome: Literal["neutral", "frames"]
    reason: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class _Read:
    """What was understood of a body; `problem` says why that is not all of it."""

    turn: Turn
    frames: tuple[Frame, ...] = ()
    id: str = ""
    model: str = ""
    problem: str = ""


def complete(exchange: Captured, protocol: WireProtocol) -> bool:
    """Whether a stream has its end marker, so that nothing of it is missing."""
    try:
        decoder, wire = SSEDecoder(), protocol.decoder()
        for chunk in exchange.plain().chunks:
            for frame in decoder.decode(chunk.data):
                wire.decode(frame)
    except (MockLLMError, ValueError):
        return False
    return wire.complete


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
    if plain.status >= 400:
        return _error(plain, protocol, request)
    read = _stream(plain, protocol) if _is_stream(plain, request) else _body(plain, protocol)
    played = _played(plain, protocol, request, read)
    problem = read.problem or played.problem
    spec = replace(unresolve(played.turn), extra=played.extra)
    tape = _tape(plain, request, spec)
    return DraftedTurn(spec, tape, "frames" if problem else "neutral", problem, read.id)


def _tape(plain: Captured, request: Request, spec: TurnSpec) -> Tape:
    tape = tape_of(plain)
    return replace(tape, streamed=request.stream, digest=digest(spec, tape.api))


# Streams


def _is_stream(plain: Captured, request: Request) -> bool:
    """Whether it is made of events. A service may answer a request for a stream with a body,
    and some send their events as plain text."""
    if "event-stream" in plain.header("content-type"):
        return True
    beginning = plain.body.lstrip()[:1]
    return request.stream and beginning not in (b"{", b"[", b"<")


def _stream(plain: Captured, protocol: WireProtocol) -> _Read:
    decoder = SSEDecoder()
    frames: list[tuple[int, Frame]] = []
    problem = ""
    try:
        for chunk in plain.chunks:
            frames += [(chunk.at, frame) for frame in decoder.decode(chunk.data)]
    except StreamFormatError as error:
        problem = str(error)
    return _folded(frames, protocol, problem)


def _folded(frames: Sequence[tuple[int, Frame]], protocol: WireProtocol, problem: str) -> _Read:
    """The turn that the frames add up to, as far as they can be understood."""
    wire = protocol.decoder()
    timed: list[Timed] = []
    last = 0
    try:
        for at, frame in frames:
            last = at
            timed += [Timed(at, event) for event in wire.decode(frame)]
        timed += [Timed(last, event) for event in wire.close()]
        turn = fold(timed)
    except (MockLLMError, ValueError) as error:
        problem = problem or str(error)
        turn = _foldable(timed)
    starts = [one.event for one in timed if isinstance(one.event, Start)]
    return _Read(
        turn,
        tuple(frame for _, frame in frames),
        next((start.id for start in starts if start.id), ""),
        next((start.model for start in starts if start.model), ""),
        problem,
    )


def _foldable(timed: Sequence[Timed]) -> Turn:
    """The turn of the longest prefix of the events that can be folded."""
    for count in range(len(timed), -1, -1):
        try:
            return fold(timed[:count])
        except ValueError:
            continue
    return Turn()


# Bodies


def _body(plain: Captured, protocol: WireProtocol) -> _Read:
    at = plain.chunks[-1].at if plain.chunks else 0
    text = plain.body.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _Read(_failed(protocol, text, text), problem="the body is no JSON")
    if isinstance(value, list):  # Gemini's streams, where the client did not ask for events
        items = [(at, Frame(dumps(item))) for item in value]
        return _folded(items, protocol, "")
    if not isinstance(value, dict) or _is_error(protocol, value):
        return _Read(_failed(protocol, value, text), problem="the body is an error")
    try:
        turn = protocol.decode_body(value)
    except (MockLLMError, ValueError) as error:
        return _Read(_failed(protocol, value, text), problem=str(error))
    beats_ = sum(map(beats, turn.parts))
    named = protocol.detect.identity(value)
    whole = in_envelope(protocol, value)
    return _Read(
        replace(turn, gaps=(at, *[0] * beats_)),
        (Frame(dumps(whole)),),
        named.id,
        named.model,
    )


def _is_error(protocol: WireProtocol, value: dict[str, Any]) -> bool:
    return bool(value.get("error")) or protocol.decode_error(value) is not None


def _failed(protocol: WireProtocol, value: object, text: str) -> Turn:
    """A turn that ends in the error of a body."""
    error = error_of(protocol, value, text)
    message = error.message or "The service sent nothing."
    return Turn(error=StreamError(message, error.type, error.code))


# Errors


def _error(plain: Captured, protocol: WireProtocol, request: Request) -> DraftedTurn:
    """An HTTP error; `frames` where the service does not write it as the protocol does."""
    text = plain.body.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    retry = retry_after_of(plain)
    own = error_of(protocol, value, text)
    headers = tuple(
        (name, header)
        for name, header in dict(plain.headers).items()
        if name not in _NOT_OURS and header
    )
    http = Http(plain.status, headers, None if retry is None else round(retry * 1_000_000), own)
    spec = TurnSpec(http=http)
    error = RequestError(
        own.message or "", status=plain.status, type=own.type, code=own.code, retry_after=retry
    )
    reason = ""
    try:
        extra = _error_fields(protocol, error, value)
        spec = replace(spec, extra=((protocol.name, extra),) if extra else ())
    except WireError as problem:
        reason = f"the error is not in the usual form of its API: {problem}"
    tape = _tape(plain, request, spec)
    return DraftedTurn(spec, tape, "frames" if reason else "neutral", reason)


def _error_fields(protocol: WireProtocol, error: RequestError, value: object) -> dict[str, Any]:
    """The extra fields of the body of an error, as `difference_of_errors` gives them."""
    if not isinstance(value, dict):
        raise WireError("the body is no JSON object")
    return difference_of_errors(protocol, protocol.error_body(error), value, error.message)


# Whether playing the turn gives the recorded events


@dataclass(frozen=True, slots=True)
class _Played:
    """A turn that can be played, its extra fields, and why that is not the recorded answer."""

    turn: Turn
    extra: tuple[tuple[str, Any], ...] = ()
    problem: str = ""


def _played(plain: Captured, protocol: WireProtocol, request: Request, read: _Read) -> _Played:
    """The turn of an answer as it is recorded: as it was read, or without the frames of unread
    fields and with these fields as extra ones."""
    as_read = _encoded_or_problem(plain, protocol, request, read, read.turn)
    if isinstance(as_read, str):
        return _Played(read.turn, problem=as_read)
    problem = _difference(protocol, read.frames, as_read)
    if not problem:
        return _Played(read.turn)
    problems = []
    # A content part without a neutral form, such as an image, has to stay a frame.
    for turn in (content(read.turn, read.frames), read.turn):
        encoded = _encoded_or_problem(plain, protocol, request, read, turn)
        if isinstance(encoded, str):
            continue
        try:
            extra = difference(protocol, encoded, read.frames, streamed=request.stream)
        except WireError as error:
            problems.append(str(error))
            continue
        return _Played(turn, ((protocol.name, extra),) if extra else ())
    return _Played(read.turn, problem=next(iter(problems), problem))


def _as_written(protocol: WireProtocol, turn: Turn) -> Turn:
    """The turn as the YAML plays it: a call without an id gets a derived one, for example."""
    scenario = Scenario("recorded", (unresolve(turn),))
    return resolve(scenario, 0, protocol.name, protocol.call_prefix)


def _encoded_or_problem(
    plain: Captured, protocol: WireProtocol, request: Request, read: _Read, turn: Turn
) -> list[Frame] | str:
    """The frames of a turn that is played in reply to a request, or why there are none."""
    reply = Reply(
        seed=derive(plain.url, length=32),
        token=derive(plain.url, length=40, hex=True),
        model=read.model or request.model,
        options=protocol.options(request),
        usage=turn.usage or TokenUsage(0, 0),
    )
    try:
        return _encoded(protocol, _as_written(protocol, turn), reply, streamed=request.stream)
    except (MockLLMError, ValueError) as error:
        return f"the turn cannot be encoded: {error}"


def _difference(protocol: WireProtocol, recorded: Sequence[Frame], encoded: Sequence[Frame]) -> str:
    """Where two streams first differ, but for what services make up; "" where they do not."""
    return difference_of_frames(protocol, recorded, encoded) or ""


def _encoded(protocol: WireProtocol, turn: Turn, reply: Reply, *, streamed: bool) -> list[Frame]:
    if streamed:
        encoder = protocol.encoder(turn, reply)
        return [frame for timed in expand(turn) for frame in encoder.encode(timed.event)]
    body: dict[str, Any] = protocol.encode_body(turn, reply)
    whole = in_envelope(protocol, body)
    return [Frame(dumps(whole))]
