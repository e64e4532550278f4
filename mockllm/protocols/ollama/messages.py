"""The history in a request of `/api/chat`: to neutral messages, with validation.

https://github.com/ollama/ollama/blob/main/docs/api.md#parameters-1
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace

from mockllm.core.request import CallEcho, Message
from mockllm.core.text import display
from mockllm.errors import RequestError
from mockllm.protocols.base import dumps
from mockllm.protocols.ollama.errors import CHECKS, TEXT
from mockllm.protocols.records import Fields
from mockllm.protocols.values import array, mapping, objects, sent_as_base64, sent_files, string


def read_messages(value: object) -> list[Message]:
    """The messages in order; those of other roles are ignored. A result without an id belongs to
    the first call of its tool that has none yet, and without a name to the first call of all."""
    out: list[Message] = []
    waiting: list[CallEcho] = []
    for item in objects(value):
        message = _message(item)
        if message is None:
            continue
        waiting += message.calls
        out.append(_identified(message, waiting) if message.role == "tool" else message)
    return out


def _message(value: Fields) -> Message | None:
    content = string(value.get("content"))
    match string(value.get("role")).lower():
        case "system":
            return Message("system", content)
        case "user":
            images = array(value.get("images"))
            files = sent_files(sent_as_base64(image, "image/*") for image in images)
            return Message("user", content, files=files)
        case "assistant":
            return Message(
                "assistant", content, tuple(map(_echo, objects(value.get("tool_calls"))))
            )
        case "tool":
            id, name = string(value.get("tool_call_id")), string(value.get("tool_name"))
            return Message("tool", content, call_id=id, name=name)
    return None


def _echo(call: Fields) -> CallEcho:
    function = mapping(call.get("function"))
    given = function.get("arguments")
    arguments = given if isinstance(given, str) else dumps({} if given is None else given)
    return CallEcho(string(call.get("id")), string(function.get("name")), arguments)


def _identified(result: Message, waiting: list[CallEcho]) -> Message:
    """The result with the id and the name of its call, which waits no longer."""
    for call in waiting:
        same_id = not result.call_id or call.id in ("", result.call_id)
        if same_id and result.name in ("", call.name):
            waiting.remove(call)
            return replace(result, call_id=call.id, name=call.name)
    return result


# Validation


def check_image(where: str, value: object) -> None:
    """Raises unless a value is an image in base64."""
    TEXT(where, value)
    assert isinstance(value, str)
    try:
        base64.b64decode(value, validate=True)
    except ValueError:
        raise RequestError(f"illegal base64 data: {display(value[:40])}") from None


IMAGES = CHECKS.list_of(check_image, "[]api.ImageData")

_FUNCTION = CHECKS.fields(
    {},
    {
        "name": TEXT,
        "arguments": CHECKS.of_kind(Mapping, "api.ToolCallFunctionArguments"),
    },
)
_CALL = CHECKS.fields({}, {"id": TEXT, "function": _FUNCTION})
_MESSAGE = CHECKS.fields(
    {},
    {
        "role": TEXT,
        "content": TEXT,
        "thinking": TEXT,
        "images": IMAGES,
        "tool_calls": CHECKS.list_of(_CALL, "[]api.ToolCall"),
        "tool_name": TEXT,
        "tool_call_id": TEXT,
    },
)
MESSAGES = CHECKS.list_of(_MESSAGE, "[]api.Message")
