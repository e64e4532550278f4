"""Compiles turns to HTTP answers, and caches them.

An answer depends on the turn, the protocol and some fields of the request. It is compiled once: the
HTTP head, and the body of a stream with the HTTP chunk framing of each event. Pure;
`serve/server/http/delivery.py` writes the bytes and waits.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cachetools import LRUCache

from mockllm.core.http import Ending, TimedBytes
from mockllm.core.jsontext import json_bytes
from mockllm.core.record import record
from mockllm.core.request import Request
from mockllm.core.seeded import derive
from mockllm.core.turn import TokenUsage, Turn, with_call_names
from mockllm.play.matching.conversation import Selection, turn_at
from mockllm.play.matching.index import mint_token
from mockllm.play.replay.compilation.encoding import body_of, stream, variants
from mockllm.play.replay.compilation.gates import AnswerGate, TurnGate, hold, place_gates
from mockllm.play.replay.compilation.http_answer import (
    CORS,
    HttpAnswer,
    byte_bounded,
    bytes_answer,
    count_generated,
    error_answer,
    with_own_headers,
)
from mockllm.play.replay.compilation.resolve import (
    frame_of,
    output_tokens,
    resolve,
    resolve_choices,
    resolve_gates,
    spread,
)
from mockllm.play.replay.latency.schedule import Pace, number_beats
from mockllm.scenario.latency_model import Latency
from mockllm.scenario.model import Scenario, Timing, TurnSpec, Wire
from mockllm.scenario.part_model import first_frames, members, takes_time
from mockllm.wire.protocols.base import Reply, WireProtocol, dumps
from mockllm.wire.protocols.extra import with_extra_in_body

if TYPE_CHECKING:
    from mockllm.play.replay.auto.adaptation import Adaptation


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
        adapted: Adaptation | None = None
        if spec.is_auto or spec.obey or selection.scenario.obey:
            from mockllm.play.replay.auto.adaptation import adaptation  # few turns need it

            adapted = adaptation(spec, selection.scenario, request, protocol)
        key = (
            selection.scenario.name,
            selection.position,
            protocol.name,
            request.model,
            request.stream,
            protocol.options(request),
            adapted,
            quirks,
            attempt,
            duration,
            selection.variation,
            selection.scenario.path,
            request.server_tools,
        )
        cached = self._answers.get(key)
        if cached is not None:
            return cached
        if adapted is not None:
            spec = adapted.apply(spec, selection.scenario)
        if quirks:
            wire = spec.wire or Wire()
            spec = replace(spec, wire=replace(wire, quirks=wire.quirks + quirks))
        latency = self._latency_of(selection.scenario, spec, recorded=duration > 0)
        auto = () if adapted is None else adapted.auto
        tried_as = (f"try {attempt}",) if attempt else ()
        variation = (*map(repr, auto), *tried_as, *map(repr, selection.variation))
        made = _prepare(selection, request, protocol, spec, variation, duration, latency)
        answer = _compile(made)
        self._answers[key] = answer
        return answer

    def pace_recording(
        self, answer: HttpAnswer, selection: Selection, spec: TurnSpec, request: Request, api: str
    ) -> HttpAnswer:
        """The recorded answer of a turn; where its times are drawn, each part of a stream is a
        beat."""
        latency = self._latency_of(selection.scenario, spec, recorded=answer.timed)
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

    def _latency_of(self, scenario: Scenario, turn: TurnSpec, *, recorded: bool) -> Latency | None:
        """The latency of a turn: what the nearest place says, and what it leaves out, from the
        next one. None for a turn whose times are not drawn.

        Exact times (of `timing`, of parts, of a recording) are nearer than the latency of the
        scenario or the server; those of `defaults` are nearer than that of the server.

        Args:
            recorded: whether a recording gives the answer its times.
        """
        timing, defaults, served = turn.timing, scenario.defaults, self._latency
        if timing is not None and timing.latency is not None:
            return timing.latency.over(defaults.latency).over(served)
        if served is None and defaults.latency is None:
            return None
        is_exact = timing is not None and timing.is_exact
        if recorded or is_exact or any(map(takes_time, members(turn.reply))):
            return None
        if defaults.latency is not None:
            return defaults.latency.over(served)
        return served if defaults.ttft is None and defaults.every is None else None


@record
class _Made:
    """The parts of which the bytes of an answer are made.

    Args:
        timed: the turns with the times of their parts; those of `turns` are the same where no times
            are drawn.
        gates: in the reply, which is the first of the turns.
    """

    protocol: WireProtocol
    request: Request
    spec: TurnSpec
    reply: Reply
    turns: Sequence[Turn]
    timed: Sequence[Turn]
    pace: Pace | None
    gates: Sequence[TurnGate]

    @property
    def headers(self) -> dict[str, str]:
        """Those of the API; the scenario's own take their place."""
        return {**self.protocol.headers(self.reply, self.request.stream), **CORS}


