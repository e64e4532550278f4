"""Responses as a whole."""

from __future__ import annotations

from mockllm.wire.protocols import openai_common, records
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.decoding import projection
from mockllm.wire.protocols.openai_responses import ADDRESS, routes
from mockllm.wire.protocols.openai_responses.client import CLIENT
from mockllm.wire.protocols.openai_responses.decoder import Decoder, decode_body
from mockllm.wire.protocols.openai_responses.encoder import Encoder, encode_body
from mockllm.wire.protocols.openai_responses.form import mistakes
from mockllm.wire.protocols.openai_responses.objects import (
    Options,
    response_id,
    with_sequence_numbers,
)
from mockllm.wire.protocols.openai_responses.parts import NATIVE
from mockllm.wire.protocols.openai_responses.recorded_socket import recorded_exchanges
from mockllm.wire.protocols.openai_responses.request import options, parse
from mockllm.wire.protocols.openai_responses.socket import ResponsesConversation
from mockllm.wire.protocols.openai_responses.ways import ways
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import mapped_text


def _answer(value: Fields) -> bool:
    kind = value.get("type")
    return value.get("object") == "response" or (
        isinstance(kind, str) and kind.startswith("response.")
    )


_ENDINGS = ("response.completed", "response.incomplete", "response.failed", "error")
_TEXT_DELTAS = ("text.delta", "refusal.delta")


def _is_text(name: str, value: Fields) -> bool:
    if name == "delta":  # of text or of arguments
        return str(value.get("type")).endswith(_TEXT_DELTAS)
    return name in ("text", "refusal")


PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=lambda reply: response_id(reply.token),
    error_body=openai_common.error_body,
    error_headers=openai_common.error_headers,
    service_errors=openai_common.SERVICE_ERRORS,
    quota_headers=openai_common.quota_headers,
    quota_error=openai_common.quota_error,
    with_sequence_numbers=with_sequence_numbers,
    headers=openai_common.answer_headers,
    reply_fields=("service_tier",),
    project=projection(Encoder, Decoder, Options()),
    client=CLIENT,
    detect=records.Detection(
        created=("created_at", "response.created_at"),
        answer=_answer,
        likely_request=lambda body: "input" in body,
        identity=records.identity_in("response"),
    ),
    events=records.StreamEvents(
        has_finals=True,
        is_end=lambda event: bool(event.get("error")) or event.get("type") in _ENDINGS,
        map_text=mapped_text(_is_text, frozenset({"input", "logprobs", "tools"})),
        id_path="response.id",
        model_path="response.model",
        mistakes=mistakes,
        ways=ways,
    ),
    fields=records.FieldNames(
        fragments=frozenset({"arguments", "content", "delta", "input", "refusal", "text"}),
        arguments=frozenset({"arguments"}),
        labels=frozenset({"call_id", "id", "item_id", "model", "name", "object", "response_id"})
        | {"role", "service_tier", "status", "type"},
        opaque=frozenset({"encrypted_content", "obfuscation"}),
        item_ids=frozenset({"content_index", "item_id", "output_index", "summary_index"}),
    ),
    normalize=records.Normalisation(
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
        envelope="response",
        places={
            "event": records.ObjectPlace(("",), ()),
            "response": records.ObjectPlace(("response",), ("response",)),
            "call": records.ObjectPlace(
                ("item", "response.output"), ("response.output",), is_call=True
            ),
            "message": records.ObjectPlace(
                ("item", "response.output"), ("response.output",), types=("message",)
            ),
            "usage": records.ObjectPlace(("response.usage",), ("response.usage",)),
        },
    ),
    fallback_routes=routes.FALLBACK_ROUTES,
    objects=(routes.CONVERSATIONS,),
    stored=routes.STORED_ANSWERS,
    zero_arguments="{}",
    finish_values={
        "stop": ("completed",),
        "tool_calls": ("completed",),
        "refusal": ("completed",),
        "length": ("max_output_tokens", "incomplete"),
        "content_filter": ("incomplete",),
    },
    lookups={
        "response": routes.stored_answer,
        "delete_response": routes.deleted_answer,
        "cancel_response": routes.stored_answer,
        "input_items": routes.listed_input,
    },
    socket=ResponsesConversation,
    exchanges=recorded_exchanges,
    native=NATIVE,
    sdk=records.SdkTypes(
        "openai", "openai.types.responses:ResponseStreamEvent", "openai.types.responses:Response"
    ),
)
