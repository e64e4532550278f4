"""Cohere's Chat API, version 2.

https://docs.cohere.com/reference/chat

`request` (with `messages`) parses requests; `encoder` writes answers and `decoder` reads them;
`fields` has what both sides share, `errors` all errors; `fallback` answers routes for embeddings
and rankings; `first` answers the first version (`/v1/chat`, lines of JSON), which is recorded and
played as a route; `protocol` is the whole.
"""

from __future__ import annotations

import re

from mockllm.wire.protocols.base import Address, Route
from mockllm.wire.protocols.records import Environment

API = "cohere"

ADDRESS = Address(
    name=API,
    title="Cohere Chat",
    package=__name__,
    routes=(Route("POST", "/v2/chat", "generate"),),
    paths=(re.compile(r"/v2/chat$"),),
    env=Environment(
        base_urls=(("CO_API_URL", ""),),
        keys=("CO_API_KEY",),
        other_base_urls=("COHERE_API_BASE",),
    ),
    hosts=("api.cohere.com", "api.cohere.ai"),
    provider="cohere",
)
