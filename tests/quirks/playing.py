"""Plays a quirk: what a client gets of its sample, with the quirk and without."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from mockllm.core.events import Timed
from mockllm.core.frame import Frame
from mockllm.core.timeline import fold
from mockllm.core.turn import Turn
from mockllm.framing.sse import decode
from mockllm.matching.select import Pick
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.client_requests import ASKING, first_body
from mockllm.quirks.base import Context, Quirk, Variant, change_frames
from mockllm.replay.answer import Answer
from mockllm.replay.compile import Replayer
from mockllm.scenario.model import Scenario, Wire

__all__ = ["Context", "change_frames", "events", "frames", "meant", "plain", "play"]


def play(quirk: Quirk, variant: Variant, api: str, scenario: Scenario | None = None) -> Answer:
    """The answer of a scenario (default: the quirk's sample) with a quirk in it."""
    name = f"{quirk.name}:{variant.name}" if variant.name else quirk.name
    return _play(scenario or quirk.sample, api, Wire(quirks=(name,)))


def plain(scenario: Scenario, api: str) -> Answer:
    """The answer of a scenario as it is."""
    return _play(scenario, api, None)


def _play(scenario: Scenario, api: str, wire: Wire | None) -> Answer:
    (turn,) = scenario.turns
    scenario = replace(scenario, turns=(replace(turn, wire=wire),))
    protocol, asking = PROTOCOLS[api], ASKING[api]
    body = first_body(asking, "mock-model", "Hello", scenario.tools)
    if api == "chat":
        body["stream_options"] = {"include_usage": True}
    params = {key: value.format(model="mock-model") for key, value in asking.params.items()}
    request = replace(protocol.parse(body, params, True), stream=True)
    return Replayer().answer(Pick(scenario, 0, 0), request, protocol)


def frames(answer: Answer) -> list[Frame]:
    """The events and comments, as a decoder by the rules gives them."""
    return decode(b"".join(answer.data))


def events(answer: Answer) -> list[Any]:
    """The data of the events, as JSON values where they are JSON, as text where not."""
    values: list[Any] = []
    for frame in frames(answer):
        if frame.data is not None:
            try:
                values.append(json.loads(frame.data))
            except ValueError:
                values.append(frame.data)
    return values


def meant(answer: Answer, api: str) -> Turn:
    """What our own decoder, which is lenient, makes of an answer."""
    decoder = PROTOCOLS[api].decoder()
    decoded = [event for frame in frames(answer) for event in decoder.decode(frame)]
    return fold(Timed(0, event) for event in [*decoded, *decoder.close()])
