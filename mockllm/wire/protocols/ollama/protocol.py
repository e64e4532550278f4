"""Ollama as a whole."""

from __future__ import annotations

from mockllm.core.seeded import derive
from mockllm.wire.framing.ndjson import NDJSON
from mockllm.wire.protocols import records
from mockllm.wire.protocols.base import WireProtocol
from mockllm.wire.protocols.decoding import projection
from mockllm.wire.protocols.ollama import ADDRESS, errors, service
from mockllm.wire.protocols.ollama.client import CLIENT
from mockllm.wire.protocols.ollama.decoder import Decoder, decode_body
from mockllm.wire.protocols.ollama.encoder import Encoder, encode_body, is_end
from mockllm.wire.protocols.ollama.objects import DURATIONS, Options
from mockllm.wire.protocols.ollama.request import options, parse
from mockllm.wire.protocols.ollama.ways import ways
from mockllm.wire.protocols.values import mapped_text

_TEXT = frozenset({"content", "response", "thinking"})
_CALLS = ("message.tool_calls", "tool_calls")


PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    # Answers have no ids.
    answer_id=lambda reply: derive(reply.seed, "answer"),
    error_body=errors.error_body,
    decode_error=errors.error_of,
    error_headers=errors.error_headers,
    service_errors=errors.SERVICE_ERRORS,
    headers=errors.answer_headers,
    project=projection(Encoder, Decoder, Options()),
    client=CLIENT,
    detect=records.Detection(
        created=("created_at",),
        request=lambda body: "keep_alive" in body or isinstance(body.get("options"), dict),
        answer=lambda value: {"created_at", "done"} <= value.keys(),
    ),
    events=records.StreamEvents(
        is_end=is_end,
        map_text=mapped_text(lambda name, _: name in _TEXT, frozenset({"arguments"})),
        model_path="model",
        ways=ways,
    ),
    fields=records.FieldNames(
        fragments=_TEXT,
        arguments=frozenset({"arguments"}),
        labels=frozenset({"done_reason", "id", "model", "name", "role", "tool_call_id"})
        | {"tool_name", "type"},
        opaque=frozenset({"images"}),
        item_ids=frozenset({"index"}),
    ),
    normalize=records.Normalisation(
        made_up=frozenset({"created_at", "model", *DURATIONS}),
        places={
            "event": records.ObjectPlace(("",), ("",)),
            "message": records.ObjectPlace(("message",), ("message",)),
            "call": records.ObjectPlace(_CALLS, _CALLS, is_call=True),
        },
    ),
    lookups={
        "models": service.models,
        "model": service.model,
        "version": lambda _: {"version": service.VERSION},
    },
    fallback_routes=service.FALLBACK_ROUTES,
    objects=(service.MODELS,),
    finish_values=dict.fromkeys(("stop", "tool_calls", "content_filter", "refusal"), ("stop",)),
    carriers=(NDJSON,),
    carrier=lambda _: NDJSON,
    sdk=records.SdkTypes("ollama", "ollama:ChatResponse", "ollama:ChatResponse"),
)
