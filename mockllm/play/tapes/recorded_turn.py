"""The turn that a recorded answer decodes to, as far as it can be understood. Pure.

A tape is exact, and the turn in the YAML is what this module reads in it. While the two agree, the
tape is played. All that the YAML cannot hold is taken out here already: a surrogate pair that is
cut in two fragments, and counts of tokens that no service means.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mockllm.core.errors import MockLLMError, StreamFormatError
from mockllm.core.events import Frame, Start, StreamError, Timed
from mockllm.core.http import stated_wait
from mockllm.core.text import join_pairs, shorten
from mockllm.core.timeline import fold
from mockllm.core.turn import Opaque, Part, TokenUsage, Turn
from mockllm.play.tapes.captured import Captured
from mockllm.scenario.durations import MAX_DURATION
from mockllm.scenario.model import Http
from mockllm.scenario.part_model import ErrorSpec
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.framing.json_array import JSON_ARRAY
from mockllm.wire.protocols.base import WireProtocol, dumps
from mockllm.wire.protocols.extra import in_envelope
from mockllm.wire.protocols.route_matching import CARRIERS
from mockllm.wire.protocols.values import json_object, json_value

_MAX_TEXT = 300
_MAX_TOKENS = 10**9

_NOT_OURS = frozenset(
    {"connection", "content-encoding", "content-length", "content-type", "date", "keep-alive"}
    | {"retry-after", "retry-after-ms", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers of an error that its neutral form writes itself, or that belong to the connection."""

_OF_ROUTES = frozenset(("content-type", "location", "retry-after"))
"""The headers that the written answer of a route has; the tape has all."""


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """The turn to which a recorded answer decodes.

    Args:
        turn: without times.
        events: the JSON objects of its events; a body is one, in the envelope of its API.
        problem: why `turn` is not all of the answer; "" where it is.
        complete: whether a stream has its end marker, so that nothing of it is missing.
    """

    turn: Turn
    events: tuple[dict[str, Any], ...] = ()
    id: str = ""
    model: str = ""
    problem: str = ""
    complete: bool = False


def recorded_turn(plain: Captured, protocol: WireProtocol, *, streamed: bool) -> RecordedTurn:
    """The turn of a decompressed answer that is no HTTP error."""
    carrier = answer_carrier(plain, protocol, streamed=streamed)
    return _of_body(plain, protocol) if carrier is None else _of_stream(plain, protocol, carrier)


# Streams


def answer_carrier(plain: Captured, protocol: WireProtocol, *, streamed: bool) -> Carrier | None:
    """The carrier of an answer's frames; None if it is a body: a service may answer a request for
    a stream with one."""
    named = carrier_of(plain.header("content-type"), protocol.carriers)
    return carrier_in(plain.body, protocol.usual) if named is None and streamed else named


def carrier_of(content_type: str, among: Iterable[Carrier] = CARRIERS) -> Carrier | None:
    """The carrier of a stream by its content type; None where other bodies have the same."""
    named = (carrier for carrier in among if carrier.content_type in content_type)
    return next((carrier for carrier in named if carrier.name != JSON_ARRAY.name), None)


def carrier_in(body: bytes, usual: Carrier) -> Carrier | None:
    """The carrier of an answer by its bytes, where no content type says it: the usual one of its
    API, or None for a body. Some services send their streams as plain text."""
    if body.lstrip()[:1] not in (b"{", b"[", b"<"):
        return usual
    try:
        return usual if len(usual.decode(body)) > 1 else None
    except StreamFormatError:
        return None


def _of_stream(plain: Captured, protocol: WireProtocol, carrier: Carrier) -> RecordedTurn:
    frames: list[Frame] = []
    problem = ""
    try:
        decoder = carrier.decoder()
        for chunk in plain.chunks:
            frames.extend(filter(_has_content, decoder.decode(chunk.data)))
        frames.extend(decoder.close())
    except StreamFormatError as error:
        problem = str(error)
    return _fold_frames(frames, protocol, problem)


def _has_content(frame: Frame) -> bool:
    """Whether a frame is no comment: those are the transport's."""
    return frame.comment is None or frame.data is not None


def _fold_frames(frames: Sequence[Frame], protocol: WireProtocol, problem: str) -> RecordedTurn:
    wire = protocol.decoder()
    timed: list[Timed] = []
    complete = False
    try:
        for frame in frames:
            timed += [Timed(0, event) for event in wire.decode(frame)]
        complete = wire.complete and not problem
        timed += [Timed(0, event) for event in wire.close()]
        turn = fold(timed)
    except (MockLLMError, ValueError) as error:
        problem = problem or str(error)
        turn = _longest(timed)
    starts = [timed_event.event for timed_event in timed if isinstance(timed_event.event, Start)]
    return RecordedTurn(
        writable(turn),
        tuple(value for frame in frames if (value := json_object(frame.data)) is not None),
        next((start.id for start in starts if start.id), ""),
        next((start.model for start in starts if start.model), ""),
        problem,
        complete,
    )


