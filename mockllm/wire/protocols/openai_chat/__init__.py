"""OpenAI Chat Completions.

https://platform.openai.com/docs/api-reference/chat

`request` (with `messages`) parses requests; `encoder` writes answers, `decoder` (with `calls`)
reads them; `fields` has what both sides share; `protocol` is the whole.
`openai_common` is shared with Responses.
"""

from __future__ import annotations

import re

from mockllm.wire.protocols.base import Address, Route, model_routes, routes_below
from mockllm.wire.protocols.openai_environment import ENVIRONMENT, HOSTS

_BASES = ("/v1", "", "/openai", "/openai/v1")

ADDRESS = Address(
    name="chat",
    title="OpenAI Chat Completions",
    package=__name__,
    routes=(
        *routes_below(
            ("/v1", "", "/openai/deployments/{deployment}", "/openai/v1"),
            Route("POST", "/chat/completions", "generate"),
        ),
        *model_routes(*_BASES),
        *routes_below(
            _BASES,
            Route("POST", "/files", "create_file"),
            Route("GET", "/files", "files"),
            Route("GET", "/files/{file_id}", "file"),
            Route("GET", "/files/{file_id}/content", "file_content"),
            Route("DELETE", "/files/{file_id}", "delete_file"),
            Route("POST", "/batches", "create_batch"),
            Route("GET", "/batches", "batches"),
            Route("GET", "/batches/{batch_id}", "batch"),
            Route("POST", "/batches/{batch_id}/cancel", "cancel_batch"),
        ),
    ),
    paths=(re.compile(r"(?:/deployments/(?P<deployment>[^/]+))?/chat/completions$"),),
    base_path="/v1",
    env=ENVIRONMENT,
    hosts=HOSTS,
    provider="openai",
)
