"""How the Responses API keeps answers: `store`, `previous_response_id`, `/v1/responses/{id}`.

https://platform.openai.com/docs/guides/conversation-state
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.errors import RequestError
from mockllm.protocols.records import StoredAnswers

__all__ = ["STORED_ANSWERS"]

_PREFIX = "resp_"
_FIELD = "previous_response_id"


def _is_stored(body: Mapping[str, Any]) -> bool:
    return body.get("store") is not False


def _not_found(id: str) -> RequestError:
    return RequestError(f"Response with id '{id}' not found.", status=404, param="response_id")


def _previous_not_found(id: str) -> RequestError:
    if not id.startswith("resp"):
        return RequestError(
            f"Invalid '{_FIELD}': '{id}'. Expected an ID that begins with 'resp'.",
            param=_FIELD,
            code="invalid_value",
        )
    return RequestError(
        f"Previous response with id '{id}' not found. mockllm knows the ids of the answers that it "
        "gave from the scenarios it serves now.",
        param=_FIELD,
        code="previous_response_not_found",
    )


def _missing_result(id: str) -> RequestError:
    return RequestError(f"No tool output found for function call {id}.", param="input")


def _unknown_result(id: str) -> RequestError:
    return RequestError(
        f"No tool call found for function call output with call_id {id}.", param="input"
    )


STORED_ANSWERS = StoredAnswers(
    prefix=_PREFIX,
    segment="response_id",
    field=_FIELD,
    is_stored=_is_stored,
    not_found=_not_found,
    previous_not_found=_previous_not_found,
    missing_result=_missing_result,
    unknown_result=_unknown_result,
)
