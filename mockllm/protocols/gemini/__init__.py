"""Google Gemini, on the Gemini API and on Vertex AI.

https://ai.google.dev/api/generate-content

`request` (with `contents`, `tools` and `schema`) parses requests; `encoder` writes answers,
`decoder` reads them, with `partial` for arguments in fragments, `grounding` for citations, `runs`
for the parts of texts and their signatures, `server_tools` for tools of the service; `errors` has
errors and headers, `fields` what both sides share; `records` lists what the API cannot express.
"""

from __future__ import annotations

from typing import Any

from mockllm.core.seeded import tokens
from mockllm.core.target import Target
from mockllm.errors import RequestError
from mockllm.protocols.base import Lookup, Operation, Route, WireProtocol
from mockllm.protocols.gemini import records
from mockllm.protocols.gemini.client import CLIENT
from mockllm.protocols.gemini.contents import messages, text_of
from mockllm.protocols.gemini.decoder import Decoder, decode_body
from mockllm.protocols.gemini.encoder import Encoder, encode_body, response_id
from mockllm.protocols.gemini.errors import (
    SERVICE_ERRORS,
    answer_headers,
    error_body,
    error_headers,
    guard,
)
from mockllm.protocols.gemini.fallback import FALLBACK_ROUTES
from mockllm.protocols.gemini.fields import API, FINISHES, Options
from mockllm.protocols.gemini.joining import join
from mockllm.protocols.gemini.request import model_of, options, parse
from mockllm.protocols.gemini.schema import get

__all__ = ["PROTOCOL", "Options"]

_Json = dict[str, Any]


# Lookups


def _models(lookup: Lookup) -> _Json:
    return {"models": [_model_object(name) for name in lookup.models]}


def _model(lookup: Lookup) -> _Json:
    name = model_of(lookup.target)
    if name not in lookup.models and not lookup.any_model:
        raise RequestError(
            f"models/{name} is not found: no scenario answers for it. Call ListModels to see "
            "the list of available models and their supported methods.",
            status=404,
        )
    return _model_object(name)


def _model_object(name: str) -> _Json:
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


def _count_tokens(lookup: Lookup) -> _Json:
    body = get(lookup.request, "generateContentRequest") or lookup.request
    texts = [text_of(get(body, "systemInstruction"))]
    for message in messages(get(body, "contents")):
        texts += [message.text, *(call.name + call.arguments for call in message.calls)]
    total = sum(map(tokens, texts))
    details = [{"modality": "TEXT", "tokenCount": total}]
    return {"totalTokens": total, "promptTokensDetails": details}


# Routes

_METHODS: dict[str, Operation] = {
    "streamGenerateContent": "generate",
    "generateContent": "generate",
    "countTokens": "count_tokens",
}
_VERSIONS = ("v1beta", "v1", "v1alpha")


def _routes() -> tuple[Route, ...]:
    # A model `mock/<scenario>` is two segments of the path; on Vertex AI, `mock` is its publisher.
    models = [
        f"/{version}/models/{name}"
        for version in _VERSIONS
        for name in ("{model}", "{owner}/{model}")
    ]
    vertex = [
        f"/{version}{project}/publishers/{{publisher}}/models/{{model}}"
        for version in ("v1", "v1beta1")
        for project in ("/projects/{project}/locations/{location}", "")
    ]
    return (
        *(
            Route("POST", f"{model}:{method}", operation)
            for model in (*models, *vertex)
            for method, operation in _METHODS.items()
        ),
        *(_listing(f"/{version}/models", "models") for version in _VERSIONS),
        *(_listing(model, "model") for model in models),
    )


def _listing(path: str, operation: Operation) -> Route:
    # OpenAI and Anthropic also list their models below /v1; Gemini's clients send this header.
    shared = path.startswith("/v1/")
    return Route("GET", path, operation, header="x-goog-api-key" if shared else None)


def _lists_errors(target: Target) -> bool:
    return target.method == "streamGenerateContent" and target.query.get("alt") != "sse"


PROTOCOL = WireProtocol(
    name=API,
    title="Google Gemini",
    routes=_routes(),
    base_path="",
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=response_id,
    error_body=error_body,
    error_headers=error_headers,
    service_errors=SERVICE_ERRORS,
    headers=answer_headers,
    project=records.project,
    client=CLIENT,
    detect=records.DETECTION,
    events=records.EVENTS,
    fields=records.FIELDS,
    normalize=records.NORMALISATION,
    fallback_routes=FALLBACK_ROUTES,
    env=records.ENVIRONMENT,
    finish_values={reason: (value,) for reason, value in FINISHES.items()},
    role="model",
    losses=records.LOSSES,
    lists_errors=_lists_errors,
    lookups={"models": _models, "model": _model, "count_tokens": _count_tokens},
    guard=guard,
    call_prefix="",
    line_end="crlf",
    join=join,
)
