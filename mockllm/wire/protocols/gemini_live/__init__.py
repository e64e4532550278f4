"""Gemini Live: messages over WebSockets, on the Gemini API and on Vertex AI.

https://ai.google.dev/api/live

`socket` is one connection, and makes each turn of the client a request: the setup and the history
as one body, which `request` parses. `encoder` writes the messages of an answer, `decoder` reads
them; `fields` is what both sides share; `protocol` is the whole.
"""

from __future__ import annotations

import re

from mockllm.wire.protocols.base import Address, Route
from mockllm.wire.protocols.records import Environment

API = "live"

# google-genai for Python calls v1, that for Node v1beta, and tokens of a client need v1alpha.
_SERVICES = (
    *(f"google.ai.generativelanguage.{version}" for version in ("v1beta", "v1", "v1alpha")),
    *(f"google.cloud.aiplatform.{version}" for version in ("v1beta1", "v1")),
)
_METHODS = (
    (".GenerativeService.BidiGenerateContent", "generativelanguage"),
    (".GenerativeService.BidiGenerateContentConstrained", "generativelanguage"),
    (".LlmBidiService/BidiGenerateContent", "aiplatform"),
)

ADDRESS = Address(
    name=API,
    title="Gemini Live",
    package=__name__,
    routes=tuple(
        Route("GET", f"/ws/{service}{method}", "generate")
        for method, product in _METHODS
        for service in _SERVICES
        if product in service
    ),
    paths=(re.compile(r"(?:GenerativeService\.|/)BidiGenerateContent(?:Constrained)?$"),),
    env=Environment(
        base_urls=(("GOOGLE_GEMINI_BASE_URL", ""),),
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    ),
    hosts=(
        "generativelanguage.googleapis.com",
        "aiplatform.googleapis.com",
        "*-aiplatform.googleapis.com",
    ),
    provider="gcp.gemini",
    task="generate_content",
)
