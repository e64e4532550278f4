"""Gemini Live as a whole."""

from __future__ import annotations

from mockllm.core.events import Start, StreamError
from mockllm.wire.protocols import records
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.decoding import projection
from mockllm.wire.protocols.gemini_live import ADDRESS
from mockllm.wire.protocols.gemini_live.client import CLIENT
from mockllm.wire.protocols.gemini_live.decoder import Decoder, decode_body
from mockllm.wire.protocols.gemini_live.encoder import Encoder, answer_id, encode_body, is_end
from mockllm.wire.protocols.gemini_live.fields import REJECTED, Options
from mockllm.wire.protocols.gemini_live.request import (
    error_body,
    guard,
    model_of,
    options,
    parse,
)
from mockllm.wire.protocols.gemini_live.socket import LiveConversation
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import mapped_text, mapping, string

_SERVER = ("setupComplete", "serverContent", "toolCall", "toolCallCancellation", "goAway")


def _decode_error(body: Fields) -> StreamError | None:
    error = mapping(body.get("error"))
    return StreamError(string(error.get("message"))) if error.get("message") else None


PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=answer_id,
    error_body=error_body,
    decode_error=_decode_error,
    error_headers=lambda _seed, _error: {"content-type": "application/json"},
    headers=lambda _reply, _stream: {"content-type": "text/event-stream"},
    service_errors=records.service_errors(
        StreamError("The service is currently unavailable."),
        StreamError("You exceeded your current quota, please check your plan and billing details."),
        StreamError("Internal error encountered."),
    ),
    project=projection(Encoder, Decoder, Options()),
    client=CLIENT,
    detect=records.Detection(
        request=lambda body: "turns" in body and "model" in body,
        answer=lambda value: any(name in value for name in _SERVER),
        identity=lambda value: Start("", model_of(value)),
    ),
    events=records.StreamEvents(
        is_end=is_end,
        map_text=mapped_text(lambda name, _: name == "text", frozenset({"toolCall"})),
    ),
    fields=records.FieldNames(
        fragments=frozenset({"text"}),
        arguments=frozenset({"args"}),
        labels=frozenset({"id", "mimeType", "name", "turnCompleteReason"}),
    ),
    normalize=records.Normalisation(
        usage="usageMetadata",
        places={
            "event": records.ObjectPlace(("",), ("messages",)),
            "content": records.ObjectPlace(
                ("serverContent.modelTurn",), ("messages.serverContent.modelTurn",)
            ),
            "call": records.ObjectPlace(
                ("toolCall.functionCalls",), ("messages.toolCall.functionCalls",), is_call=True
            ),
            "usage": records.ObjectPlace(("usageMetadata",), ("messages.usageMetadata",)),
        },
    ),
    guard=guard,
    call_prefix="function-call-",
    finish_values={"content_filter": (REJECTED,)},
    role="model",
    socket=LiveConversation,
    sdk=records.SdkTypes(
        "google-genai",
        "google.genai.types:LiveServerMessage",
        "google.genai.types:LiveServerMessage",
    ),
)
