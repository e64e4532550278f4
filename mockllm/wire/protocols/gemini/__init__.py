"""Google Gemini, on the Gemini API and on Vertex AI.

https://ai.google.dev/api/generate-content

`request` (with `contents`) parses requests; `encoder` writes answers,
`decoder` reads them, with `partial` for arguments in fragments, `grounding` for citations, `runs`
for the parts of texts and their signatures, `server_tools` for tools of the service; `errors` has
errors and headers, `fields` what both sides share; `protocol` is the whole.
"""

from __future__ import annotations

import re

from mockllm.wire.protocols.base import Address, Operation, Route, routes_below
from mockllm.wire.protocols.records import Environment

API = "gemini"

_METHODS: dict[str, Operation] = {
    "streamGenerateContent": "generate",
    "generateContent": "generate",
    "countTokens": "count_tokens",
}
_VERSIONS = ("v1beta", "v1", "v1alpha")  # google-genai 3 calls v1, its version 2 v1beta


_KEY_HEADER = "x-goog-api-key"


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
        *(Route("POST", f"{model}:batchGenerateContent", "create_batch") for model in models),
        *(_listing(f"/{version}/batches", "batches") for version in _VERSIONS),
        *(_listing(f"/{version}/batches/{{batch_id}}", "batch") for version in _VERSIONS),
        *routes_below(
            [f"/{version}/batches/{{batch_id}}" for version in _VERSIONS],
            Route("DELETE", "", "delete_batch"),
            Route("POST", ":cancel", "cancel_batch"),
        ),
    )


def _listing(path: str, operation: Operation) -> Route:
    # OpenAI has models and batches below /v1, too, and Anthropic has models; Gemini's clients send
    # this header.
    shared = path.startswith("/v1/")
    return Route("GET", path, operation, header=_KEY_HEADER if shared else None)


ADDRESS = Address(
    name=API,
    title="Google Gemini",
    package=__name__,
    routes=_routes(),
    paths=(
        re.compile(
            r"/(?:publishers/(?P<publisher>[^/]+)/models|models(?:/(?P<owner>[^/:]+))?)"
            r"/(?P<model>[^/:]+):(?:streamGenerateContent|generateContent)$"
        ),
    ),
    env=Environment(
        base_urls=(("GOOGLE_GEMINI_BASE_URL", ""),),
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    hosts=(
        "generativelanguage.googleapis.com",
        "aiplatform.googleapis.com",
        "*-aiplatform.googleapis.com",
    ),
    marks=(_KEY_HEADER,),
    provider="gcp.gemini",
    task="generate_content",
)
