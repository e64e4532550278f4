"""Interactions as a whole."""

from __future__ import annotations

from mockllm.wire.protocols import records
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.decoding import projection
from mockllm.wire.protocols.gemini_common import guard
from mockllm.wire.protocols.gemini_interactions import ADDRESS, errors, routes
from mockllm.wire.protocols.gemini_interactions.client import CLIENT
from mockllm.wire.protocols.gemini_interactions.decoder import Decoder, decode_body
from mockllm.wire.protocols.gemini_interactions.encoder import Encoder, encode_body
from mockllm.wire.protocols.gemini_interactions.fields import Options, interaction_id
from mockllm.wire.protocols.gemini_interactions.form import mistakes
from mockllm.wire.protocols.gemini_interactions.request import options, parse
from mockllm.wire.protocols.gemini_interactions.ways import ways
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import mapped_text

_REQUEST = frozenset({"agent", "generation_config", "previous_interaction_id"})
"""Fields of requests that no other API with an `input` has."""


def _is_answer(value: Fields) -> bool:
    kind = str(value.get("event_type"))
    return value.get("object") == "interaction" or kind.startswith(("interaction.", "step."))


PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=lambda reply: interaction_id(reply.token),
    error_body=errors.error_body,
    decode_error=lambda body: errors.read_error(body.get("error")),
    error_headers=errors.error_headers,
    whole_error=errors.whole_error,
    service_errors=errors.SERVICE_ERRORS,
    headers=errors.answer_headers,
    reply_fields=("service_tier",),
    project=projection(Encoder, Decoder, Options()),
    client=CLIENT,
    detect=records.Detection(
        created=("created", "interaction.created"),
        request=lambda body: "input" in body and not _REQUEST.isdisjoint(body),
        answer=_is_answer,
        identity=records.identity_in("interaction"),
    ),
    events=records.StreamEvents(
        is_end=lambda event: (
            bool(event.get("error")) or event.get("event_type") == "interaction.completed"
        ),
        map_text=mapped_text(
            lambda name, _: name == "text", frozenset({"annotations", "arguments", "result"})
        ),
        type_path="event_type",
        id_path="interaction.id",
        model_path="interaction.model",
        mistakes=mistakes,
        ways=ways,
    ),
    fields=records.FieldNames(
        fragments=frozenset({"arguments", "text"}),
        arguments=frozenset({"arguments"}),
        labels=frozenset({"agent", "call_id", "event_type", "id", "interaction_id", "mime_type"})
        | {"model", "name", "object", "service_tier", "status", "type"},
        opaque=frozenset({"event_id", "signature"}),
        item_ids=frozenset({"call_id", "index"}),
    ),
    normalize=records.Normalisation(
        made_up=frozenset(
            {"interaction.id", "interaction.created", "interaction.updated", "interaction.model"}
            | {"interaction_id", "event_id"}
        ),
        envelope="interaction",
        places={
            "event": records.ObjectPlace(("",), ()),
            "interaction": records.ObjectPlace(("interaction",), ("interaction",)),
            "call": records.ObjectPlace(
                ("step",), ("interaction.steps",), types=("function_call",)
            ),
            "usage": records.ObjectPlace(("interaction.usage",), ("interaction.usage",)),
        },
    ),
    stored=routes.STORED_ANSWERS,
    lookups={
        "response": routes.stored_answer,
        "delete_response": lambda _lookup: {},
        "cancel_response": lambda lookup: dict(lookup.answer),
    },
    guard=guard,
    zero_arguments="",
    call_prefix="",
    end_data="[DONE]",
    finish_values={
        "stop": ("completed",),
        "tool_calls": ("requires_action",),
        "refusal": ("completed",),
        "length": ("incomplete",),
    },
    sdk=records.SdkTypes(
        "google-genai",
        "google.genai.interactions:InteractionSSEEvent",
        "google.genai.interactions:Interaction",
    ),
)
