"""Responses as a whole."""

from __future__ import annotations

from mockllm.protocols.base import Reply, WireProtocol
from mockllm.protocols.openai_common import (
    SERVICE_ERRORS,
    answer_headers,
    error_body,
    error_headers,
)
from mockllm.protocols.openai_responses import ADDRESS, records
from mockllm.protocols.openai_responses.client import CLIENT
from mockllm.protocols.openai_responses.decoder import Decoder, decode_body
from mockllm.protocols.openai_responses.encoder import Encoder, encode_body
from mockllm.protocols.openai_responses.objects import numbered, response_id
from mockllm.protocols.openai_responses.request import options, parse
from mockllm.protocols.openai_responses.routes import (
    FALLBACK_ROUTES,
    STORED_ANSWERS,
    deleted_answer,
    listed_input,
    stored_answer,
)

__all__ = ["PROTOCOL"]


def _answer_id(reply: Reply) -> str:
    return response_id(reply.token)


PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=_answer_id,
    error_body=error_body,
    error_headers=error_headers,
    service_errors=SERVICE_ERRORS,
    numbered=numbered,
    headers=answer_headers,
    project=records.project,
    client=CLIENT,
    detect=records.DETECTION,
    events=records.EVENTS,
    fields=records.FIELDS,
    normalize=records.NORMALISATION,
    fallback_routes=FALLBACK_ROUTES,
    stored=STORED_ANSWERS,
    zero_arguments="{}",
    finish_values={
        "stop": ("completed",),
        "tool_calls": ("completed",),
        "refusal": ("completed",),
        "length": ("max_output_tokens", "incomplete"),
        "content_filter": ("incomplete",),
    },
    losses=records.LOSSES,
    lookups={
        "response": stored_answer,
        "delete_response": deleted_answer,
        "input_items": listed_input,
    },
)
