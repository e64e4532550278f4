"""What the Responses API cannot express, for people; `project` is what a client reads."""

from __future__ import annotations

from mockllm.protocols.decoding import projection
from mockllm.protocols.openai_responses.decoder import Decoder
from mockllm.protocols.openai_responses.encoder import Encoder
from mockllm.protocols.openai_responses.objects import Options

LOSSES = (
    "The finish of a complete answer is derived from its parts: `tool_calls` with calls, "
    "`refusal` with a refusal and no calls, otherwise `stop`. A raw finish reason is kept only "
    "for incomplete answers, and only if it is one of this service.",
    "Calls and texts have no signature.",
    "A tool of the service that Responses does not have is written as a call of the MCP server "
    "`mcp`. Of the input and the output of other tools, only what their items have is kept; only "
    "MCP calls have a name, and fragments of input only MCP calls and code. Two tools with one id "
    "become two with different ones.",
    "A citation keeps its cited text only if the text contains it, and that of a file if it is in "
    "a container.",
    "An error always has type and code; a body has the code only.",
    "Of items, contents and the response only the fields with a neutral form come back: not "
    "`phase`, `namespace`, ids of containers, or real log probabilities. They cannot be kept as "
    "frames, because the official client fails at a second `done` of an item.",
    "A stream that is cut has no usage.",
    "Frames of other protocols, comments, and frames with a neutral form do not come back as "
    "frames. Of a hosted tool's frames a body has the finished item only.",
)

project = projection(Encoder, Decoder, Options())
"""The turn that the Decoder reads from the stream of a turn; `LOSSES` lists what is missing."""
