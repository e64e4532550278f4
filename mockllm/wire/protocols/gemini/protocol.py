"""Gemini as a whole, with its lists of models and counts of tokens."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

from mockllm.core.errors import RequestError
from mockllm.core.events import Start
from mockllm.core.http import Target
from mockllm.core.tokens_and_fragments import tokens
from mockllm.wire.framing.json_array import JSON_ARRAY
from mockllm.wire.framing.sse import SSE
from mockllm.wire.protocols import records
from mockllm.wire.protocols.base import Lookup, WireProtocol
from mockllm.wire.protocols.decoding import projection
from mockllm.wire.protocols.gemini import ADDRESS, errors
from mockllm.wire.protocols.gemini.batches import BATCHES
from mockllm.wire.protocols.gemini.candidates import join_bodies, join_candidates
from mockllm.wire.protocols.gemini.client import CLIENT
from mockllm.wire.protocols.gemini.decoder import Decoder, decode_body
from mockllm.wire.protocols.gemini.encoder import Encoder, encode_body, response_id
from mockllm.wire.protocols.gemini.fallback import FALLBACK_ROUTES
from mockllm.wire.protocols.gemini.fields import FINISHES, Options
from mockllm.wire.protocols.gemini.native import NATIVE
from mockllm.wire.protocols.gemini.request import model_of, options, parse
from mockllm.wire.protocols.gemini.stored import OBJECTS
from mockllm.wire.protocols.gemini.ways import ways
from mockllm.wire.protocols.gemini_common import get, guard, messages, text_of
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import mapped_text, objects, string

# Lookups


def _model(lookup: Lookup) -> Json:
    name = model_of(lookup.target)
    if name not in lookup.models and not lookup.any_model:
        raise RequestError(
            f"models/{name} is not found: no scenario answers for it. Call ListModels to see "
            "the list of available models and their supported methods.",
            status=404,
        )
    return _model_object(name)


def _model_object(name: str) -> Json:
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name,
        "inputTokenLimit": 1048576,
        "outputTokenLimit": 65536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        "temperature": 1,
        "topP": 0.95,
        "topK": 64,
        "maxTemperature": 2,
    }


def _count_tokens(lookup: Lookup) -> Json:
    body = get(lookup.request, "generateContentRequest") or lookup.request
    texts = [text_of(get(body, "systemInstruction"))]
    for message in messages(get(body, "contents")):
        texts += [message.text, *(call.name + call.arguments for call in message.calls)]
    total = sum(map(tokens, texts))
    details = [{"modality": "TEXT", "tokenCount": total}]
    return {"totalTokens": total, "promptTokensDetails": details}


def _identity(value: Fields) -> Start:
    model = string(value.get("model")) or string(value.get("modelVersion"))
    return Start(string(value.get("responseId")), model.removeprefix("models/"))


def _is_end(chunk: Fields) -> bool:
    finished = any(given.get("finishReason") for given in objects(chunk.get("candidates")))
    return finished or bool(chunk.get("error") or chunk.get("promptFeedback"))


def _is_array(target: Target) -> bool:
    """Whether a stream is an array, so that an error in its place is, too."""
    return target.method == "streamGenerateContent" and target.query.get("alt") != "sse"


_CALL = ("candidates.content.parts.functionCall",)


PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=response_id,
    error_body=errors.error_body,
    error_headers=errors.error_headers,
    service_errors=errors.SERVICE_ERRORS,
    quota_error=errors.quota_error,
    headers=errors.answer_headers,
    reply_fields=("service_tier",),
    choices=records.Choices(
        count=attrgetter("candidates"),
        single=lambda options, _: replace(options, candidates=1, array=False),
        join_frames=join_candidates,
        join_bodies=join_bodies,
    ),
    project=projection(Encoder, Decoder, Options()),
    client=CLIENT,
    detect=records.Detection(
        created=("createTime",),
        request=lambda body: "contents" in body,
        answer=lambda value: "candidates" in value or "promptFeedback" in value,
        identity=_identity,
    ),
    events=records.StreamEvents(
        is_end=_is_end,
        map_text=mapped_text(
            lambda name, _: name == "text",
            frozenset({"functionCall", "groundingMetadata", "logprobsResult"}),
        ),
        id_path="responseId",
        model_path="modelVersion",
        ways=ways,
    ),
    fields=records.FieldNames(
        fragments=frozenset({"text"}),
        arguments=frozenset({"args"}),
        labels=frozenset({"finishReason", "id", "modelVersion", "name", "responseId", "role"}),
        opaque=frozenset({"thoughtSignature"}),
        item_ids=frozenset({"index"}),
    ),
    normalize=records.Normalisation(
        # Protocol buffers omit zeros, so servers may leave out the index of the first candidate.
        made_up=frozenset({"responseId", "modelVersion", "createTime", "candidates.index"}),
        usage="usageMetadata",
        places={
            "event": records.ObjectPlace(("",), ("",)),
            "candidate": records.ObjectPlace(("candidates",), ("candidates",)),
            "content": records.ObjectPlace(("candidates.content",), ("candidates.content",)),
            "call": records.ObjectPlace(_CALL, _CALL, is_call=True),
            "usage": records.ObjectPlace(("usageMetadata",), ("usageMetadata",)),
        },
    ),
    native=NATIVE,
    jobs=BATCHES,
    fallback_routes=FALLBACK_ROUTES,
    objects=OBJECTS,
    finish_values={reason: (value,) for reason, value in FINISHES.items()},
    role="model",
    error_at=lambda target, _status, body, headers: (
        [body] if _is_array(target) else body,
        headers,
    ),
    lookups={
        "models": lambda lookup: {"models": [_model_object(name) for name in lookup.models]},
        "model": _model,
        "count_tokens": _count_tokens,
    },
    guard=guard,
    call_prefix="",
    carriers=(SSE, JSON_ARRAY),
    carrier=lambda options: JSON_ARRAY if options.array else SSE,
    line_end="crlf",
    sdk=records.SdkTypes(
        "google-genai",
        "google.genai.types:GenerateContentResponse",
        "google.genai.types:GenerateContentResponse",
    ),
)
