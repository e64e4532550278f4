"""OpenAI Chat Completions.

https://platform.openai.com/docs/api-reference/chat

`request` (with `messages`) parses requests; `encoder` writes answers, `decoder` (with `calls`)
reads them; `fields` has what both sides share; `protocol` is the whole.
`openai_common` is shared with Responses.
"""

from __future__ import annotations

import re

from mockllm.protocols.base import Address, Route
from mockllm.protocols.openai_environment import ENVIRONMENT

ADDRESS = Address(
    name="chat",
    title="OpenAI Chat Completions",
    package=__name__,
    routes=(
        Route("POST", "/v1/chat/completions", "generate"),
        Route("POST", "/chat/completions", "generate"),
        Route("POST", "/openai/deployments/{deployment}/chat/completions", "generate"),
        Route("POST", "/openai/v1/chat/completions", "generate"),
        Route("GET", "/v1/models", "models"),
        Route("GET", "/models", "models"),
        Route("GET", "/openai/models", "models"),
        Route("GET", "/openai/v1/models", "models"),
        *(
            Route("GET", f"{prefix}/models/{name}", "model")
            for prefix in ("/v1", "", "/openai", "/openai/v1")
            for name in ("{model}", "{owner}/{model}")
        ),
    ),
    paths=(re.compile(r"(?:/deployments/(?P<deployment>[^/]+))?/chat/completions$"),),
    base_path="/v1",
    env=ENVIRONMENT,
)
