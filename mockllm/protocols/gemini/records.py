"""How exchanges of Gemini are recognised, what events hold, what is made up or lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.core.events import Start
from mockllm.protocols.custom_calls import LOSS
from mockllm.protocols.decoding import projection
from mockllm.protocols.gemini.decoder import Decoder
from mockllm.protocols.gemini.encoder import Encoder
from mockllm.protocols.gemini.fields import Options
from mockllm.protocols.records import (
    Detection,
    FieldNames,
    Normalisation,
    ObjectPlace,
    StreamEvents,
)
from mockllm.protocols.values import mapped_text, mapping, string


def _identity(value: Mapping[str, Any]) -> Start:
    model = string(value.get("model")) or string(value.get("modelVersion"))
    return Start(string(value.get("responseId")), model.removeprefix("models/"))


DETECTION = Detection(
    request=lambda body: "contents" in body,
    answer=lambda value: "candidates" in value or "promptFeedback" in value,
    identity=_identity,
)


def _is_end(chunk: Mapping[str, Any]) -> bool:
    candidates = chunk.get("candidates")
    return bool(chunk.get("error") or chunk.get("promptFeedback")) or (
        isinstance(candidates, list)
        and any(mapping(candidate).get("finishReason") for candidate in candidates)
    )


FIELDS = FieldNames(
    fragments=frozenset({"text"}),
    arguments=frozenset({"args"}),
    labels=frozenset({"finishReason", "id", "modelVersion", "name", "responseId", "role"}),
    opaque=frozenset({"thoughtSignature"}),
    item_ids=frozenset({"index"}),
)

EVENTS = StreamEvents(
    is_end=_is_end,
    map_text=mapped_text(
        lambda name, _: name == "text", frozenset({"functionCall", "groundingMetadata"})
    ),
    id_path="responseId",
    model_path="modelVersion",
)

_CALL = ("candidates.content.parts.functionCall",)

NORMALISATION = Normalisation(
    # Protocol buffers omit zeros, so servers may leave out the index of the first candidate.
    made_up=frozenset({"responseId", "modelVersion", "createTime", "candidates.index"}),
    usage="usageMetadata",
    places={
        "event": ObjectPlace(("",), ("",)),
        "choice": ObjectPlace(("candidates",), ("candidates",)),
        "message": ObjectPlace(("candidates.content",), ("candidates.content",)),
        "call": ObjectPlace(_CALL, _CALL, is_call=True),
        "usage": ObjectPlace(("usageMetadata",), ("usageMetadata",)),
    },
)

LOSSES = (
    "Parts have no boundaries: consecutive texts are joined, and so are consecutive thoughts; "
    "where they alternate, each change begins a new part. Empty fragments are lost.",
    "A refusal is sent as text, and a summary of reasoning as reasoning.",
    "A call is sent when its arguments are complete, in that order; only with "
    "`toolConfig.functionCallingConfig.streamFunctionCallArguments` is it sent in fragments. "
    "Arguments are a JSON value: they come back as compact text.",
    LOSS,
    "Calls have no id, except on the Gemini API from models whose name begins with `gemini-3`.",
    "A call whose arguments are not a JSON object is not sent; a complete answer then ends in "
    "`MALFORMED_FUNCTION_CALL`.",
    "The signature of reasoning is sent with the first call after it that has none, else at the"
    " end, as that of the last text or of hidden reasoning. A signed text begins a part of its own "
    "where its first fragment is signed. A signature that is not base64 is encoded as base64.",
    "Tools of the service are sent when they are complete: code with its result, and tools that "
    "this API has. Results in the form of another API are not sent. A result that does not directly"
    " follow its call is a part of its own.",
    "Citations come back at the end, with the last text, and not without a text. They are not "
    "sent in an answer without an end.",
    "Log probabilities are not sent.",
    "`stop` and `tool_calls` are derived from the parts; `refusal` is `stop`. A finish reason "
    "of another protocol is replaced by the equivalent one of this protocol.",
    "Usage comes back at the end only: a stream that is cut or ends in an error has none. "
    "Output tokens are at least those of reasoning.",
    "An error always has one of Google's statuses as type, and a number as code.",
    "Frames of other protocols are not sent. A frame of this protocol with a neutral form comes"
    " back in that form; one with a finish reason, or with a blocked prompt, replaces the end of "
    "the turn.",
    "With `candidateCount` above 1 every candidate has the same content; only the first comes "
    "back.",
)

project = projection(Encoder, Decoder, Options())
"""The turn that the Decoder reads from the stream of a turn; `LOSSES` lists what is missing."""
