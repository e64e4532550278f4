"""The history of a Chat Completions request: messages, the calls in them, their results.

https://platform.openai.com/docs/api-reference/chat/create (`messages`)
"""

from __future__ import annotations

from typing import Any, Literal

from mockllm.core.request import CallEcho, Message
from mockllm.errors import RequestError
from mockllm.protocols.base import dumps
from mockllm.protocols.openai_common import (
    CHECKS,
    OBJECTS,
    TEXT,
    bad_value,
    check_name,
    check_parts,
    empty_array,
    files_of,
    invalid_type,
    is_tool_name,
    missing,
    text_of,
)
from mockllm.protocols.records import Fields, Json
from mockllm.protocols.values import array, mapping, string

_Role = Literal["system", "user", "assistant", "tool"]
_ROLES: dict[str, _Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_PARTS = {
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
}
_INSTEAD = ("tool_calls", "function_call", "refusal", "audio")

_HAS_ROLE = CHECKS.fields({"role": CHECKS.one_of(*_ROLES)})
_ANSWERS = {
    "tool": CHECKS.fields({"tool_call_id": TEXT}),
    "function": CHECKS.fields({"name": TEXT}),
}
_FUNCTION = CHECKS.fields({"name": check_name, "arguments": TEXT})
_CALLS = (
    CHECKS.fields({"id": TEXT, "function": _FUNCTION}),
    CHECKS.fields({"id": TEXT, "custom": CHECKS.fields({"name": check_name, "input": TEXT})}),
)
"""The checks of a call of a function, and of one of a custom tool."""


def parse_messages(messages: object, strict: bool) -> tuple[Message, ...]:
    """The neutral messages of a body's `messages`."""
    if strict:
        _check_list("messages", messages)
    if not isinstance(messages, list):
        return ()
    parsed = []
    for i, message in enumerate(messages):
        if isinstance(message, dict):
            neutral = _message(message, i, strict)
            if neutral is not None:
                parsed.append(neutral)
        elif strict:
            raise invalid_type(f"messages[{i}]", "an object", message)
    if strict:
        _check_results(messages)
    return tuple(parsed)


def _message(message: Json, i: int, strict: bool) -> Message | None:
    wire_role = message.get("role")
    role = _ROLES.get(wire_role) if isinstance(wire_role, str) else None
    content = message.get("content")
    if role is None:
        if strict:
            _HAS_ROLE(f"messages[{i}]", message)
        return None
    if type(content) is str:  # the ordinary case first: nothing to check, no path to build
        text = content
    else:
        if strict:
            _check_content(message, role, f"messages[{i}].content")
        text = text_of(content)
    if role == "assistant":
        return Message(role, text, _echoes(message, i, strict))
    if role == "tool":
        call_id, name = message.get("tool_call_id"), message.get("name")
        if strict and type(call_id if wire_role == "tool" else name) is not str:
            _ANSWERS[str(wire_role)](f"messages[{i}]", message)
        return Message(
            role,
            text,
            call_id=call_id if isinstance(call_id, str) else "",
            name=name if isinstance(name, str) else "",
        )
    return Message(role, text, files=files_of(content))


def _check_list(where: str, value: object) -> None:
    """Raises for what is no array, or an empty one."""
    if value is None:
        raise missing(where)
    OBJECTS(where, value)
    if not value:
        raise empty_array(where)


def _check_content(message: Json, role: str, where: str) -> None:
    content = message.get("content")
    if content is None and role == "assistant" and any(map(message.get, _INSTEAD)):
        return
    if content is None:
        raise RequestError(
            f"Invalid value for '{where}': expected a string, got null.",
            param=where,
            code="invalid_type",
        )
    if content == []:
        raise empty_array(where)
    known = _PARTS.get(role, ("text",))
    for k, part in enumerate(array(content)):
        type_ = part.get("type") if isinstance(part, dict) else None
        if isinstance(type_, str) and type_ not in known:
            raise bad_value(f"{where}[{k}].type", type_, known)
    check_parts(where, content)


def _echoes(message: Json, i: int, strict: bool) -> tuple[CallEcho, ...]:
    calls = message.get("tool_calls")
    legacy = message.get("function_call")
    if calls is None and legacy is None:
        return ()
    if strict and calls is not None:
        _check_list(f"messages[{i}].tool_calls", calls)
    echoes = []
    for k, call in enumerate(array(calls)):
        custom = isinstance(call, dict) and call.get("type") == "custom"
        if strict and not _is_plain(call):
            _CALLS[custom](f"messages[{i}].tool_calls[{k}]", call)
        if isinstance(call, dict):
            function = mapping(call.get("custom" if custom else "function"))
            echoes.append(_echo(call.get("id"), function, "input" if custom else "arguments"))
    if isinstance(legacy, dict):
        if strict:
            _FUNCTION(f"messages[{i}].function_call", legacy)
        echoes.append(_echo("", legacy, "arguments"))
    return tuple(echoes)


def _is_plain(call: Any) -> bool:
    """Whether a call is the valid one of a function, as most are: checks would build its path."""
    function = call.get("function") if type(call) is dict else None
    return (
        type(function) is dict
        and type(call.get("id")) is str
        and type(function.get("arguments")) is str
        and is_tool_name(function.get("name"))
        and call.get("type") != "custom"
    )


def _echo(id: object, function: Fields, field: str) -> CallEcho:
    return CallEcho(string(id), string(function.get("name")), _arguments(function.get(field)))


def _arguments(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else dumps(value)


def _check_results(messages: list[Json]) -> None:
    """Raises unless the results of an assistant message's calls directly follow that message.
    OpenAI answers 400 otherwise. Only the calls of the last assistant message count, so an id may
    be used again later."""
    called: set[str] = set()
    open_: dict[str, None] = {}  # a set that keeps its order
    caller = 0
    for i, message in enumerate(messages):
        if message["role"] == "tool":
            id = message["tool_call_id"]
            if id not in called:
                raise RequestError(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceding message with 'tool_calls'. No call there has the "
                    f"tool_call_id '{id}'.",
                    param=f"messages[{i}].role",
                )
            open_.pop(id, None)
            continue
        if open_:
            break
        if called:
            called = set()
        calls = message.get("tool_calls")
        if calls and message["role"] == "assistant":
            open_ = {call["id"]: None for call in calls}
            called, caller = set(open_), i
    if open_:
        raise RequestError(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(open_),
            param=f"messages[{caller}].role",
        )
