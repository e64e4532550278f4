"""The turn that a recorder writes beside a tape."""

from __future__ import annotations

import base64
from dataclasses import replace

from mockllm.play.tapes.captured import Tape
from mockllm.play.tapes.recorded_turn import recorded_error, recorded_turn, route_headers
from mockllm.record.recording.drafting.turns import unresolve
from mockllm.scenario.model import TurnSpec
from mockllm.scenario.route_model import RouteAnswer
from mockllm.wire.protocols import PROTOCOLS


def turn_of(tape: Tape, turn: TurnSpec | None = None) -> TurnSpec:
    """What a tape decodes to.

    Args:
        turn: whose other fields it gets.
    """
    plain = tape.exchange.plain()
    other = turn or TurnSpec()
    if not tape.api:
        value = base64.b64encode(plain.body).decode()
        body = RouteAnswer(plain.status, route_headers(plain), "base64" if value else "", value)
        return replace(other, answer=body if value else replace(body, value=None))
    protocol = PROTOCOLS[tape.api]
    if plain.status >= 400:
        return replace(other, reply=(), http=recorded_error(plain, protocol))
    own = unresolve(recorded_turn(plain, protocol, streamed=tape.streamed).turn)
    return replace(
        other, reply=own.reply, finish=own.finish, finish_raw=own.finish_raw, usage=own.usage
    )
