"""Completions as a whole."""

from __future__ import annotations

from dataclasses import replace

from mockllm.wire.protocols import openai_common, records
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.decoding import projection
from mockllm.wire.protocols.openai_completions import ADDRESS
from mockllm.wire.protocols.openai_completions.client import CLIENT
from mockllm.wire.protocols.openai_completions.decoder import Decoder, decode_body
from mockllm.wire.protocols.openai_completions.encoder import Encoder, encode_body
from mockllm.wire.protocols.openai_completions.fields import answer_id
from mockllm.wire.protocols.openai_completions.request import Options, options, parse
from mockllm.wire.protocols.openai_completions.ways import ways
from mockllm.wire.protocols.values import mapped_text

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
    reply_fields=("fingerprint",),
    choices=records.Choices(
        count=lambda options: len(options.heads),
        single=lambda options, number: replace(options, heads=(options.heads[number],)),
        join_frames=openai_common.join_choices,
        join_bodies=openai_common.join_bodies,
    ),
    project=projection(Encoder, Decoder, Options(stream_usage=True)),
    client=CLIENT,
    detect=records.Detection(
        created=("created",),
        answer=lambda value: value.get("object") == "text_completion",
        likely_request=lambda body: "prompt" in body and "messages" not in body,
    ),
    events=records.StreamEvents(
        is_end=openai_common.is_end,
        map_text=mapped_text(lambda name, _: name == "text", frozenset({"logprobs"})),
        id_path="id",
        model_path="model",
        ways=ways,
    ),
    fields=records.FieldNames(
        fragments=frozenset({"text"}),
        labels=frozenset({"finish_reason", "id", "model", "object", "system_fingerprint"}),
        item_ids=frozenset({"index"}),
    ),
    normalize=records.Normalisation(
        made_up=frozenset({"id", "created", "model", "system_fingerprint"}),
        places={
            "event": records.ObjectPlace(("",), ("",)),
            "choice": records.ObjectPlace(("choices",), ("choices",)),
            "usage": records.ObjectPlace(("usage",), ("usage",)),
        },
    ),
    finish_values={"tool_calls": ("stop",), "refusal": ("stop",)},
    end_data="[DONE]",
    sdk=records.SdkTypes("openai", "openai.types:Completion", "openai.types:Completion"),
)
