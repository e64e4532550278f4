"""The errors of Realtime: events, which leave the session open.

https://platform.openai.com/docs/guides/realtime-conversations#error-handling
"""

from __future__ import annotations

from collections.abc import Mapping

from mockllm.core.errors import RequestError
from mockllm.core.events import StreamError
from mockllm.core.seeded import derive
from mockllm.wire.protocols import openai_common
from mockllm.wire.protocols.openai_common import error_of
from mockllm.wire.protocols.records import Fields, Json


def error_body(error: RequestError) -> Json:
    """The event of an error."""
    inner = {**openai_common.error_body(error)["error"], "event_id": None}
    id = "event_" + derive("error", error.message, error.code, length=21)
    return {"type": "error", "event_id": id, "error": inner}


def decode_error(body: Fields) -> StreamError | None:
    """The error in an event; None where there is none."""
    return error_of(body) if isinstance(body.get("error"), Mapping) else None


def missing_item(action: str, param: str, id: str) -> RequestError:
    """The error for an item that the session does not have."""
    return RequestError(
        f"Error {action}: the item with id '{id}' does not exist.",
        param=param,
        code=f"item_{param}_invalid_item_id",
    )


def active_response(id: str, *, known: bool) -> RequestError:
    """The error for an answer that is requested while another one is on its way.

    Args:
        known: whether the client knows of that one, since it asked for it.
    """
    return RequestError(
        f"Conversation already has an active response in progress: {id}. Wait until the response "
        "is finished before creating a new one.",
        code="conversation_already_has_active_response",
        mistake="answer-on-its-way" if known else "",
    )


NOTHING_TO_CANCEL = RequestError(
    "Cancellation failed: no active response found", code="response_cancel_not_active"
)

NOT_SPOKEN = RequestError(
    "Only model output audio messages can be truncated",
    param="item_id",
    code="unsupported_content_type",
)


def empty_buffer(milliseconds: float) -> RequestError:
    """The error for the end of a turn in which nearly nothing was heard."""
    return RequestError(
        "Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, "
        f"but buffer only has {milliseconds:.2f}ms of audio.",
        code="input_audio_buffer_commit_empty",
    )


EXPIRED = RequestError(
    "Your session hit the maximum duration of 60 minutes.", code="session_expired"
)

OLD_SHAPE = RequestError(
    "The Realtime Beta API is no longer supported. Please use /v1/realtime for the GA API.",
    code="beta_api_shape_disabled",
)

NO_MODEL = RequestError("You must provide a model parameter.", param="model", code="missing_model")
