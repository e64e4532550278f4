"""OpenAI Responses.

https://platform.openai.com/docs/api-reference/responses

`request` (with `input`) parses requests; `encoder` writes answers, whose output items
`layout` determines; `decoder` (with `assembly` and `items`) reads answers; `objects` and
`parts` have what both sides share; `protocol` is the whole.
"""

from __future__ import annotations

import re

from mockllm.wire.protocols.base import Address, Route, routes_below
from mockllm.wire.protocols.openai_environment import ENVIRONMENT, HOSTS

API = "responses"


# Azure has the same paths below /openai; clients with another base URL leave out /v1.
_BASES = ("/v1", "", "/openai/v1", "/openai")

ADDRESS = Address(
    name=API,
    title="OpenAI Responses",
    package=__name__,
    routes=(
        *routes_below(_BASES, Route("POST", "/responses", "generate")),
        *routes_below(
            _BASES,
            Route("GET", "/responses/{response_id}", "response"),
            Route("DELETE", "/responses/{response_id}", "delete_response"),
            Route("GET", "/responses/{response_id}/input_items", "input_items"),
            Route("POST", "/responses/{response_id}/cancel", "cancel_response"),
        ),
    ),
    paths=(re.compile(r"/responses$"),),
    base_path="/v1",
    env=ENVIRONMENT,
    hosts=HOSTS,
    provider="openai",
)
