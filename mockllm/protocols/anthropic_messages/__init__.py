"""Anthropic Messages.

https://docs.claude.com/en/api/messages and https://docs.claude.com/en/docs/build-with-claude/streaming

`request` (with `messages`) parses requests; `encoder` writes answers and `decoder` (with
`assembly`) reads them; `blocks` has what both sides share; `service` has errors, headers, the list
of models and token counts; `protocol` is the whole.
"""

from __future__ import annotations

import re

from mockllm.protocols.base import Address, Route, model_routes
from mockllm.protocols.records import Environment

API = "anthropic"

VERSION_HEADER = "anthropic-version"

ADDRESS = Address(
    name=API,
    title="Anthropic Messages",
    package=__name__,
    routes=(
        Route("POST", "/v1/messages", "generate"),
        Route("POST", "/messages", "generate"),
        Route("POST", "/v1/messages/count_tokens", "count_tokens"),
        Route("POST", "/messages/count_tokens", "count_tokens"),
        *model_routes("/v1", "", header=VERSION_HEADER),
    ),
    paths=(
        # OpenAI's Assistants have /threads/ID/messages
        re.compile(r"^(?!.*/threads/).*/messages$"),
        re.compile(r"/publishers/anthropic/models/(?P<model>[^/:]+):(?:streamR|r)awPredict$"),
    ),
    base_path="",  # the SDKs append /v1/messages to ANTHROPIC_BASE_URL
    env=Environment(
        base_urls=(("ANTHROPIC_BASE_URL", ""),),
        keys=("ANTHROPIC_API_KEY",),
        other_keys=("ANTHROPIC_AUTH_TOKEN",),
    ),
    hosts=("api.anthropic.com",),
)
