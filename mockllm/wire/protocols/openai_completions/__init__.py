"""OpenAI's legacy Completions: a prompt in, a text out.

https://platform.openai.com/docs/api-reference/completions

`request` parses requests, whose texts `prompts` reads and writes; `encoder` writes answers,
`decoder` reads them; `fields` has what both sides share; `protocol` is the whole. `openai_common`
is shared with the other APIs of OpenAI. The list of models is served by Chat Completions.
"""

from __future__ import annotations

import re

from mockllm.wire.protocols.base import Address, Route
from mockllm.wire.protocols.openai_environment import ENVIRONMENT

API = "completions"

ADDRESS = Address(
    name=API,
    title="OpenAI Completions (legacy)",
    package=__name__,
    routes=tuple(
        Route("POST", f"{base}/completions", "generate")
        for base in ("/v1", "", "/openai/deployments/{deployment}", "/openai/v1")
    ),
    # Mistral's `/fim/completions` answers in the form of Chat Completions.
    paths=(re.compile(r"(?:/deployments/(?P<deployment>[^/]+))?(?<!/chat)(?<!/fim)/completions$"),),
    base_path="/v1",
    env=ENVIRONMENT,
    provider="openai",
    task="text_completion",
)
