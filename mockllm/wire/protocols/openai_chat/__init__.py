"""OpenAI Chat Completions.

https://platform.openai.com/docs/api-reference/chat

`request` (with `messages`) parses requests; `encoder` writes answers, `decoder` (with `calls`)
reads them; `fields` has what both sides share; `protocol` is the whole.
`openai_common` is shared with Responses.
"""

from __future__ import annotations

import re

from mockllm.wire.protocols.base import Address, Route, model_routes
from mockllm.wire.protocols.openai_environment import ENVIRONMENT, HOSTS

_BASES = ("/v1", "", "/openai", "/openai/v1")

ADDRESS = Address(
    name="chat",
    title="OpenAI Chat Completions",
    package=__name__,
    routes=(
        *(
            Route("POST", f"{base}/chat/completions", "generate")
            for base in ("/v1", "", "/openai/deployments/{deployment}", "/openai/v1")
        ),
        *model_routes(*_BASES),
        *(
            route
            for base in _BASES
            for route in (
                Route("POST", f"{base}/files", "create_file"),
                Route("GET", f"{base}/files", "files"),
                Route("GET", f"{base}/files/{{file_id}}", "file"),
                Route("GET", f"{base}/files/{{file_id}}/content", "file_content"),
                Route("DELETE", f"{base}/files/{{file_id}}", "delete_file"),
                Route("POST", f"{base}/batches", "create_batch"),
                Route("GET", f"{base}/batches", "batches"),
                Route("GET", f"{base}/batches/{{batch_id}}", "batch"),
                Route("POST", f"{base}/batches/{{batch_id}}/cancel", "cancel_batch"),
            )
        ),
    ),
    paths=(re.compile(r"(?:/deployments/(?P<deployment>[^/]+))?/chat/completions$"),),
    base_path="/v1",
    env=ENVIRONMENT,
    hosts=HOSTS,
    provider="openai",
)
