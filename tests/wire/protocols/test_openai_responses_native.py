"""The events of sound in a stream of the Responses API."""

from __future__ import annotations

import json

from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from mockllm.core.events import Frame
from mockllm.core.turn import Opaque, Text, TokenUsage, Turn
from mockllm.record.recording.drafting.turns import unresolve
from mockllm.scenario.part_model import NativePart
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.openai_responses.objects import Options
from mockllm.wire.protocols.openai_responses.parts import NATIVE
from mockllm.wire.protocols.openai_responses.protocol import PROTOCOL
from tests.wire.protocols.streams import encoded, read, untimed

REPLY = Reply("seed", "0" * 40, "gpt", Options(), TokenUsage(3, 2))
TURN = Turn(
    (
        *(
            Opaque("responses", Frame(json.dumps(value, separators=(",", ":"))), native=True)
            for value in (
                {"type": "response.audio.delta", "delta": "AAABAAIAAwA="},
                {"type": "response.audio.transcript.delta", "delta": "Hello."},
                {"type": "response.audio.done"},
                {"type": "response.audio.transcript.done"},
            )
        ),
        Text(("Hello.",)),
    ),
    "stop",
    TokenUsage(3, 2),
)


def test_the_events_are_numbered_and_of_the_types_of_the_sdk() -> None:
    frames = encoded(PROTOCOL, TURN, REPLY)
    values = [json.loads(frame.data or "") for frame in frames]
    assert [value["sequence_number"] for value in values] == list(range(len(values)))
    sound = [value for value in values if value["type"] in NATIVE]
    assert [value["type"] for value in sound] == [
        json.loads(part.frame.data or "")["type"] for part in TURN.parts if isinstance(part, Opaque)
    ]
    assert {value["type"] for value in sound} == NATIVE.keys()
    for value in sound:
        TypeAdapter(ResponseStreamEvent).validate_python(value, strict=True)


def test_they_come_back_and_are_written_as_native_parts() -> None:
    back = read(PROTOCOL, untimed(encoded(PROTOCOL, TURN, REPLY)))
    assert back == TURN
    assert [type(part) for part in unresolve(back).reply[:4]] == [NativePart] * 4


def test_a_body_has_none_of_them() -> None:
    without = Turn(TURN.parts[4:], TURN.finish, TURN.usage)
    assert PROTOCOL.decode_body(PROTOCOL.encode_body(TURN, REPLY)) == without


def test_an_event_with_further_fields_stays_a_frame() -> None:
    value = {"type": "response.audio.done", "sequence_number": 0, "newer": 1}
    (event,) = PROTOCOL.decoder().decode(Frame(json.dumps(value), event=value["type"]))
    assert not event.native
