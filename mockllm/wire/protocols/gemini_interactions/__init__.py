"""Gemini Interactions, on the Gemini API and on Vertex AI.

https://ai.google.dev/api/interactions-api

It shares host and key with `generateContent`, and nothing else. `request` (with `input`) parses
requests; `encoder` writes answers and `decoder` reads them; `steps` has what both sides share;
`fields` has identifiers, statuses and usage, `errors` errors and headers, `routes` the answers that
the service keeps; `protocol` is the whole.
"""

from __future__ import annotations

import re

from mockllm.wire.protocols.base import Address, Route, routes_below
from mockllm.wire.protocols.records import Environment

API = "interactions"

_VERTEX = "/projects/{project}/locations/{location}"
_BASES = (
    *(f"/{version}/interactions" for version in ("v1beta", "v1", "v1alpha")),
    *(f"/{version}{_VERTEX}/interactions" for version in ("v1beta1", "v1")),
)

ADDRESS = Address(
    name=API,
    title="Gemini Interactions",
    package=__name__,
    routes=tuple(
        routes_below(
            _BASES,
            Route("POST", "", "generate"),
            Route("GET", "/{interaction_id}", "response"),
            Route("DELETE", "/{interaction_id}", "delete_response"),
            Route("POST", "/{interaction_id}/cancel", "cancel_response"),
        )
    ),
    paths=(re.compile(r"/interactions$"),),
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
