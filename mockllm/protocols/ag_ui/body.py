"""An answer as one JSON value, a list of events: mockllm's own form, as AG-UI always streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.core import events as ev
from mockllm.core.frame import Frame
from mockllm.core.timeline import expand, fold
from mockllm.core.turn import Turn
from mockllm.errors import WireError
from mockllm.protocols.ag_ui.decoder import Decoder
from mockllm.protocols.ag_ui.encoder import Encoder
from mockllm.protocols.ag_ui.losses import project
from mockllm.protocols.ag_ui.objects import json_object
from mockllm.protocols.base import Reply, dumps

__all__ = ["decode_body", "encode_body"]


def encode_body(turn: Turn, reply: Reply) -> dict[str, Any]:
    """The events of an answer in a list, `{"events": [...]}`, with one delta for each part.

    This form is mockllm's own, for reading and comparing: AG-UI always streams. Frames without an
    event are left out.
    """
    whole = project(turn).whole()
    encoder = Encoder(whole, reply)
    frames = (frame for timed in expand(whole) for frame in encoder.encode(timed.event))
    return {"events": [value for value in map(json_object, frames) if value is not None]}


def decode_body(body: Mapping[str, Any]) -> Turn:
    """The turn of a list of events, `{"events": [...]}`.

    Raises:
        WireError: the body has no such list.
    """
    events = body.get("events")
    if not isinstance(events, list):
        raise WireError(
            "an AG-UI body needs `events` (an array), this one has "
            f"{', '.join(map(repr, body)) or 'no fields'}; is it a body of this API?"
        )
    decoder = Decoder()
    decoded = [event for value in events for event in decoder.decode(Frame(dumps(value)))]
    return fold(ev.Timed(0, event) for event in [*decoded, *decoder.close()])