def _prepare(
    selection: Selection,
    request: Request,
    protocol: WireProtocol,
    spec: TurnSpec,
    variation: Sequence[str],
    duration: int,
    latency: Latency | None,
) -> _Made:
    """
    Args:
        variation: what the answer has of the request, besides its options and its model.
    """
    scenario, position = selection.scenario, selection.position
    if latency is not None:
        spec = replace(spec, timing=_NO_TIMES)
    turn = resolve(scenario, position, protocol.name, spec=spec)
    turns: Sequence[Turn] = (turn,)
    options = protocol.options(request)
    count = protocol.choices.count(options) if protocol.choices is not None else 1
    if count > 1:
        turns = resolve_choices(scenario, position, protocol.name, spec, turn, count)
    if duration and spec.timing is None and not turn.gaps:
        turns = [spread(choice, duration) for choice in turns]
    if request.server_tools:
        names = {full: offered for full, offered in request.server_tools if offered}
        turns = [with_call_names(choice, names) for choice in turns]
    timed, pace = turns, None
    if latency is not None:
        timed, pauses = number_beats(turns)
        pace = Pace(latency, pauses)
    reply = Reply(
        seed=derive(scenario.seeded, scenario.name, position, *variation, length=32),
        token=mint_token(scenario, position),
        model=request.model,
        options=options,
        usage=turns[0].usage or TokenUsage(0, 0),
        service_tier=spec.service_tier,
        fingerprint=spec.fingerprint,
        speech=spec.speech or "tone",
    )
    gates = resolve_gates(scenario, position, protocol.name, spec)
    return _Made(protocol, request, spec, reply, turns, timed, pace, gates)


_NO_TIMES = Timing(ttft=0, every=0)
"""Of a turn whose times are drawn; what its parts say stays."""


def _compile(made: _Made) -> HttpAnswer:
    protocol = made.protocol
    if made.request.stream:
        return _compile_stream(made)
    failed = protocol.whole_error(made.turns[0])
    if failed is not None and protocol.background(made.request.body) is None:
        return error_answer(protocol, failed, made.reply.seed)
    plain = body_of(made.turns, protocol, made.reply)
    body = with_extra_in_body(protocol, plain, made.spec.extra_for(protocol.name))
    at, pace = max(sum(choice.gaps) for choice in made.turns), made.pace
    if pace is not None:
        tokens = max(map(output_tokens, made.turns))
        at, pace = 1, replace(pace, pauses=pace.pauses[-1:], tokens=tokens)
    parts = [TimedBytes(at, json_bytes(dumps(body)))]
    id = protocol.answer_id(made.reply)
    headers = with_own_headers(made.headers, made.spec.headers)
    answer = bytes_answer(200, headers, parts, streamed=False, id=id)
    generated = count_generated(made.turns, answer.times)
    # A body is one part, which waits for all.
    gates = tuple([AnswerGate(gate.gate) for gate in made.gates])
    return replace(answer, pace=pace, generated=generated, gates=gates)


def _compile_stream(made: _Made) -> HttpAnswer:
    protocol, reply = made.protocol, made.reply
    wire = made.spec.wire or Wire()
    quirks = variants(protocol, wire, protocol.carrier(reply.options))
    before = [frame_of(part) for part in first_frames(made.spec.reply, protocol.name)]
    extra = made.spec.extra_for(protocol.name)
    timed, gates = made.timed, tuple[AnswerGate, ...]()
    if made.gates:
        # Other choices are not held; the reply may come again, as a further choice.
        period = len(made.spec.choices) + 1
        timed = [
            turn if number % period else hold(turn, made.gates) for number, turn in enumerate(timed)
        ]
    parts = stream(made.turns, protocol, reply, wire, extra, timed, before)
    if made.gates:
        parts, gates = place_gates(parts, made.gates)
    ending: Ending = "complete"
    headers = made.headers
    for variant in quirks:
        ending = variant.ending if variant.ending != "complete" else ending
        if variant.content_type:
            headers["content-type"] = variant.content_type
        elif variant.content_type is not None:
            headers.pop("content-type", None)
    answer = bytes_answer(
        200,
        with_own_headers(headers, made.spec.headers),
        parts,
        streamed=True,
        segmented=wire.segments is not None or any(variant.writes for variant in quirks),
        ending=ending,
        id=protocol.answer_id(reply),
    )
    generated = count_generated(made.timed, answer.times)
    return replace(answer, pace=made.pace, generated=generated, gates=gates)
