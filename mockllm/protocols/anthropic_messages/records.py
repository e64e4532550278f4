"""How exchanges of Anthropic Messages are recognised, what events hold, what is made up or lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.core.events import Start
from mockllm.protocols.anthropic_messages.decoder import Decoder
from mockllm.protocols.anthropic_messages.encoder import Encoder
from mockllm.protocols.custom_calls import LOSS
from mockllm.protocols.decoding import projection
from mockllm.protocols.records import (
    Detection,
    FieldNames,
    Normalisation,
    ObjectPlace,
    StreamEvents,
    identity,
)
from mockllm.protocols.values import mapped_text


def _identity(value: Mapping[str, Any]) -> Start:
    # `message_start` holds the message, a body is one.
    message = value.get("message")
    return identity(message if isinstance(message, dict) else value)


DETECTION = Detection(
    answer=lambda value: value.get("type") in ("message_start", "message"),
    identity=_identity,
)

_ENDINGS = ("message_delta", "message_stop", "error")

FIELDS = FieldNames(
    fragments=frozenset({"input", "partial_json", "text", "thinking"}),
    arguments=frozenset({"partial_json"}),
    labels=frozenset({"id", "model", "name", "role", "stop_reason", "type"}),
    opaque=frozenset({"signature"}),
    item_ids=frozenset({"index"}),
)

EVENTS = StreamEvents(
    is_end=lambda event: bool(event.get("error")) or event.get("type") in _ENDINGS,
    map_text=mapped_text(lambda name, _: name in ("text", "thinking"), frozenset({"input"})),
    id_path="message.id",
    model_path="message.model",
)

NORMALISATION = Normalisation(
    # The usage in `message_start` is provisional; `message_delta` has the final one.
    made_up=frozenset(
        {"message.id", "message.model", "message.usage", "id", "model", "request_id"}
        | {"usage.inference_geo"}
    ),
    keepalive=frozenset({"ping"}),
    places={
        "event": ObjectPlace(("",), ()),
        "message": ObjectPlace(("message",), ("",)),
        "call": ObjectPlace(("content_block",), ("content",), is_call=True),
        "usage": ObjectPlace(("usage",), ("usage",)),
    },
)

LOSSES = (
    "A refusal is sent as text, and not at all if it is empty; the finish `refusal` marks it. A"
    " finish of `content_filter` comes back as `refusal`.",
    "Of the raw finish reasons only `stop_sequence`, `pause_turn` and "
    "`model_context_window_exceeded` are sent.",
    "Blocks open in the order of the parts: a call (or frame) that would open after a later "
    "part opens before it.",
    "Reasoning always has a signature, derived if the turn has none, and is never marked as a "
    "summary. Reasoning with a signature and no text is a thinking block without text; redacted"
    " thinking is kept as frames.",
    "Log probabilities and the signatures of texts and calls are not sent.",
    LOSS,
    "Citations come before their text, as results of a web search, or without a URL as passages "
    "of a document. The index into the encrypted result is derived.",
    "Tools of the service have an id, derived if the turn has none. Those that this API does not "
    "have are not sent, nor are those whose input is no JSON object, nor results in the form of "
    "another API. A result that does not directly follow its call is a part of its own, without "
    "input.",
    "A complete answer always has usage, 0 if the turn has none; an answer that is cut or ends "
    "in an error has none. Tokens written into the cache count as input.",
    "An error has a type and no code.",
    "Of the message in `message_start` only id, model, usage and filled content are kept, and "
    "with content its stop reason.",
    "Frames of other protocols, comments, pings, and frames with a neutral form do not come "
    "back as frames. A frame with a `message_delta` is the end of the message, and a "
    "`message_start` that is the first part is its start.",
    "A body has arguments as a value (as text if they are not a JSON object); the body of an "
    "answer with an error is the error only.",
)

project = projection(Encoder, Decoder, None)
"""The turn that the Decoder reads from the stream of a turn; `LOSSES` lists what is missing."""
