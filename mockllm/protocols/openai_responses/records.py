"""How exchanges of Responses are recognised, what events hold, what is made up or lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.core.events import Start
from mockllm.protocols.decoding import projection
from mockllm.protocols.openai_responses.decoder import Decoder
from mockllm.protocols.openai_responses.encoder import Encoder
from mockllm.protocols.openai_responses.objects import Options
from mockllm.protocols.records import (
    Detection,
    FieldNames,
    Normalisation,
    ObjectPlace,
    StreamEvents,
    identity,
)
from mockllm.protocols.values import mapped_text


def _answer(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    return value.get("object") == "response" or (
        isinstance(kind, str) and kind.startswith("response.")
    )


def _identity(value: Mapping[str, Any]) -> Start:
    # Events hold the response, bodies are one.
    response = value.get("response")
    return identity(response if isinstance(response, dict) else value)


DETECTION = Detection(
    answer=_answer,
    likely_request=lambda body: "input" in body,
    identity=_identity,
)

_ENDINGS = ("response.completed", "response.incomplete", "response.failed", "error")
_TEXT_DELTAS = ("text.delta", "refusal.delta")


def _is_text(name: str, value: Mapping[str, Any]) -> bool:
    if name == "delta":  # of text or of arguments
        return str(value.get("type")).endswith(_TEXT_DELTAS)
    return name in ("text", "refusal")


FIELDS = FieldNames(
    fragments=frozenset({"arguments", "content", "delta", "input", "refusal", "text"}),
    arguments=frozenset({"arguments"}),
    labels=frozenset({"call_id", "id", "item_id", "model", "name", "object", "response_id"})
    | {"role", "service_tier", "status", "type"},
    opaque=frozenset({"encrypted_content", "obfuscation"}),
    item_ids=frozenset({"content_index", "item_id", "output_index", "summary_index"}),
)

EVENTS = StreamEvents(
    is_end=lambda event: bool(event.get("error")) or event.get("type") in _ENDINGS,
    map_text=mapped_text(_is_text, frozenset({"input", "logprobs", "tools"})),
    id_path="response.id",
    model_path="response.model",
)

NORMALISATION = Normalisation(
    made_up=frozenset(
        {"sequence_number", "obfuscation", "item_id", "item.id"}
        | {"response.id", "response.output.id", "response.output.encrypted_content"}
        | {"response.created_at", "response.completed_at", "response.model"}
    ),
    answer_fields={
        "response": frozenset(
            {"object", "status", "output", "usage", "error", "incomplete_details"}
        )
    },
    replaced={"response.output_item.added": "encrypted_content"},
    envelope="response",
    places={
        "event": ObjectPlace(("",), ()),
        "message": ObjectPlace(("response",), ("response",)),
        "call": ObjectPlace(("item", "response.output"), ("response.output",), is_call=True),
        "usage": ObjectPlace(("response.usage",), ("response.usage",)),
    },
)


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
