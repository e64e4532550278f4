"""Anthropic Messages as a whole."""

from __future__ import annotations

from mockllm.wire.framing.sse import SSE
from mockllm.wire.protocols import records
from mockllm.wire.protocols.anthropic_messages import ADDRESS, service
from mockllm.wire.protocols.anthropic_messages.batches import BATCHES
from mockllm.wire.protocols.anthropic_messages.bedrock import BEDROCK, CHUNKS, error_at
from mockllm.wire.protocols.anthropic_messages.blocks import message_id
from mockllm.wire.protocols.anthropic_messages.client import CLIENT
from mockllm.wire.protocols.anthropic_messages.decoder import Decoder, decode_body
from mockllm.wire.protocols.anthropic_messages.encoder import Encoder, encode_body
from mockllm.wire.protocols.anthropic_messages.form import mistakes
from mockllm.wire.protocols.anthropic_messages.native import NATIVE
from mockllm.wire.protocols.anthropic_messages.request import options, parse
from mockllm.wire.protocols.anthropic_messages.stored import FILES, SKILLS
from mockllm.wire.protocols.anthropic_messages.ways import ways
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.decoding import projection
from mockllm.wire.protocols.values import mapped_text

_ENDINGS = ("message_delta", "message_stop", "error")


PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=message_id,
    error_body=service.error_body,
    error_headers=service.error_headers,
    service_errors=service.SERVICE_ERRORS,
    quota_headers=service.quota_headers,
    quota_error=service.quota_error,
    headers=service.answer_headers,
    reply_fields=("service_tier",),
    project=projection(Encoder, Decoder, None),
    client=CLIENT,
    detect=records.Detection(
        answer=lambda value: value.get("type") in ("message_start", "message"),
        identity=records.identity_in("message"),
    ),
    events=records.StreamEvents(
        is_end=lambda event: bool(event.get("error")) or event.get("type") in _ENDINGS,
        map_text=mapped_text(lambda name, _: name in ("text", "thinking"), frozenset({"input"})),
        id_path="message.id",
        model_path="message.model",
        mistakes=mistakes,
        ways=ways,
    ),
    fields=records.FieldNames(
        fragments=frozenset({"input", "partial_json", "text", "thinking"}),
        arguments=frozenset({"partial_json"}),
        labels=frozenset({"id", "model", "name", "role", "stop_reason", "type"}),
        opaque=frozenset({"signature"}),
        item_ids=frozenset({"index"}),
    ),
    normalize=records.Normalisation(
        # The usage in `message_start` is provisional; `message_delta` has the final one.
        made_up=frozenset(
            {"message.id", "message.model", "message.usage", "id", "model", "request_id"}
            | {"usage.inference_geo"}
        ),
        keepalive=frozenset({"ping"}),
        places={
            "event": records.ObjectPlace(("",), ()),
            "message": records.ObjectPlace(("message",), ("",)),
            "call": records.ObjectPlace(("content_block",), ("content",), is_call=True),
            "text": records.ObjectPlace(("content_block",), ("content",), types=("text",)),
            "finish": records.ObjectPlace(("delta",), ("",), types=(None, "message")),
            "end": records.ObjectPlace(("",), ("",), types=("message_delta", "message")),
            "usage": records.ObjectPlace(("usage",), ("usage",)),
        },
    ),
    zero_arguments="",
    finish_values={
        "stop": ("end_turn",),
        "tool_calls": ("tool_use",),
        "length": ("max_tokens",),
    },
    lookups={
        "models": service.models,
        "model": service.model,
        "count_tokens": service.count_tokens,
    },
    jobs=BATCHES,
    objects=(FILES, SKILLS),
    guard=service.guard,
    carriers=(SSE, CHUNKS),
    carrier=lambda options: CHUNKS if options == BEDROCK else SSE,
    error_at=error_at,
    call_prefix="toolu_",
    native=NATIVE,
    sdk=records.SdkTypes(
        "anthropic", "anthropic.types:RawMessageStreamEvent", "anthropic.types:Message"
    ),
)
