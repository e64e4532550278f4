"""Parses the body of a request."""

from __future__ import annotations

import json
from typing import Any

from mockllm.errors import RequestError

__all__ = ["parse_object"]


def parse_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body.

    Raises:
        RequestError: it is not JSON, with the location in the message; or it is not an object.
    """
    try:
        value = json.loads(body)
        if isinstance(value, dict):
            return value
        where = f"it is {type(value).__name__!r}, not an object"
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}: {error.msg}"
    except UnicodeDecodeError as error:
        where = f"byte {error.start} is not UTF-8"
    except RecursionError:
        where = "it is nested too deeply"
    raise RequestError(
        f"We could not parse the JSON body of your request ({where}). The API expects a JSON "
        "object, sent as application/json.",
        code="invalid_json",
    )
