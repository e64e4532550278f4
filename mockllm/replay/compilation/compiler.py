"""Compiles turns to HTTP answers, and caches them.

An answer depends on the turn, the protocol and some fields of the request. It is compiled once: the
HTTP head, and the body of a stream with the HTTP chunk framing of each event. Pure;
`server/http/delivery.py` writes the bytes and waits.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from cachetools import LRUCache

from mockllm.core.request import Request
from mockllm.core.seeded import derive
from mockllm.core.text import json_bytes
from mockllm.core.timed_bytes import Ending, TimedBytes
from mockllm.core.turn import TokenUsage, Turn
from mockllm.errors import RequestError
from mockllm.matching.index import mint_token
from mockllm.matching.positions import turn_at
from mockllm.matching.select import Selection
from mockllm.protocols.base import Reply, WireProtocol, dumps
from mockllm.protocols.extra import with_extra_in_body
from mockllm.replay.auto.autoreply import auto_parts
from mockllm.replay.compilation.byte_cache import byte_bounded
from mockllm.replay.compilation.http_answer import CORS, HttpAnswer, bytes_answer, error_answer
from mockllm.replay.compilation.resolve import resolve, spread
from mockllm.replay.compilation.stream import stream, variants
from mockllm.scenario.model import AnyPart, AutoPart, TurnSpec, Wire


class Replayer:
    """Compiles and caches answers, bounded in bytes; the least recently used are dropped first."""

    def __init__(self, *, max_bytes: int = 128 * 1024 * 1024) -> None:
        # Twice: a kept answer has its bytes whole and event by event.
        self._answers: LRUCache[Hashable, HttpAnswer] = byte_bounded(
            max_bytes, lambda answer: 2 * len(answer.encoded)
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
            attempt: the number of an earlier try, from 1.
            duration: microseconds that the recorded answer took; they are spread over the events
                of a turn that says nothing of its own times.

        Raises:
            RequestError: the turn is `auto`, and has no reply to this request.
        """
        spec = tried or turn_at(selection.scenario, selection.position, protocol.name)
        assert spec is not None
        auto: tuple[AnyPart, ...] = ()
        if any(isinstance(part, AutoPart) for part in spec.reply):
            auto = auto_parts(request)
        options = protocol.options(request)
        key = (
            selection.scenario.name,
            selection.position,
            protocol.name,
            request.model,
            request.stream,
            options,
            auto,
            quirks,
            attempt,
            duration,
        )
        found = self._answers.get(key)
        if found is not None:
            return found
        wire = spec.wire
        if quirks:
            wire = wire or Wire()
            wire = replace(wire, quirks=wire.quirks + quirks)
        spec = replace(spec, wire=wire)
        answer = _compile(selection, request, protocol, options, spec, auto, attempt, duration)
        self._answers[key] = answer
        return answer


def _compile(
    selection: Selection,
    request: Request,
    protocol: WireProtocol,
    options: Hashable,
    spec: TurnSpec,
    auto: Sequence[AnyPart],
    attempt: int,
    duration: int,
) -> HttpAnswer:
    scenario, position = selection.scenario, selection.position
    turn = resolve(scenario, position, protocol.name, protocol.call_prefix, auto=auto, spec=spec)
    if duration and spec.timing is None and not turn.gaps:
        turn = spread(turn, duration)
    tried = (f"try {attempt}",) if attempt else ()
    seed = derive(scenario.seeded, scenario.name, position, *map(repr, auto), *tried, length=32)
    reply = Reply(
        seed=seed,
        token=mint_token(scenario, position),
        model=request.model,
        options=options,
        usage=turn.usage or TokenUsage(0, 0),
    )
    id = protocol.answer_id(reply)
    headers = {**protocol.headers(reply, request.stream), **CORS}
    if request.stream:
        return _streamed(turn, protocol, reply, spec, headers, id)
    if turn.error is not None:
        error = RequestError(
            turn.error.message, status=500, type=turn.error.type, code=turn.error.code
        )
        return error_answer(protocol, error, seed)
    body = json_bytes(dumps(_body(turn, protocol, reply, spec)))
    return bytes_answer(
        200, headers.items(), [TimedBytes(sum(turn.gaps), body)], streamed=False, id=id
    )


def _body(turn: Turn, protocol: WireProtocol, reply: Reply, spec: TurnSpec) -> dict[str, Any]:
    body = protocol.encode_body(turn, reply)
    return with_extra_in_body(protocol, body, spec.extra_for(protocol.name))


def _streamed(
    turn: Turn,
    protocol: WireProtocol,
    reply: Reply,
    spec: TurnSpec,
    headers: dict[str, str],
    id: str,
) -> HttpAnswer:
    wire = spec.wire
    parts = stream(turn, protocol, reply, wire, spec.extra_for(protocol.name))
    segmented = wire is not None and wire.segments is not None
    ending: Ending = "complete"
    for variant in variants(protocol, wire) if wire is not None else ():
        segmented = segmented or variant.writes
        ending = variant.ending if variant.ending != "complete" else ending
        if variant.content_type:
            headers["content-type"] = variant.content_type
        elif variant.content_type is not None:
            headers.pop("content-type", None)
    return bytes_answer(
        200, headers.items(), parts, streamed=True, segmented=segmented, ending=ending, id=id
    )
