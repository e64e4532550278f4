"""Compiles turns to HTTP answers, and caches them.

An answer depends on the turn, the protocol and some fields of the request. It is compiled once: the
HTTP head, and the body of a stream with the HTTP chunk framing of each event. Pure;
`server/http/delivery.py` writes the bytes and waits.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from mockllm.core.events import Frame, LineEnd
from mockllm.core.http import Ending, TimedBytes
from mockllm.core.jsontext import json_bytes
from mockllm.core.request import Request
from mockllm.core.seeded import derive, derive_int
from mockllm.core.turn import TokenUsage, Turn
from mockllm.errors import RequestError
from mockllm.framing.carrier import Carrier
from mockllm.matching.conversation import turn_at
from mockllm.matching.index import mint_token
from mockllm.matching.selection import Selection
from mockllm.protocols.base import Reply, WireProtocol, dumps
from mockllm.protocols.extra import with_extra, with_extra_in_body
from mockllm.replay.auto.adaptation import adaptation
from mockllm.replay.compilation.choices import body_of, frames_of
from mockllm.replay.compilation.http_answer import (
    CORS,
    NO_EXTRA,
    HttpAnswer,
    byte_bounded,
    bytes_answer,
    error_answer,
    generated,
)
from mockllm.replay.compilation.resolve import (
    output_tokens,
    resolve,
    resolve_choices,
    spread,
)
from mockllm.replay.latency.plan import latency_of
from mockllm.replay.latency.schedule import Pace, numbered
from mockllm.scenario.latency_model import Latency
from mockllm.scenario.model import AnyPart, Timing, TurnSpec, Wire

if TYPE_CHECKING:
    from mockllm.quirks.base import Variant


_MAX_KEPT = 128 * 1024 * 1024
"""Bytes of all answers that are kept."""


class Replayer:
    """Compiles and caches answers, bounded in bytes; the least recently used are dropped first.

    Args:
        latency: of the server, for answers that have no times of their own.
    """

    def __init__(self, latency: Latency | None = None) -> None:
        self._latency = latency
        # Twice: a kept answer has its bytes whole and event by event.
        self._answers: LRUCache[Hashable, HttpAnswer] = byte_bounded(
            _MAX_KEPT, lambda answer: 2 * len(answer.encoded)
        )

    def answer(
        self,
        selection: Selection,
        request: Request,
        protocol: WireProtocol,
        quirks: tuple[str, ...] = (),
        *,
        tried: TurnSpec | None = None,
        attempt: int = 0,
        duration: int = 0,
    ) -> HttpAnswer:
        """The answer that a turn gives to a request, without its faults.

        Args:
            quirks: in addition to those of the turn's `wire`.
            tried: the turn as an earlier try gets it; None: as the last one does.
            duration: microseconds that the recorded answer took; they are spread over the events
                of a turn that says nothing of its own times.

        Raises:
            RequestError: the turn is `auto`, and has no reply to this request.
        """
        spec = tried or turn_at(selection.scenario, selection.position, protocol.name)
        assert spec is not None
        adapted = adaptation(spec, selection.scenario, request, protocol)
        options = protocol.options(request)
        key = (
            selection.scenario.name,
            selection.position,
            protocol.name,
            request.model,
            request.stream,
            options,
            adapted,
            quirks,
            attempt,
            duration,
            selection.variation,
            selection.scenario.path,
        )
        cached = self._answers.get(key)
        if cached is not None:
            return cached
        if adapted is not None:
            spec = adapted.applied(spec, selection.scenario)
        wire = spec.wire
        if quirks:
            wire = wire or Wire()
            wire = replace(wire, quirks=wire.quirks + quirks)
        spec = replace(spec, wire=wire)
        latency = self._latency_of(selection, spec, recorded=duration > 0)
        auto = () if adapted is None else adapted.auto
        answer = _compile(
            selection, request, protocol, options, spec, auto, attempt, duration, latency
        )
        self._answers[key] = answer
        return answer

    def recorded(
        self, answer: HttpAnswer, selection: Selection, spec: TurnSpec, request: Request, api: str
    ) -> HttpAnswer:
        """The recorded answer of a turn; where its times are drawn, each part of a stream is a
        beat."""
        latency = self._latency_of(selection, spec, recorded=answer.timed)
        if latency is None or answer.status >= 400 or not answer.data:
            return answer
        numbers = tuple(range(1, len(answer.data) + 1))
        pace = Pace(latency, (0,) * len(numbers))
        if not request.stream:
            turn = resolve(selection.scenario, selection.position, api, spec=spec)
            numbers = (1,) * len(numbers)
            pace = Pace(latency, (0,), output_tokens(turn))
        # One that is written part by part needs no `ends`.
        ends = () if answer.segmented else (len(answer.encoded),)
        made = answer.generated and replace(answer.generated, first=0, beats=len(numbers))
        return replace(
            answer,
            times=numbers,
            timed=True,
            ends=answer.ends or ends,
            pace=pace,
            generated=made,
        )

    def _latency_of(
        self, selection: Selection, spec: TurnSpec, *, recorded: bool
    ) -> Latency | None:
        return latency_of(spec, selection.scenario.defaults, self._latency, recorded=recorded)


def _compile(
    selection: Selection,
    request: Request,
    protocol: WireProtocol,
    options: Hashable,
    spec: TurnSpec,
    auto: Sequence[AnyPart],
    attempt: int,
    duration: int,
    latency: Latency | None,
) -> HttpAnswer:
    scenario, position = selection.scenario, selection.position
    if latency is not None:
        spec = replace(spec, timing=_NO_TIMES)
    turn = resolve(scenario, position, protocol.name, spec=spec)
    turns: Sequence[Turn] = (turn,)
    count = protocol.choices.wanted(options) if protocol.choices is not None else 1
    if count > 1:
        turns = resolve_choices(scenario, position, protocol.name, spec, turn, count)
    if duration and spec.timing is None and not turn.gaps:
        turns = [spread(choice, duration) for choice in turns]
    turn, timed, pace = turns[0], turns, None
    if latency is not None:
        timed, pauses = numbered(turns)
        pace = Pace(latency, pauses)
    tried = (f"try {attempt}",) if attempt else ()
    made_of = (*map(repr, auto), *tried, *map(repr, selection.variation))
    seed = derive(scenario.seeded, scenario.name, position, *made_of, length=32)
    reply = Reply(
        seed=seed,
        token=mint_token(scenario, position),
        model=request.model,
        options=options,
        usage=turn.usage or TokenUsage(0, 0),
        service_tier=spec.service_tier,
        fingerprint=spec.fingerprint,
    )
    id = protocol.answer_id(reply)
    headers = {**protocol.headers(reply, request.stream), **CORS}
    headers |= dict(spec.headers)
    if request.stream:
        answer = _streamed(turns, protocol, reply, spec, headers, id, timed)
        return replace(answer, pace=pace, generated=generated(timed, answer.times))
    if turn.error is not None and protocol.background(request.body) is None:
        error = RequestError(
            turn.error.message, status=500, type=turn.error.type, code=turn.error.code
        )
        return error_answer(protocol, error, seed)
    plain = body_of(turns, protocol, reply)
    body = with_extra_in_body(protocol, plain, spec.extra_for(protocol.name))
    at = max(sum(choice.gaps) for choice in turns)
    if pace is not None:
        tokens = max(map(output_tokens, turns))
        at, pace = 1, replace(pace, pauses=pace.pauses[-1:], tokens=tokens)
    parts = [TimedBytes(at, json_bytes(dumps(body)))]
    answer = bytes_answer(200, headers.items(), parts, streamed=False, id=id)
    return replace(answer, pace=pace, generated=generated(turns, answer.times))


_NO_TIMES = Timing(ttft=0, every=0)
"""Of a turn whose times are drawn; what its parts say stays."""


def _streamed(
    turns: Sequence[Turn],
    protocol: WireProtocol,
    reply: Reply,
    spec: TurnSpec,
    headers: dict[str, str],
    id: str,
    timed: Sequence[Turn],
) -> HttpAnswer:
    wire = spec.wire
    extra = spec.extra_for(protocol.name)
    parts = stream(turns[0], protocol, reply, wire, extra, turns[1:], timed)
    segmented = wire is not None and wire.segments is not None
    ending: Ending = "complete"
    carrier = protocol.carrier(reply.options)
    for variant in variants(protocol, wire, carrier) if wire is not None else ():
        segmented = segmented or variant.writes
        ending = variant.ending if variant.ending != "complete" else ending
        if variant.content_type:
            headers["content-type"] = variant.content_type
        elif variant.content_type is not None:
            headers.pop("content-type", None)
    return bytes_answer(
        200,
        headers.items(),
        parts,
        streamed=True,
        segmented=segmented,
        ending=ending,
        id=id,
    )


def stream(
    turn: Turn,
    protocol: WireProtocol,
    reply: Reply,
    wire: Wire | None,
    extra: Mapping[str, Any] = NO_EXTRA,
    others: Sequence[Turn] = (),
    timed: Sequence[Turn] | None = None,
) -> list[TimedBytes]:
    """The body of a streamed answer: a part for each frame (or segment, with `wire.segments`).

    Args:
        others: the turns of the answer's further choices.
        timed: all these turns with other times for their events; no event says them.
    """
    wire = wire or Wire()
    carrier = protocol.carrier(reply.options)
    quirks = variants(protocol, wire, carrier)
    turns = (turn, *others)
    frames = frames_of(turns, protocol, reply, timed or turns)
    if extra:
        frames = with_extra(protocol, frames, extra)
    if quirks:
        from mockllm.quirks.base import Context, change_frames

        context = Context(protocol.name, turn, reply)
        for variant in quirks:
            if variant.frames is not None:
                frames = change_frames(variant.frames, frames, context)
    if wire.group is not None:
        frames = list(_grouped(frames, protocol, wire.group))
    parts = _encoded(frames, wire, wire.line_end or protocol.line_end, carrier)
    for variant in quirks:
        if variant.bytes is not None:
            parts = variant.bytes(parts, context)
    # An empty HTTP chunk ends the body (RFC 9112, section 7.1).
    parts = [part for part in parts if part.data]
    if isinstance(wire.segments, tuple):
        parts = list(_segments(parts, cycle(wire.segments)))
    elif wire.segments is not None:
        sizes = _sizes(reply.seed, wire.segments.low, wire.segments.high)
        parts = list(_segments(parts, sizes))
    return parts


def variants(protocol: WireProtocol, wire: Wire, carrier: Carrier) -> list[Variant]:
    """The quirks of a stream that apply to this protocol and carrier. Most have none, and never
    import any."""
    if not wire.quirks:
        return []
    from mockllm.quirks import find

    named = map(find, wire.quirks)
    usual = carrier is protocol.usual
    return [
        variant
        for quirk, variant in named
        if quirk.applies_to(protocol.name)
        and (usual or carrier.name in quirk.carriers or not variant.changes_bytes)
    ]


def _grouped(
    frames: Sequence[tuple[int, Frame]], protocol: WireProtocol, size: int
) -> Iterator[tuple[int, Frame]]:
    """Joins up to `size` consecutive frames into one, where the protocol can; it is due when the
    last of them is."""
    held: Frame | None = None
    due = count = 0
    for at, frame in frames:
        joined = None
        if held is not None and protocol.join is not None and count < size:
            joined = protocol.join(held, frame)
        if joined is not None:
            held, due, count = joined, at, count + 1
            continue
        if held is not None:
            yield due, held
        held, due, count = frame, at, 1
    if held is not None:
        yield due, held


def _encoded(
    frames: Sequence[tuple[int, Frame]], wire: Wire, line_end: LineEnd, carrier: Carrier
) -> list[TimedBytes]:
    if carrier.name != "sse":  # the others have one way of writing a frame
        return [TimedBytes(at, carrier.encode(frame, line_end)) for at, frame in frames]
    parts: list[TimedBytes] = []
    for count, (at, frame) in enumerate(frames, 1):
        written = _multiline(frame) if wire.multiline else frame
        parts.append(TimedBytes(at, carrier.encode(written, line_end)))
        if wire.comments is not None and count % wire.comments.every == 0:
            comment = Frame(comment=wire.comments.text)
            parts.append(TimedBytes(at, carrier.encode(comment, line_end)))
    if wire.bom and parts:
        parts[0] = TimedBytes(parts[0].at, "\ufeff".encode() + parts[0].data)
    return parts


def _multiline(frame: Frame) -> Frame:
    """The same frame with its data, if they are JSON, on several lines."""
    if frame.data is None or frame.data[:1] not in ("{", "["):
        return frame
    try:
        value = json.loads(frame.data)
    except ValueError:
        return frame
    text = json.dumps(value, ensure_ascii=False, indent=1)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair cannot be UTF-8, only an escape
        text = json.dumps(value, indent=1)
    return replace(frame, data=text)


def _sizes(seed: str, low: int, high: int) -> Iterator[int]:
    number = 0
    while True:
        yield low + derive_int(seed, "segment", number, below=high - low + 1)
        number += 1


def _segments(parts: Sequence[TimedBytes], sizes: Iterator[int]) -> Iterator[TimedBytes]:
    """The same bytes cut into segments; no segment has bytes that are due at different times."""
    held = b""
    at = 0
    size = next(sizes)
    for part in parts:
        if held and part.at != at:
            yield TimedBytes(at, held)
            held = b""
        at = part.at
        held += part.data
        while len(held) >= size:
            yield TimedBytes(at, held[:size])
            held = held[size:]
            size = next(sizes)
    if held:
        yield TimedBytes(at, held)
