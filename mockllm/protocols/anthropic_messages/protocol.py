"""Anthropic Messages as a whole."""

from __future__ import annotations

from mockllm.protocols.anthropic_messages import ADDRESS, records
from mockllm.protocols.anthropic_messages.blocks import message_id
from mockllm.protocols.anthropic_messages.client import CLIENT
from mockllm.protocols.anthropic_messages.decoder import Decoder, decode_body
from mockllm.protocols.anthropic_messages.encoder import Encoder, encode_body
from mockllm.protocols.anthropic_messages.request import options, parse
from mockllm.protocols.anthropic_messages.service import (
    SERVICE_ERRORS,
    answer_headers,
    count_tokens,
    error_body,
    error_headers,
    guard,
    model,
    models,
)
from mockllm.protocols.base import WireProtocol

__all__ = ["PROTOCOL"]


PROTOCOL = WireProtocol(
    address=ADDRESS,
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
