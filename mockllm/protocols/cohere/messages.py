"""The history in a request: to neutral messages, with validation.

https://docs.cohere.com/reference/chat#request.body.messages
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mockllm.core.request import CallEcho, Message
from mockllm.protocols.base import dumps
from mockllm.protocols.cohere.errors import CHECKS, TEXT, invalid, wrong_type
from mockllm.protocols.openai_common import files_of
from mockllm.protocols.records import Fields
from mockllm.protocols.values import array, mapping, objects, string


def read_messages(value: object) -> tuple[Message, ...]:
    """The messages in order; items that are no messages are left out."""
    messages = map(_message, objects(value))
    return tuple(message for message in messages if message is not None)


def _message(value: Fields) -> Message | None:
    text = _text_of(value.get("content"))
    match value.get("role"):
        case "user":
            return Message("user", text, files=files_of(value.get("content")))
        case "system" | "developer":
            return Message("system", text)
        case "assistant":
            plan = string(value.get("tool_plan"))
            return Message("assistant", plan + text, _calls(value.get("tool_calls")))
        case "tool":
            return Message("tool", text, call_id=string(value.get("tool_call_id")))
    return None


def _text_of(content: object) -> str:
    """The text of a content: a string, or parts, of which documents may hold any object."""
    return string(content) or "".join(map(_part_text, array(content)))


def _part_text(part: object) -> str:
    if not isinstance(part, Mapping):
        return string(part)
    if "document" not in part:
        return string(part.get("text"))
    document = part["document"]
    data = document.get("data", document) if isinstance(document, Mapping) else document
    return data if isinstance(data, str) else dumps(data)


def _calls(value: object) -> tuple[CallEcho, ...]:
    calls = []
    for call in objects(value):
        function = mapping(call.get("function"))
        name, arguments = string(function.get("name")), string(function.get("arguments"))
        calls.append(CallEcho(string(call.get("id")), name, arguments))
    return tuple(calls)


# Validation


def check_messages(where: str, value: object) -> None:
    """Raises for ill-formed messages, for results without a call, and for calls without a result
    if the history continues after them."""
    CHECKS.list_of(_check_message)(where, value)
    assert isinstance(value, list)
    if not value:
        raise invalid("messages must have at least one message.", where)
    _check_pairs(value)


def _check_message(where: str, value: Any) -> None:
    _HAS_ROLE(where, value)
    _ROLES[value["role"]](where, value)


def _check_content(where: str, value: object) -> None:
    if isinstance(value, str):
        return
    if not isinstance(value, list):
        raise wrong_type(where, "string or array", value)
    for i, part in enumerate(value):
        if not isinstance(part, str):
            _PART(f"{where}[{i}]", part)


_PART = CHECKS.fields(
    {"type": CHECKS.one_of("text", "thinking", "image_url", "document")},
    {"text": TEXT, "thinking": TEXT},
)
_CALL = CHECKS.fields({"id": TEXT, "function": CHECKS.fields({"name": TEXT}, {"arguments": TEXT})})
_SAID = {"content": _check_content}
_ROLES = {
    "user": CHECKS.fields(_SAID),
    "system": CHECKS.fields(_SAID),
    "developer": CHECKS.fields(_SAID),
    "assistant": CHECKS.fields(
        {}, {**_SAID, "tool_plan": TEXT, "tool_calls": CHECKS.list_of(_CALL)}
    ),
    "tool": CHECKS.fields({**_SAID, "tool_call_id": TEXT}),
}
"""The checks of messages, by their roles."""

_HAS_ROLE = CHECKS.fields({"role": CHECKS.one_of(*_ROLES)})


def _check_pairs(messages: list[Fields]) -> None:
    """Raises unless the results of an assistant message's calls directly follow that message."""
    waiting: dict[str, str] = {}
    for i, message in enumerate(messages):
        where = f"messages[{i}]"
        if message["role"] == "tool":
            id = message["tool_call_id"]
            if waiting.pop(id, None) is None:
                raise invalid(
                    f"{where} is the result of tool call {id!r}, which the assistant message "
                    "before it does not have, or which has a result already.",
                    where,
                )
            continue
        _check_answered(waiting)
        for k, call in enumerate(message.get("tool_calls") or ()):
            if message["role"] == "assistant":
                waiting[call["id"]] = f"{where}.tool_calls[{k}]"
    _check_answered(waiting)


def _check_answered(waiting: dict[str, str]) -> None:
    for id, where in waiting.items():
        raise invalid(f"{where}, tool call {id!r}, has no result in a tool message.", where)
