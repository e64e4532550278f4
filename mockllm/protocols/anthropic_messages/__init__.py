"""Anthropic Messages.

https://docs.claude.com/en/api/messages and https://docs.claude.com/en/docs/build-with-claude/streaming

`request` (with `messages`) parses requests; `encoder` writes answers and `decoder` (with
`assembly`) reads them; `blocks` has what both sides share; `records` lists what the API cannot
express; `service` has errors, headers, the list of models and token counts.
"""

from __future__ import annotations

from mockllm.protocols.anthropic_messages import records
from mockllm.protocols.anthropic_messages.blocks import API, message_id
from mockllm.protocols.anthropic_messages.client import CLIENT
from mockllm.protocols.anthropic_messages.decoder import Decoder, decode_body
from mockllm.protocols.anthropic_messages.encoder import Encoder, encode_body
from mockllm.protocols.anthropic_messages.request import options, parse
from mockllm.protocols.anthropic_messages.service import (
    SERVICE_ERRORS,
    VERSION_HEADER,
    answer_headers,
    count_tokens,
    error_body,
    error_headers,
    guard,
    model,
    models,
)
from mockllm.protocols.base import Route, WireProtocol

__all__ = ["LOSSES", "PROTOCOL", "Decoder", "Encoder", "decode_body", "encode_body", "project"]


PROTOCOL = WireProtocol(
    name=API,
    title="Anthropic Messages",
    routes=(
        Route("POST", "/v1/messages", "generate"),
        Route("POST", "/messages", "generate"),
        Route("POST", "/v1/messages/count_tokens", "count_tokens"),
        Route("POST", "/messages/count_tokens", "count_tokens"),
        Route("GET", "/v1/models", "models", header=VERSION_HEADER),
        Route("GET", "/models", "models", header=VERSION_HEADER),
        *(
            Route("GET", f"{prefix}/models/{name}", "model", header=VERSION_HEADER)
            for prefix in ("/v1", "")
            for name in ("{model}", "{owner}/{model}")
        ),
    ),
    # The SDKs append /v1/messages to ANTHROPIC_BASE_URL.
    base_path="",
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=message_id,
    error_body=error_body,
    error_headers=error_headers,
    service_errors=SERVICE_ERRORS,
    headers=answer_headers,
    project=records.project,
    client=CLIENT,
    detect=records.DETECTION,
    events=records.EVENTS,
    fields=records.FIELDS,
    normalize=records.NORMALISATION,
    env=records.ENVIRONMENT,
    zero_arguments="",
    finish_values={
        "stop": ("end_turn",),
        "tool_calls": ("tool_use",),
        "length": ("max_tokens",),
    },
    losses=records.LOSSES,
    lookups={"models": models, "model": model, "count_tokens": count_tokens},
    guard=guard,
    call_prefix="toolu_",
)
