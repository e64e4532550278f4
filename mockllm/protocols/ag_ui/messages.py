"""The history in a request: to neutral messages, with validation.

https://docs.ag-ui.com/concepts/messages
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from mockllm.core.request import CallEcho, Message
from mockllm.protocols.ag_ui.errors import CHECKS, TEXT, impossible_history, wrong_type
from mockllm.protocols.ag_ui.objects import answer_of
from mockllm.protocols.records import Fields
from mockllm.protocols.values import array, objects, string


def read_messages(value: object) -> tuple[Message, ...]:
    """The messages in order; items of other roles, and items that are not messages, are ignored.
    Reasoning counts as a message of the model without text. Some clients put the result of a call
    directly after its message, in the middle of an answer with several messages. Messages of one
    answer of mockllm are therefore moved together, up to the next user message."""
    positions: dict[str, int] = {}
    numbered: list[tuple[int, Message]] = []
    for number, item in enumerate(array(value)):
        message = _message(item) if isinstance(item, Mapping) else None
        if message is None:
            continue
        if message.role == "user":
            positions.clear()
        answer = answer_of(item.get("id")) if message.role == "assistant" else None
        numbered.append((positions.setdefault(answer, number) if answer else number, message))
    return tuple(message for _, message in sorted(numbered, key=itemgetter(0)))


def _message(value: Fields) -> Message | None:
    content = _text_of(value.get("content"))
    match value.get("role"):
        case "user":
            return Message("user", content)
        case "system" | "developer":
            return Message("system", content)
        case "assistant":
            return Message("assistant", content, _calls(value.get("toolCalls")))
        case "reasoning":
            return Message("assistant")
        case "tool":
            error = string(value.get("error"))
            id = string(value.get("toolCallId"))
            return Message("tool", content or error, call_id=id, error=bool(error))
    return None


def _text_of(content: object) -> str:
    return string(content) or "".join(string(part.get("text")) for part in objects(content))


def _calls(value: object) -> tuple[CallEcho, ...]:
    calls = []
    for call in objects(value):
        function = call.get("function")
        if isinstance(function, Mapping):
            name, arguments = string(function.get("name")), string(function.get("arguments"))
            calls.append(CallEcho(string(call.get("id")), name, arguments))
    return tuple(calls)


# Validation


def check_messages(where: str, value: object) -> None:
    """Raises for ill-formed messages, for results without a call, and for calls without a result
    if the history continues after them."""
    CHECKS.list_of(_check_message)(where, value)
    assert isinstance(value, list)
    _check_pairs(value)


def _check_message(where: str, value: Any) -> None:
    _HAS_ROLE(where, value)
    _ROLES[value["role"]](where, value)


def _check_content(where: str, value: object) -> None:
    if not isinstance(value, (str, list)):
        raise wrong_type(where, "a string or an array of parts", value)
    if isinstance(value, list):
        CHECKS.list_of(_check_part)(where, value)


def _check_part(where: str, value: Any) -> None:
    _HAS_TYPE(where, value)
    if value["type"] == "text":
        CHECKS.fields({"text": TEXT})(where, value)


_HAS_TYPE = CHECKS.fields(
    {"type": CHECKS.one_of("text", "image", "audio", "video", "document", "binary")}
)
_FUNCTION = CHECKS.fields({"name": TEXT, "arguments": TEXT})
_CALL = CHECKS.fields({"id": TEXT, "function": _FUNCTION}, {"type": TEXT})
_ROLES = {
    role: CHECKS.fields({"id": TEXT, **required}, others)
    for role, required, others in (
        ("user", {"content": _check_content}, {}),
        ("assistant", {}, {"content": TEXT, "toolCalls": CHECKS.list_of(_CALL)}),
        ("tool", {"content": _check_content, "toolCallId": TEXT}, {"error": TEXT}),
        ("system", {"content": TEXT}, {}),
        ("developer", {"content": TEXT}, {}),
        ("reasoning", {"content": TEXT}, {"encryptedValue": TEXT}),
        ("activity", {"activityType": TEXT, "content": CHECKS.mapping}, {}),
    )
}
"""The checks of messages, by their roles: the fields that each must have, and may have."""

_HAS_ROLE = CHECKS.fields({"role": CHECKS.one_of(*_ROLES)})


def _check_pairs(messages: list[Fields]) -> None:
    waiting: dict[str, str] = {}
    called: set[str] = set()
    for i, message in enumerate(messages):
        where = f"messages[{i}]"
        if message["role"] == "assistant":
            for k, call in enumerate(message.get("toolCalls") or ()):
                waiting[call["id"]] = f"{where}.toolCalls[{k}]"
                called.add(call["id"])
        elif message["role"] == "tool":
            id = message["toolCallId"]
            if waiting.pop(id, None) is None:
                problem = "is answered twice" if id in called else "was never made"
                raise impossible_history(
                    f"{where} is the result of call {id!r}, which {problem}: each call of an "
                    "assistant message before it takes one result.",
                    f"{where}.toolCallId",
                )
        if message["role"] == "user":
            _check_answered(waiting)
    if messages and messages[-1]["role"] == "tool":
        _check_answered(waiting)


def _check_answered(waiting: dict[str, str]) -> None:
    for id, where in waiting.items():
        raise impossible_history(
            f"{where}, call {id!r}, has no result, yet the history goes on: send a tool message "
            "for every call of an answer.",
            where,
        )
