"""What the Echo API cannot express, for people; `project` is what a client reads."""

from __future__ import annotations

from mockllm.protocols.decoding import projection
from tests.sixth_protocol.echo.decoder import Decoder
from tests.sixth_protocol.echo.encoder import Encoder
from tests.sixth_protocol.echo.request import Options

__all__ = ["LOSSES", "project"]

LOSSES = (
    "Parts have no index: they come back in the order in which they open.",
    "Citations, log probabilities and that reasoning is a summary are not sent.",
    "A stream that is cut reports no usage.",
    "A finish word of another API comes back as `stop` with that word.",
    "Frames of other APIs are left out.",
)

project = projection(Encoder, Decoder, Options())
"""The turn as it comes back from the stream; `LOSSES` describes what is missing."""
