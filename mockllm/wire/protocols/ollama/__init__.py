"""Ollama's own API, `/api/chat` and `/api/generate`.

https://github.com/ollama/ollama/blob/main/docs/api.md

`request` (with `messages`) parses requests; `encoder` writes answers, `decoder` reads them;
`objects` has what both sides share, `errors` all errors; `service` answers about models and makes
embeddings; `protocol` is the whole. Streams are JSON lines (`application/x-ndjson`).
"""

from __future__ import annotations

import re

from mockllm.wire.protocols.base import Address, Route
from mockllm.wire.protocols.records import Environment

API = "ollama"

ADDRESS = Address(
    name=API,
    title="Ollama",
    package=__name__,
    routes=(
        Route("POST", "/api/{action:chat|generate}", "generate"),
        Route("GET", "/api/{list:tags|ps}", "models"),
        Route("POST", "/api/show", "model"),
        Route("GET", "/api/version", "version"),
    ),
    paths=(re.compile(r"/api/(?P<action>chat|generate)$"),),
    env=Environment(
        base_urls=(("OLLAMA_HOST", ""), ("OLLAMA_API_BASE", "")), keys=("OLLAMA_API_KEY",)
    ),
    hosts=("ollama.com", "localhost:11434", "127.0.0.1:11434", "[::1]:11434"),
)
