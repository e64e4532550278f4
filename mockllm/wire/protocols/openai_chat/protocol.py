"""Chat Completions as a whole, with the list of its models."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from mockllm.core.errors import RequestError
from mockllm.wire.protocols import openai_common, records
from mockllm.wire.protocols.base import EPOCH, Lookup, WireProtocol, looked_up_model
from mockllm.wire.protocols.decoding import projection
from mockllm.wire.protocols.openai_chat import ADDRESS
from mockllm.wire.protocols.openai_chat.batches import BATCHES
from mockllm.wire.protocols.openai_chat.client import CLIENT
from mockllm.wire.protocols.openai_chat.decoder import Decoder, decode_body
from mockllm.wire.protocols.openai_chat.encoder import Encoder, encode_body
from mockllm.wire.protocols.openai_chat.fallback import FALLBACK_ROUTES
from mockllm.wire.protocols.openai_chat.fields import answer_id, move_reasoning, reasoning_field
from mockllm.wire.protocols.openai_chat.files import FILES
from mockllm.wire.protocols.openai_chat.form import mistakes
from mockllm.wire.protocols.openai_chat.request import Options, options, parse
from mockllm.wire.protocols.openai_chat.stored import COMPLETIONS, STORES
from mockllm.wire.protocols.openai_chat.uploads import UPLOADS
from mockllm.wire.protocols.openai_chat.ways import ways
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import mapped_text


def _model_object(name: str) -> Json:
    return {"id": name, "object": "model", "created": EPOCH, "owned_by": "mockllm"}


def _model(lookup: Lookup) -> Json:
    name, served = looked_up_model(lookup)
    if not served:
        raise RequestError(
            f"The model '{name}' does not exist: no scenario answers for it. GET /v1/models lists "
            "those that are served.",
            status=404,
            param="model",
            code="model_not_found",
        )
    return _model_object(name)


_TEXT = frozenset({"content", "refusal", "reasoning_content"})


PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=answer_id,
    error_body=openai_common.error_body,
    error_headers=openai_common.error_headers,
    service_errors=openai_common.SERVICE_ERRORS,
    quota_headers=openai_common.quota_headers,
    quota_error=openai_common.quota_error,
    headers=openai_common.answer_headers,
    reply_fields=("service_tier", "fingerprint"),
    choices=records.Choices(
        count=attrgetter("n"),
        single=lambda options, _: replace(options, n=1),
        join_frames=openai_common.join_choices,
        join_bodies=openai_common.join_bodies,
    ),
    project=projection(Encoder, Decoder, Options(stream_usage=True)),
    client=CLIENT,
    detect=records.Detection(
        created=("created",),
        answer=lambda value: "choices" in value and value.get("object") != "text_completion",
        likely_request=lambda body: "messages" in body,
    ),
    events=records.StreamEvents(
        is_end=openai_common.is_end,
        map_text=mapped_text(lambda name, _: name in _TEXT, frozenset({"logprobs"})),
        id_path="id",
        model_path="model",
        mistakes=mistakes,
        ways=ways,
    ),
    fields=records.FieldNames(
        # Services send reasoning as `reasoning` or `thinking` too; custom tools have an `input`.
        fragments=_TEXT | {"arguments", "input", "reasoning", "text", "thinking"},
        arguments=frozenset({"arguments"}),
        labels=frozenset({"finish_reason", "id", "model", "name", "object", "role", "service_tier"})
        | {"system_fingerprint", "tool_call_id", "type"},
        opaque=frozenset({"obfuscation"}),
        item_ids=frozenset({"index", "tool_call_id"}),
    ),
    normalize=records.Normalisation(
        made_up=frozenset(
            {"id", "created", "model", "service_tier", "system_fingerprint", "obfuscation"}
        ),
        places={
            "event": records.ObjectPlace(("",), ("",)),
            "choice": records.ObjectPlace(("choices",), ("choices",)),
            "message": records.ObjectPlace(("choices.delta",), ("choices.message",)),
            "call": records.ObjectPlace(
                ("choices.delta.tool_calls",), ("choices.message.tool_calls",), is_call=True
            ),
            "usage": records.ObjectPlace(("usage",), ("usage",)),
        },
        reasoning=records.ReasoningFields(reasoning_field, move_reasoning),
    ),
    jobs={**FILES, **BATCHES},
    fallback_routes=FALLBACK_ROUTES,
    objects=(COMPLETIONS, STORES, UPLOADS),
    zero_arguments="{}",
    finish_values={"refusal": ("stop",)},
    end_data="[DONE]",
    lookups={
        "models": lambda lookup: {
            "object": "list",
            "data": [_model_object(name) for name in lookup.models],
        },
        "model": _model,
    },
    sdk=records.SdkTypes(
        "openai", "openai.types.chat:ChatCompletionChunk", "openai.types.chat:ChatCompletion"
    ),
)
