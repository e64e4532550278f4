"""Anthropic Messages.

https://docs.claude.com/en/api/messages and https://docs.claude.com/en/docs/build-with-claude/streaming

`request` (with `messages`) parses requests; `encoder` writes answers and `decoder` (with
`assembly`) reads them; `blocks` has what both sides share; `service` has errors, headers, the list
of models and token counts, `bedrock` what differs on Amazon Bedrock; `protocol` is the whole.
"""

from __future__ import annotations

import re

from mockllm.wire.protocols.base import Address, Route, model_routes, routes_below
from mockllm.wire.protocols.records import Environment

API = "anthropic"

VERSION_HEADER = "anthropic-version"

_ACTIONS = "invoke|invoke-with-response-stream"
"""Of Amazon Bedrock, where the models of Anthropic have the bodies of this API."""

# https://docs.aws.amazon.com/bedrock/latest/userguide/models-supported.html
_VENDORS = (
    *("ai21", "amazon", "cohere", "deepseek", "google", "luma", "meta", "minimax", "mistral"),
    *("moonshot", "moonshotai", "nvidia", "openai", "qwen", "stability", "twelvelabs", "writer"),
    "zai",
)
_OTHER_VENDORS = re.compile(rf"(?:[a-z-]+\.)?(?:{'|'.join(_VENDORS)})\.")
"""The beginnings of names of models on Bedrock whose bodies are those of another vendor; before the
vendor may stand a region."""

ADDRESS = Address(
    name=API,
    title="Anthropic Messages",
    package=__name__,
    routes=(
        Route("POST", "/v1/messages", "generate"),
        Route("POST", "/messages", "generate"),
        Route("POST", "/v1/messages/count_tokens", "count_tokens"),
        Route("POST", "/messages/count_tokens", "count_tokens"),
        *routes_below(
            ("/v1/messages/batches", "/messages/batches"),
            Route("POST", "", "create_batch"),
            Route("GET", "", "batches"),
            Route("GET", "/{batch_id}", "batch"),
            Route("POST", "/{batch_id}/cancel", "cancel_batch"),
            Route("DELETE", "/{batch_id}", "delete_batch"),
            Route("GET", "/{batch_id}/results", "batch_results"),
        ),
        *model_routes("/v1", "", header=VERSION_HEADER),
        # The ARN of an inference profile has a slash, which some clients quote and others do not.
        *(
            Route("POST", f"/model/{model}/{{action:{_ACTIONS}}}", "generate")
            for model in ("{model}", "{owner}/{model}")
        ),
        Route(
            "POST", "/publishers/anthropic/models/{model:count-tokens}:rawPredict", "count_tokens"
        ),
    ),
    paths=(
        # OpenAI's Assistants have /threads/ID/messages
        re.compile(r"^(?!.*/threads/).*/messages$"),
        re.compile(
            r"/publishers/anthropic/models/(?!count-tokens:)(?P<model>[^/:]+)"
            r":(?:streamR|r)awPredict$"
        ),
        re.compile(rf"/model/(?P<model>.+)/(?P<action>{_ACTIONS})$"),
    ),
    base_path="",  # the SDKs append /v1/messages to ANTHROPIC_BASE_URL
    env=Environment(
        base_urls=(("ANTHROPIC_BASE_URL", ""), ("ANTHROPIC_BEDROCK_BASE_URL", "")),
        keys=("ANTHROPIC_API_KEY",),
        other_keys=("ANTHROPIC_AUTH_TOKEN",),
        other_base_urls=("ANTHROPIC_API_BASE", "ANTHROPIC_API_URL"),
    ),
    hosts=("api.anthropic.com",),
    marks=(VERSION_HEADER,),
    other_models=_OTHER_VENDORS,
    provider="anthropic",
)
