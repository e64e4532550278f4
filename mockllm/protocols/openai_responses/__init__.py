"""OpenAI Responses.

https://platform.openai.com/docs/api-reference/responses

`request` (with `input` and `tools`) parses requests; `encoder` writes answers, whose output items
`layout` determines; `decoder` (with `assembly` and `items`) reads answers; `objects` and
`parts` have what both sides share; `losses` lists what the API cannot express.
"""

from __future__ import annotations

from typing import Any

from mockllm.errors import RequestError
from mockllm.protocols.base import Lookup, Reply, Route, WireProtocol
from mockllm.protocols.openai_common import (
    SERVICE_ERRORS,
    answer_headers,
    error_body,
    error_headers,
)
from mockllm.protocols.openai_responses.client import CLIENT
from mockllm.protocols.openai_responses.decoder import Decoder, decode_body
from mockllm.protocols.openai_responses.detect import DETECTION
from mockllm.protocols.openai_responses.encoder import Encoder, encode_body
from mockllm.protocols.openai_responses.env import ENVIRONMENT
from mockllm.protocols.openai_responses.events import EVENTS, FIELDS
from mockllm.protocols.openai_responses.fallback import FALLBACK_ROUTES
from mockllm.protocols.openai_responses.input import deleted, input_items
from mockllm.protocols.openai_responses.losses import LOSSES, project
from mockllm.protocols.openai_responses.normalize import NORMALISATION
from mockllm.protocols.openai_responses.objects import API, item_of, numbered, response_id, token_of
from mockllm.protocols.openai_responses.request import options, parse
from mockllm.protocols.openai_responses.stored import STORED_ANSWERS

__all__ = [
    "PROTOCOL",
    "Decoder",
    "Encoder",
    "deleted",
    "encode_body",
    "input_items",
    "item_of",
    "project",
    "token_of",
]


def _stored(lookup: Lookup) -> dict[str, Any]:
    if lookup.target.query.get("stream") == "true":
        raise RequestError(
            "Only responses that run in the background can be streamed again, and mockllm has "
            "none: leave out 'stream' to get the whole response.",
            param="stream",
        )
    return dict(lookup.answer)


def _deleted(lookup: Lookup) -> dict[str, Any]:
    return deleted(lookup.target.segments["response_id"])


_MOST_DIGITS = 9
"""Of a number in a query. Python reads at most 4,300."""


def _input_items(lookup: Lookup) -> dict[str, Any]:
    id = lookup.target.segments["response_id"]
    limit = lookup.target.query.get("limit", "20")
    if not limit.isdecimal() or len(limit) > _MOST_DIGITS or not 1 <= int(limit) <= 100:
        raise RequestError(
            f"Invalid 'limit': expected a whole number from 1 to 100, got '{limit}'.", param="limit"
        )
    return input_items(
        lookup.request,
        token_of(id) or id,
        order=lookup.target.query.get("order", "desc"),
        limit=int(limit),
        after=lookup.target.query.get("after"),
    )


def _answer_id(reply: Reply) -> str:
    return response_id(reply.token)


def _routes() -> tuple[Route, ...]:
    # Azure has the same paths below /openai; clients with another base URL leave out /v1.
    generate = ("/v1", "", "/openai/v1", "/openai")
    stored = "/{response_id}"
    return (
        *(Route("POST", f"{base}/responses", "generate") for base in generate),
        *(
            route
            for base in generate
            for route in (
                Route("GET", f"{base}/responses{stored}", "response"),
                Route("DELETE", f"{base}/responses{stored}", "delete_response"),
                Route("GET", f"{base}/responses{stored}/input_items", "input_items"),
            )
        ),
    )


PROTOCOL = WireProtocol(
    name=API,
    title="OpenAI Responses",
    routes=_routes(),
    base_path="/v1",
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
    project=project,
    client=CLIENT,
    detect=DETECTION,
    events=EVENTS,
    fields=FIELDS,
    normalize=NORMALISATION,
    fallback_routes=FALLBACK_ROUTES,
    stored=STORED_ANSWERS,
    env=ENVIRONMENT,
    zero_arguments="{}",
    finish_values={
        "stop": ("completed",),
        "tool_calls": ("completed",),
        "refusal": ("completed",),
        "length": ("max_output_tokens", "incomplete"),
        "content_filter": ("incomplete",),
    },
    losses=LOSSES,
    lookups={"response": _stored, "delete_response": _deleted, "input_items": _input_items},
)