def _longest(timed: Sequence[Timed]) -> Turn:
    for count in range(len(timed), -1, -1):
        try:
            return fold(timed[:count])
        except ValueError:
            continue
    return Turn()


# Bodies


def _of_body(plain: Captured, protocol: WireProtocol) -> RecordedTurn:
    text = plain.body.decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _failed_turn(protocol, text, text, "the body is no JSON")
    if isinstance(value, list):  # Gemini's streams, where the client did not ask for events
        return _fold_frames([Frame(dumps(item)) for item in value], protocol, "")
    if not isinstance(value, dict) or _is_error(protocol, value):
        return _failed_turn(protocol, value, text, "the body is an error")
    try:
        turn = protocol.decode_body(value)
    except (MockLLMError, ValueError) as error:
        return _failed_turn(protocol, value, text, str(error))
    named = protocol.detect.identity(value)
    whole = in_envelope(protocol, value)
    return RecordedTurn(writable(turn), (whole,), named.id, named.model)


def _is_error(protocol: WireProtocol, value: dict[str, Any]) -> bool:
    return bool(value.get("error")) or protocol.decode_error(value) is not None


def _failed_turn(protocol: WireProtocol, value: object, text: str, problem: str) -> RecordedTurn:
    error = _error_in(protocol, value, text)
    message = error.message or "The service sent nothing."
    turn = Turn(error=StreamError(message, error.type, error.code))
    return RecordedTurn(writable(turn), problem=problem)


# HTTP errors


def recorded_error(plain: Captured, protocol: WireProtocol) -> Http:
    """The HTTP error of a decompressed answer, in whatever form the service wrote it."""
    text = plain.body.decode("utf-8", "replace")
    headers = tuple(
        (name, header)
        for name, header in dict(plain.headers).items()
        if name not in _NOT_OURS and header
    )
    error = _error_in(protocol, json_value(text), text)
    return Http(plain.status, headers, _retry_after(plain), error)


def _error_in(protocol: WireProtocol, value: object, text: str) -> ErrorSpec:
    """The error in a body: in the form of its API, in any other form, or at least its text."""
    own = protocol.decode_error(value) if isinstance(value, Mapping) else None
    if own is not None:
        return ErrorSpec(own.message, own.type, own.code)
    inner = value[0] if isinstance(value, list) and value else value
    if isinstance(inner, Mapping):
        inner = inner.get("error") or inner
    if not isinstance(inner, Mapping):
        return ErrorSpec(_short(inner if isinstance(inner, str) else text))
    message = inner.get("message") or inner.get("detail")
    type, code = (inner.get(name) for name in ("type", "code"))
    return ErrorSpec(
        _short(message if isinstance(message, str) else text),
        type if isinstance(type, str) else None,
        code if isinstance(code, str) else None,
    )


def _short(text: str) -> str | None:
    line = " ".join(text.split())
    return shorten(line, _MAX_TEXT, mark="...") or None


def _retry_after(plain: Captured) -> int | None:
    """The time that the service asks to wait, in microseconds; None where it names none that a
    scenario can have."""
    wait = stated_wait(plain.headers)
    if wait is None or not 0 <= wait <= MAX_DURATION / 1_000_000:
        return None
    return round(wait * 1_000_000)


def route_headers(plain: Captured) -> tuple[tuple[str, str], ...]:
    """The headers that the written answer of a route has."""
    return tuple({name: value for name, value in plain.headers if name in _OF_ROUTES}.items())


# What a file can hold


def writable(turn: Turn) -> Turn:
    """The turn as a file can hold it, without times: a surrogate pair that was cut in two goes into
    the later fragment."""
    parts = tuple(map(_writable_part, turn.parts))
    usage = None if turn.usage is None else _limit_counts(turn.usage)
    return replace(turn, parts=parts, usage=usage, gaps=())


def _limit_counts(usage: TokenUsage) -> TokenUsage:
    counts = (usage.input, usage.output, usage.reasoning, usage.cached, usage.cache_written)
    return TokenUsage(*(max(0, min(count, _MAX_TOKENS)) for count in counts))


def _writable_part(part: Part) -> Part:
    if isinstance(part, Opaque):
        return part
    text = "".join(part.fragments)
    return (
        part
        if join_pairs(text) == text
        else replace(part, fragments=_join_surrogates(part.fragments))
    )


def _join_surrogates(fragments: tuple[str, ...]) -> tuple[str, ...]:
    joined, held = [], ""
    for number, fragment in enumerate(fragments, 1):
        text = held + fragment
        cut = number < len(fragments) and "\ud800" <= text[-1:] <= "\udbff"
        held = text[-1] if cut else ""
        joined.append(join_pairs(text[:-1] if cut else text))
    return tuple(joined)
