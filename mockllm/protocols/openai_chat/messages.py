"""The history of a Chat Completions request: messages, the calls in them, their results.

https://platform.openai.com/docs/api-reference/chat/create (`messages`)
"""

from __future__ import annotations

from typing import Any, Literal

from mockllm.core.request import CallEcho, Message
from mockllm.errors import RequestError
from mockllm.protocols.base import dumps
from mockllm.protocols.openai_common import check_tool, is_tool_name, text_of
from mockllm.protocols.openai_refusals import bad_value, empty_array, invalid_type, missing

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


def parse_messages(messages: object, strict: bool) -> tuple[Message, ...]:
    """The neutral messages of a body's `messages`."""
    if not isinstance(messages, list):
        if not strict:
            return ()
        raise (
            missing("messages")
            if messages is None
            else invalid_type("messages", "an array of objects", messages)
        )
    if strict and not messages:
        raise empty_array("messages")
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


def _message(message: dict[str, Any], i: int, strict: bool) -> Message | None:
    wire_role = message.get("role")
    role = _ROLES.get(wire_role) if isinstance(wire_role, str) else None
    content = message.get("content")
    if role is None:
        if strict:
            raise _bad_role(wire_role, f"messages[{i}].role")
        return None
    if type(content) is str:  # the ordinary case first: nothing to check, no path to build
        text = content
    else:
        text = _content(message, role, i, strict) if content or strict else ""
    if role == "assistant":
        return Message(role, text, _echoes(message, i, strict))
    if role == "tool":
        call_id, name = message.get("tool_call_id"), message.get("name")
        if strict:
            _check_result(wire_role, call_id, name, i)
        return Message(
            role,
            text,
            call_id=call_id if isinstance(call_id, str) else "",
            name=name if isinstance(name, str) else "",
        )
    return Message(role, text)


def _bad_role(role: object, where: str) -> RequestError:
    if role is None:
        return missing(where)
    if not isinstance(role, str):
        return invalid_type(where, "a string", role)
    return bad_value(where, role, tuple(_ROLES))


def _content(message: dict[str, Any], role: str, i: int, strict: bool) -> str:
    content = message.get("content")
    if content is None and role == "assistant" and any(map(message.get, _INSTEAD)):
        return ""
    where = f"messages[{i}].content"
    if strict:
        _check_content(role, content, where)
    return text_of(content, where, strict)


def _check_content(role: str, content: object, where: str) -> None:
    if content is None:
        raise RequestError(
            f"Invalid value for '{where}': expected a string, got null.",
            param=where,
            code="invalid_type",
        )
    if not isinstance(content, list):
        return  # text_of refuses it
    if not content:
        raise empty_array(where)
    known = _PARTS.get(role, ("text",))
    for k, part in enumerate(content):
        type_ = part.get("type") if isinstance(part, dict) else None
        if isinstance(type_, str) and type_ not in known:
            raise bad_value(f"{where}[{k}].type", type_, known)


def _check_result(role: object, call_id: object, name: object, i: int) -> None:
    where, value = f"messages[{i}].tool_call_id", call_id
    if role == "function":
        where, value = f"messages[{i}].name", name
    if value is None:
        raise missing(where)
    if not isinstance(value, str):
        raise invalid_type(where, "a string", value)


def _echoes(message: dict[str, Any], i: int, strict: bool) -> tuple[CallEcho, ...]:
    calls = message.get("tool_calls")
    legacy = message.get("function_call")
    if calls is None and legacy is None:
        return ()
    echoes = []
    if isinstance(calls, list):
        if strict and not calls:
            raise empty_array(f"messages[{i}].tool_calls")
        for k, call in enumerate(calls):
            echo = _echo(call, i, k, strict)
            if echo is not None:
                echoes.append(echo)
    elif strict and calls is not None:
        raise invalid_type(f"messages[{i}].tool_calls", "an array of objects", calls)
    if isinstance(legacy, dict):
        echoes.append(_legacy(legacy, i, strict))
    return tuple(echoes)


def _echo(call: object, message: int, k: int, strict: bool) -> CallEcho | None:
    if not isinstance(call, dict):
        if strict:
            raise invalid_type(_call_path(message, k), "an object", call)
        return None
    key = "custom" if call.get("type") == "custom" else "function"
    function, id = call.get(key), call.get("id")
    if type(id) is not str or type(function) is not dict:
        if strict:
            raise _bad_call(id, function, key, _call_path(message, k))
        id = id if isinstance(id, str) else ""
        function = function if isinstance(function, dict) else {}
    name = function.get("name")
    arguments = function.get("input" if key == "custom" else "arguments")
    if strict and (type(arguments) is not str or not is_tool_name(name)):
        _refuse_function(name, arguments, f"{_call_path(message, k)}.{key}")
    return CallEcho(id, name if isinstance(name, str) else "", _arguments(arguments))


def _call_path(message: int, k: int) -> str:
    return f"messages[{message}].tool_calls[{k}]"


def _bad_call(id: object, function: object, key: str, where: str) -> RequestError:
    if id is None:
        return missing(f"{where}.id")
    if not isinstance(id, str):
        return invalid_type(f"{where}.id", "a string", id)
    if function is None:
        return missing(f"{where}.{key}")
    return invalid_type(f"{where}.{key}", "an object", function)


def _refuse_function(name: object, arguments: object, where: str) -> None:
    check_tool(name, None, where)
    path = where + (".input" if where.endswith("custom") else ".arguments")
    raise missing(path) if arguments is None else invalid_type(path, "a string", arguments)


def _legacy(function: dict[str, Any], i: int, strict: bool) -> CallEcho:
    name, arguments = function.get("name"), function.get("arguments")
    if strict and (not isinstance(arguments, str) or not is_tool_name(name)):
        _refuse_function(name, arguments, f"messages[{i}].function_call")
    return CallEcho("", name if isinstance(name, str) else "", _arguments(arguments))


def _arguments(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else dumps(value)


def _check_results(messages: list[dict[str, Any]]) -> None:
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
