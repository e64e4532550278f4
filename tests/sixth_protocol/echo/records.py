"""How exchanges of the Echo API are recognised, what acts hold, what is made up or lost."""

from __future__ import annotations

from mockllm.wire.protocols.decoding import projection
from mockllm.wire.protocols.records import Detection, Normalisation, StreamEvents
from mockllm.wire.protocols.values import mapped_text
from tests.sixth_protocol.echo.decoder import Decoder, identity
from tests.sixth_protocol.echo.encoder import Encoder
from tests.sixth_protocol.echo.request import Options

DETECTION = Detection(
    request=lambda body: {"speaker", "dialogue"} <= body.keys(),
    answer=lambda value: value.get("act") == "curtain" or {"show", "script"} <= value.keys(),
    identity=identity,
)

_SPOKEN = frozenset({"line", "musing", "balk"})

EVENTS = StreamEvents(
    is_end=lambda act: act.get("act") in ("bow", "heckle"),
    map_text=mapped_text(lambda name, act: name == "bit" and act.get("act") in _SPOKEN),
)

NORMALISATION = Normalisation(made_up=frozenset({"show", "speaker"}), usage="tally")

project = projection(Encoder, Decoder, Options())
"""The turn as it comes back from the stream."""
