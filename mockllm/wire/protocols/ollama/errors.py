"""Ollama's errors, `{"error": "..."}` in answers and in streams, and the headers of its answers.

https://github.com/ollama/ollama/blob/main/docs/errors.mdx
"""

from __future__ import annotations

from collections.abc import Mapping

from mockllm.core.errors import RequestError
from mockllm.core.events import StreamError
from mockllm.wire.protocols.base import Reply, retry_header
from mockllm.wire.protocols.checks import Checks
from mockllm.wire.protocols.records import Fields, Json, service_errors
from mockllm.wire.protocols.values import string

SERVICE_ERRORS = service_errors(
    StreamError("server busy, please try again. maximum pending requests exceeded"),
    StreamError("too many requests"),
    StreamError("an error was encountered while running the model: unexpected EOF"),
)
"""The errors that do not depend on the request."""


def error_body(error: RequestError) -> Json:
    """An error as `{"error": message}`; Ollama has neither types nor codes."""
    return {"error": error.message}


def error_of(value: Fields) -> StreamError | None:
    """The error in an object or a body; None where it has none. Gateways send one with fields."""
    error = value.get("error")
    if isinstance(error, Mapping):
        return StreamError(string(error.get("message")))
    return None if error is None else StreamError(string(error))


def error_headers(seed: str, error: RequestError) -> dict[str, str]:
    """The headers of an error answer."""
    return {"content-type": _JSON, **retry_header(error.retry_after)}


_JSON = "application/json; charset=utf-8"


def answer_headers(reply: Reply, stream: bool) -> dict[str, str]:
    """The headers of a successful answer."""
    return {"content-type": "application/x-ndjson" if stream else _JSON}


# Errors of requests, in the words of Go's `encoding/json`


def _go_kind(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _wrong_type(where: str, expected: str, got: object) -> RequestError:
    structure, dot, _ = where.partition(".")
    place = f"Go struct field {where}" if dot else "Go value"
    kind = expected if dot else f"api.{structure}"
    return RequestError(f"json: cannot unmarshal {_go_kind(got)} into {place} of type {kind}")


CHECKS = Checks(
    _wrong_type,
    a_string="string",
    an_object="map[string]interface {}",
    an_array="[]interface {}",
    an_integer="int",
    missing=lambda where: RequestError(f"{where.rpartition('.')[2]} is required"),
    item="{0}",
)
TEXT, OBJECT = CHECKS.text, CHECKS.mapping
BOOLEAN = CHECKS.of_kind(bool, "bool")
