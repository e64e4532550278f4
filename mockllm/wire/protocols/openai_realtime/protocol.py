"""Realtime as a whole."""

from __future__ import annotations

from mockllm.wire.framing.ndjson import NDJSON
from mockllm.wire.protocols import openai_common, records
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.decoding import projection
from mockllm.wire.protocols.openai_realtime import ADDRESS, errors
from mockllm.wire.protocols.openai_realtime.client import CLIENT
from mockllm.wire.protocols.openai_realtime.conversation import RealtimeConversation
from mockllm.wire.protocols.openai_realtime.decoder import Decoder, decode_body
from mockllm.wire.protocols.openai_realtime.encoder import Encoder, encode_body
from mockllm.wire.protocols.openai_realtime.objects import response_id
from mockllm.wire.protocols.openai_realtime.request import Options, options, parse
from mockllm.wire.protocols.openai_realtime.routes import FALLBACK_ROUTES
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import mapped_text, mapping

_TEXT_DELTAS = ("text.delta", "transcript.delta")


def _is_text(name: str, value: Fields) -> bool:
    if name == "delta":  # of text, of sound or of arguments
        return str(value.get("type")).endswith(_TEXT_DELTAS)
    return name in ("text", "transcript")


def _is_answer(value: Fields) -> bool:
    own = value.get("object"), mapping(value.get("response")).get("object")
    return "realtime.response" in own or ("event_id" in value and "type" in value)


PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=lambda reply: response_id(reply.token),
    error_body=errors.error_body,
    decode_error=errors.decode_error,
    error_headers=openai_common.error_headers,
    headers=lambda _reply, stream: {
        "content-type": NDJSON.content_type if stream else "application/json"
    },
    service_errors=openai_common.SERVICE_ERRORS,
    quota_error=openai_common.quota_error,
    project=projection(Encoder, Decoder, Options()),
    client=CLIENT,
    detect=records.Detection(
        request=lambda body: "session" in body and "items" in body,
        answer=_is_answer,
        identity=records.identity_in("response"),
    ),
    events=records.StreamEvents(
        is_end=lambda event: event.get("type") in ("response.done", "error"),
        map_text=mapped_text(_is_text),
        id_path="response.id",
    ),
    fields=records.FieldNames(
        fragments=frozenset({"arguments", "delta", "text", "transcript"}),
        arguments=frozenset({"arguments"}),
        labels=frozenset({"call_id", "conversation_id", "event_id", "id", "item_id", "model"})
        | {"name", "object", "previous_item_id", "response_id", "role", "status", "type", "voice"},
        opaque=frozenset({"obfuscation"}),
        item_ids=frozenset({"content_index", "item_id", "output_index"}),
    ),
    normalize=records.Normalisation(
        made_up=frozenset({"event_id", "obfuscation", "item_id", "item.id", "response_id"})
        | {"previous_item_id", "response.id", "response.output.id", "response.conversation_id"},
        answer_fields={
            "response": frozenset({"object", "status", "status_details", "output", "usage"})
        },
        envelope="response",
        places={
            "event": records.ObjectPlace(("",), ()),
            "response": records.ObjectPlace(("response",), ("response",)),
            "call": records.ObjectPlace(
                ("item", "response.output"), ("response.output",), is_call=True
            ),
            "usage": records.ObjectPlace(("response.usage",), ("response.usage",)),
        },
    ),
    fallback_routes=FALLBACK_ROUTES,
    zero_arguments="{}",
    carriers=(NDJSON,),
    carrier=lambda _: NDJSON,
    finish_values={
        "stop": ("completed",),
        "tool_calls": ("completed",),
        "refusal": ("completed",),
        "length": ("max_output_tokens", "incomplete"),
        "content_filter": ("content_filter", "incomplete"),
    },
    socket=RealtimeConversation,
    sdk=records.SdkTypes(
        "openai",
        "openai.types.realtime:RealtimeServerEvent",
        "openai.types.realtime:RealtimeResponse",
    ),
)
