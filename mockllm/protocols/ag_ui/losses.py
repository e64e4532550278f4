"""What AG-UI cannot express, for people; `project` is what a client reads."""

from __future__ import annotations

from mockllm.protocols.ag_ui.decoder import Decoder
from mockllm.protocols.ag_ui.encoder import Encoder
from mockllm.protocols.ag_ui.objects import Options
from mockllm.protocols.decoding import projection

LOSSES = (
    "The finish reason is not sent: an answer with calls comes back as `tool_calls`, every "
    "other as `stop`, also with `length`, `content_filter` and `refusal`, and with raw finish "
    "reasons.",
    "A refusal is sent as text.",
    "A call of a custom tool is sent as a call of a function with its text as the argument "
    "`input`, or without arguments if the text is empty.",
    "Tools of the service, with their input and output, and signatures of texts are not sent.",
    "Parts have no index: they come back in the order in which they open.",
    "Citations, log probabilities and the mark of a summary of reasoning are not sent.",
    "An error has no type; its type is sent as the code if it has no code.",
    "A stream that is cut has no usage.",
    "Frames with a neutral form come back in that form; frames of other protocols are not sent."
    " A frame that ends the run replaces the turn's own end and usage.",
    "A body, which is mockllm's own form, has no frames without an event, so no comments.",
)

project = projection(Encoder, Decoder, Options())
"""The turn that the Decoder reads from the stream of a turn; `LOSSES` lists what is missing."""
