"""A turn, a protocol and what of the request matters, to the bytes that are sent.

An answer is compiled once and kept: the HTTP head, and the body of a stream with the HTTP
chunk framing of each event, so that serving it is picking bytes. Pure; `server/delivery.py`
writes and waits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import replace

from mockllm.core.request import Request
from mockllm.core.seeded import derive
from mockllm.core.timed_bytes import TimedBytes
from mockllm.core.turn import TokenUsage, Turn
from mockllm.errors import RequestError
from mockllm.matching.index import mint_token
from mockllm.matching.positions import turn_at
from mockllm.matching.select import Pick
from mockllm.protocols.base import Reply, WireProtocol, dumps
from mockllm.quirks.base import Ending
from mockllm.replay.answer import CORS, Answer, bytes_answer, error_answer
from mockllm.replay.autoreply import answer as auto_answer
from mockllm.replay.resolve import resolve
from mockllm.replay.stream import stream, variants
from mockllm.scenario.model import AnyPart, AutoPart, Wire

__all__ = ["Replayer"]


class Replayer:
    """Compiles answers and keeps them, bounded in bytes; the least recently used go first."""

    def __init__(self, *, max_bytes: int = 128 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._answers: OrderedDict[Hashable, Answer] = OrderedDict()
        self._size = 0

    def answer(
        self,
        pick: Pick,
        request: Request,
        protocol: WireProtocol,
        quirks: tuple[str, ...] = (),
    ) -> Answer:
        """The answer that a turn gives to a request.

        Args:
            quirks: that it has besides those of its `wire`.

        Raises:
            RequestError: an `auto` turn cannot make up what the request demands.
        """
        spec = turn_at(pick.scenario, pick.position, protocol.name)
        assert spec is not None
        auto: tuple[AnyPart, ...] = ()
        if any(isinstance(part, AutoPart) for part in spec.reply):
            auto = auto_answer(request)
        options = protocol.options(request)
        key = (
            pick.scenario.name,
            pick.position,
            protocol.name,
            request.model,
            request.stream,
            options,
            auto,
            quirks,
        )
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
            return found
        wire = spec.wire
        if quirks:
            wire = wire or Wire()
            wire = replace(wire, quirks=wire.quirks + quirks)
        return self._keep(key, _compile(pick, request, protocol, options, wire, auto))

    def _keep(self, key: Hashable, answer: Answer) -> Answer:
        self._answers[key] = answer
        self._size += 2 * len(answer.instant)
        while self._size > self._max_bytes and len(self._answers) > 1:
            _, old = self._answers.popitem(last=False)
            self._size -= 2 * len(old.instant)
        return answer


def _compile(
    pick: Pick,
    request: Request,
    protocol: WireProtocol,
    options: Hashable,
    wire: Wire | None,
    auto: Sequence[AnyPart],
) -> Answer:
    scenario, position = pick.scenario, pick.position
    turn = resolve(scenario, position, protocol.name, protocol.call_prefix, auto=auto)
    seed = derive(scenario.seeded, scenario.name, position, *map(repr, auto), length=32)
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
        return _streamed(turn, protocol, reply, wire, headers, id)
    if turn.error is not None:
        error = RequestError(
            turn.error.message, status=500, type=turn.error.type, code=turn.error.code
        )
        return error_answer(protocol, error, seed)
    body = dumps(protocol.encode_body(turn, reply)).encode()
    return bytes_answer(
        200, headers.items(), [TimedBytes(sum(turn.gaps), body)], streamed=False, id=id
    )


def _streamed(
    turn: Turn,
    protocol: WireProtocol,
    reply: Reply,
    wire: Wire | None,
    headers: dict[str, str],
    id: str,
) -> Answer:
    pieces = stream(turn, protocol, reply, wire)
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
        200, headers.items(), pieces, streamed=True, segmented=segmented, ending=ending, id=id
    )
