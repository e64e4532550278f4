"""Chat Completions requests: the body to the neutral request, with the service's validation.

https://platform.openai.com/docs/api-reference/chat/create

This runs for every request, so a valid body is read once, with type checks only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.request import CallEcho, Message, OfferedTool, Request, system_text
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.checks import Check
from mockllm.wire.protocols.openai_common import (
    BOOLEAN,
    CHECKS,
    OBJECT,
    OBJECTS,
    TEXT,
    bad_value,
    check_name,
    check_parts,
    check_tool,
    empty_array,
    files_of,
    invalid_type,
    is_tool_name,
    missing,
    offered_tool,
    output_schema,
    text_of,
)
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import array, mapping, string

_TIERS = {"flex": "flex", "priority": "priority", "fast": "priority", "scale": "scale"}
_CHOICES = ("none", "auto", "required")
_FORMS = ("function", "allowed_tools", "custom")
_MOST_CHOICES = 128  # `n` of the reference


@dataclass(frozen=True, slots=True)
class Options:
    """The parts of a request that the bytes of its answer depend on.

    Args:
        stream_usage: `stream_options.include_usage`.
        n: how many choices; all have the same content.
        obfuscation: whether chunks are padded, which `stream_options.include_obfuscation: false`
            turns off.
        service_tier: the tier that the answer names.
        forced: `tool_choice` names a function; OpenAI finishes such a call with `stop`.
    """

    stream_usage: bool = False
    n: int = 1
    obfuscation: bool = False
    service_tier: str = "default"
    forced: bool = False


def options(request: Request) -> Options:
    """The options for the encoder; never fails, whatever the body holds."""
    body = request.body
    stream = body.get("stream_options")
    if not isinstance(stream, dict):
        stream = {}
    n = body.get("n")
    tier = body.get("service_tier")
    choice = body.get("tool_choice")
    return Options(
        stream_usage=stream.get("include_usage") is True,
        n=min(max(n, 1), _MOST_CHOICES) if type(n) is int else 1,
        obfuscation=stream.get("include_obfuscation") is not False,
        service_tier=_TIERS.get(tier, "default") if isinstance(tier, str) else "default",
        forced=isinstance(choice, dict) and choice.get("type", "function") == "function",
    )


def parse(body: Fields, target: Target, strict: bool) -> Request:
    """The neutral request of a Chat Completions body.

    Args:
        target: `deployment` of Azure's path stands in for a missing `model`.
    """
    if not isinstance(body, dict):
        raise invalid_type("body", "an object", body)
    if strict:
        for key, value in body.items():
            check = _CHECKS.get(key)
            if check is not None and value is not None:
                check(key, value)
    model = body.get("model") or target.segments.get("deployment")
    if strict and (not model or not isinstance(model, str)):
        raise invalid_type("model", "a string", model) if model else missing("model")
    messages = _messages(body.get("messages"), strict)
    tools = _tools(body, strict)
    effort = body.get("reasoning_effort")
    return Request(
        api="chat",
        model=model if isinstance(model, str) else "",
        body=body,
        stream=body.get("stream") is True,
        messages=messages,
        system=system_text(messages),
        tools=tools,
        tool_choice=_tool_choice(body, tools, strict),
        output_schema=output_schema(
            body.get("response_format"), "response_format", strict, _SCHEMA, "json_schema"
        ),
        wants_reasoning=isinstance(effort, str) and effort != "none",
    )


def _tools(body: Fields, strict: bool) -> tuple[OfferedTool, ...]:
    tools, functions = body.get("tools"), body.get("functions")
    if tools is None and functions is None:
        return ()
    if strict and tools == []:
        raise empty_array("tools")
    offers = []
    for i, tool in enumerate(array(tools)):
        custom = isinstance(tool, dict) and tool.get("type") == "custom"
        function = tool.get("function") if type(tool) is dict else None
        if strict and type(function) is dict and tool.get("type") == "function":
            check_tool(function.get("name"), function.get("parameters"), f"tools[{i}].function")
        elif strict:
            _TOOLS[custom](f"tools[{i}]", tool)
        if isinstance(tool, dict):
            own = mapping(tool.get("custom" if custom else "function"))
            offers.append(offered_tool(own, custom=custom))
    for i, function in enumerate(array(functions)):
        if strict:
            _check_function(f"functions[{i}]", function)
        offers.append(offered_tool(mapping(function), custom=False))
    return tuple(offer for offer in offers if offer is not None)


def _check_function(where: str, function: Any) -> None:
    if function is None:
        raise missing(where)
    OBJECT(where, function)
    check_tool(function.get("name"), function.get("parameters"), where)


_FORM_OF_TOOL = CHECKS.one_of("function", "custom")
_TOOLS = tuple(
    CHECKS.fields({"type": _FORM_OF_TOOL, form: _check_function}) for form in ("function", "custom")
)
"""The checks of a function that is offered, and of a custom tool."""


def _tool_choice(body: Fields, tools: tuple[OfferedTool, ...], strict: bool) -> str:
    choice = body.get("tool_choice")
    legacy = choice is None
    if legacy:
        choice = body.get("function_call")
        if choice is None:
            return "auto"
    name = _choice_name(choice)
    if not strict:
        return name or "auto"
    if not tools:
        raise RequestError(
            "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are "
            "specified.",
            param="tool_choice",
        )
    if isinstance(choice, str):
        if choice not in _CHOICES:
            raise bad_value("tool_choice", choice, _CHOICES)
    elif not isinstance(choice, dict):
        raise invalid_type("tool_choice", "a string or an object", choice)
    else:
        if not legacy:
            _check_form(choice)
        _check_chosen(choice, name, tools)
    return name


def _check_form(choice: Json) -> None:
    """Refuses the objects of other APIs: `{"type": "function", "name": ...}` of Responses,
    `{"type": "tool", "name": ...}` and `{"type": "auto"}` of Anthropic Messages. The forms are
    those of `openai.types.chat.ChatCompletionToolChoiceOptionParam`."""
    form = choice.get("type")
    if form is None:
        raise missing("tool_choice.type")
    if form not in _FORMS:
        raise bad_value("tool_choice.type", str(form), _FORMS)
    if choice.get(form) is None:
        field = "mode" if form == "allowed_tools" else "name"
        raise missing(f"tool_choice.{form}.{field}")
    if not isinstance(choice[form], dict):
        raise invalid_type(f"tool_choice.{form}", "an object", choice[form])


def _check_chosen(choice: Json, name: str, tools: tuple[OfferedTool, ...]) -> None:
    """Refuses the name of a function that is missing, or of one that is not offered."""
    if not name:
        raise missing("tool_choice.function.name")
    if choice.get("type") != "allowed_tools" and all(tool.name != name for tool in tools):
        raise RequestError(
            f"Invalid value for 'tool_choice': no function named '{name}' was specified in the "
            "'tools' parameter.",
            param="tool_choice",
        )


def _choice_name(choice: object) -> str:
    if isinstance(choice, str):
        return choice
    if not isinstance(choice, dict):
        return ""
    if choice.get("type") == "allowed_tools":
        allowed = choice.get("allowed_tools")
        mode = allowed.get("mode") if isinstance(allowed, dict) else None
        return mode if mode in ("auto", "required") else "auto"
    kind = choice.get("type")
    inner = choice.get(kind, choice) if isinstance(kind, str) else choice
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else ""


# The history: messages, the calls in them, their results

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


def _messages(messages: object, strict: bool) -> tuple[Message, ...]:
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
    if type(content) is str and len(message) == 2 and role is not None and role != "tool":
        return Message(role, content)  # as most are: nothing to check, no path to build
    if role is None:
        if strict:
            _HAS_ROLE(f"messages[{i}]", message)
        return None
    if type(content) is str:
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


# All checks

_SCHEMA = CHECKS.fields({"json_schema": CHECKS.fields({"name": check_name}, {"schema": OBJECT})})


_CHECKS: dict[str, Check] = {
    "stream": BOOLEAN,
    "stream_options": OBJECT,
    "n": CHECKS.number(1, _MOST_CHOICES, whole=True),
    "temperature": CHECKS.number(0, 2),
    "top_p": CHECKS.number(0, 1),
    "presence_penalty": CHECKS.number(-2, 2),
    "frequency_penalty": CHECKS.number(-2, 2),
    "max_tokens": CHECKS.number(1, whole=True),
    "max_completion_tokens": CHECKS.number(1, whole=True),
    "seed": CHECKS.number(-(2**63), 2**63 - 1, whole=True),
    "logprobs": BOOLEAN,
    "top_logprobs": CHECKS.number(0, 20, whole=True),
    "parallel_tool_calls": BOOLEAN,
    "store": BOOLEAN,
    "user": TEXT,
    "service_tier": TEXT,
    "reasoning_effort": TEXT,
    "stop": CHECKS.of_kind((str, list), "a string or an array of strings"),
    "metadata": OBJECT,
    "logit_bias": OBJECT,
    "functions": OBJECTS,
    "tools": OBJECTS,
}
