"""Plays a quirk: the answer to its sample, with the quirk and without."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from mockllm.core.events import Frame
from mockllm.core.turn import Turn
from mockllm.play.matching.conversation import Selection
from mockllm.play.quirks.base import Context, Quirk, Variant, change_frames
from mockllm.play.replay.client_requests import client_target, first_body
from mockllm.play.replay.compilation.compiler import Replayer
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.tapes.recorded_turn import carrier_of
from mockllm.scenario.model import Scenario, Wire
from mockllm.wire.framing.carrier import Carrier
from mockllm.wire.framing.sse import SSE
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.decoding import decode_turn

__all__ = ["Context", "change_frames", "decoded_turn", "events", "frames", "plain", "play"]


def play(quirk: Quirk, variant: Variant, api: str, scenario: Scenario | None = None) -> HttpAnswer:
    """The answer of a scenario (default: the quirk's sample) with a quirk in it."""
    name = f"{quirk.name}:{variant.name}" if variant.name else quirk.name
    return _play(scenario or quirk.sample, api, Wire(quirks=(name,)))


def plain(scenario: Scenario, api: str) -> HttpAnswer:
    """The answer of a scenario without quirks."""
    return _play(scenario, api, None)


def _play(scenario: Scenario, api: str, wire: Wire | None) -> HttpAnswer:
    (turn,) = scenario.turns
    scenario = replace(scenario, turns=(replace(turn, wire=wire),))
    protocol = PROTOCOLS[api]
    body = first_body(protocol, "mock-model", "Hello", scenario.tools)
    body.update(protocol.client.usage)
    if "obfuscation" in protocol.fields.opaque:
        body["stream_options"] = {**body.get("stream_options", {}), "include_obfuscation": False}
    request = replace(
        protocol.parse(body, client_target(protocol, "mock-model"), True), stream=True
    )
    return Replayer().answer(Selection(scenario, 0, 0), request, protocol)


def frames(answer: HttpAnswer, carrier: Carrier | None = None) -> list[Frame]:
    """The events and comments, as a decoder by the specification gives them."""
    carrier = carrier or carrier_of(dict(answer.headers).get("content-type", "")) or SSE
    return carrier.decode(b"".join(answer.data))


def events(answer: HttpAnswer) -> list[Any]:
    """The data of the events, as JSON values where they are JSON, as text where not."""
    values: list[Any] = []
    for frame in frames(answer):
        if frame.data is not None:
            try:
                values.append(json.loads(frame.data))
            except ValueError:
                values.append(frame.data)
    return values


def decoded_turn(answer: HttpAnswer, api: str) -> Turn:
    """The turn that our own decoder, which is lenient, reads from an answer."""
    protocol = PROTOCOLS[api]
    return decode_turn(protocol, protocol.usual.decode(b"".join(answer.data)))[0]
