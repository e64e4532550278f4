"""Chat Completions as a whole, with the list of its models."""

from __future__ import annotations

from typing import Any

from mockllm.errors import RequestError
from mockllm.protocols.base import EPOCH, Lookup, WireProtocol
from mockllm.protocols.openai_chat import ADDRESS, records
from mockllm.protocols.openai_chat.client import CLIENT
from mockllm.protocols.openai_chat.decoder import Decoder, decode_body
from mockllm.protocols.openai_chat.encoder import Encoder, encode_body
from mockllm.protocols.openai_chat.fallback import FALLBACK_ROUTES
from mockllm.protocols.openai_chat.fields import answer_id
from mockllm.protocols.openai_chat.joining import join
from mockllm.protocols.openai_chat.request import options, parse
from mockllm.protocols.openai_common import (
    SERVICE_ERRORS,
    answer_headers,
    error_body,
    error_headers,
)
from mockllm.protocols.service import looked_up_model

__all__ = ["PROTOCOL"]


def _model_object(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": EPOCH, "owned_by": "mockllm"}


def _models(lookup: Lookup) -> dict[str, Any]:
    return {"object": "list", "data": [_model_object(name) for name in lookup.models]}


def _model(lookup: Lookup) -> dict[str, Any]:
    name, served = looked_up_model(lookup)
    if not served:
        raise RequestError(
            f"The model '{name}' does not exist: no scenario answers for it. GET /v1/models lists "
            "those that are served.",
            status=404,
            param="model",
            code="model_not_found",
        )
    return _model_object(name)


PROTOCOL = WireProtocol(
    address=ADDRESS,
    parse=parse,
    options=options,
    encoder=Encoder,
    decoder=Decoder,
    encode_body=encode_body,
    decode_body=decode_body,
    answer_id=answer_id,
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
    fallback_routes=FALLBACK_ROUTES,
    zero_arguments="{}",
    finish_values={"refusal": ("stop",)},
    end_data="[DONE]",
    losses=records.LOSSES,
    lookups={"models": _models, "model": _model},
    join=join,
)
