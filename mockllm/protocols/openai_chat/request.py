"""Chat Completions requests: the body to the neutral request, with the service's validation.

https://platform.openai.com/docs/api-reference/chat/create

This runs for every request, so a valid body is read once, with type checks only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mockllm.core.request import OfferedTool, Request
from mockllm.core.target import Target
from mockllm.errors import RequestError
from mockllm.protocols.openai_chat.messages import parse_messages
from mockllm.protocols.openai_common import check_tool, grammar_of
from mockllm.protocols.openai_refusals import (
    Check,
    bad_value,
    empty_array,
    invalid_type,
    missing,
    number,
    of_kind,
)

_TIERS = {"flex": "flex", "priority": "priority", "fast": "priority", "scale": "scale"}
_CHOICES = ("none", "auto", "required")
_FORMS = ("function", "allowed_tools", "custom")
_MOST_CHOICES = 128


@dataclass(frozen=True, slots=True)
class Options:
    """The parts of a request that the bytes of its answer depend on.

    Args:
        stream_usage: `stream_options.include_usage`.
        n: how many choices; all have the same content.
        obfuscation: `stream_options.include_obfuscation`. The service pads its chunks by default;
            mockllm does so only if the request sets it, to keep streams readable.
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
        obfuscation=stream.get("include_obfuscation") is True,
        service_tier=_TIERS.get(tier, "default") if isinstance(tier, str) else "default",
        forced=isinstance(choice, dict) and choice.get("type", "function") == "function",
    )


def parse(body: Mapping[str, Any], target: Target, strict: bool) -> Request:
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
    messages = parse_messages(body.get("messages"), strict)
    tools = _tools(body, strict)
    effort = body.get("reasoning_effort")
    return Request(
        api="chat",
        model=model if isinstance(model, str) else "",
        body=body,
        stream=body.get("stream") is True,
        messages=messages,
        system="\n".join([m.text for m in messages if m.role == "system"]),
        tools=tools,
        tool_choice=_tool_choice(body, tools, strict),
        output_schema=_output_schema(body.get("response_format"), strict),
        wants_reasoning=isinstance(effort, str) and effort != "none",
    )


def _tools(body: dict[str, Any], strict: bool) -> tuple[OfferedTool, ...]:
    tools, functions = body.get("tools"), body.get("functions")
    if tools is None and functions is None:
        return ()
    if strict and tools is not None and not isinstance(tools, list):
        raise invalid_type("tools", "an array of objects", tools)
    if strict and tools == []:
        raise empty_array("tools")
    offered = []
    for i, tool in enumerate(tools if isinstance(tools, list) else ()):
        if isinstance(tool, dict):
            key = "custom" if tool.get("type") == "custom" else "function"
            if strict and tool.get("type") != key:
                raise _bad_tool_type(tool.get("type"), f"tools[{i}].type")
            offer = _tool(tool.get(key), f"tools[{i}].{key}", strict)
            if offer is not None:
                offered.append(offer)
        elif strict:
            raise invalid_type(f"tools[{i}]", "an object", tool)
    for i, function in enumerate(functions if isinstance(functions, list) else ()):
        offer = _tool(function, f"functions[{i}]", strict)
        if offer is not None:
            offered.append(offer)
    return tuple(offered)


def _bad_tool_type(type_: object, where: str) -> RequestError:
    if type_ is None:
        return missing(where)
    return bad_value(where, str(type_), ("function", "custom"))


def _tool(function: object, where: str, strict: bool) -> OfferedTool | None:
    if not isinstance(function, dict):
        if strict:
            raise missing(where) if function is None else invalid_type(where, "an object", function)
        return None
    name, parameters = function.get("name"), function.get("parameters")
    if strict:
        check_tool(name, parameters, where)
    elif not isinstance(name, str):
        return None
    description = function.get("description")
    return OfferedTool(
        str(name),
        description if isinstance(description, str) else "",
        parameters if isinstance(parameters, dict) else {},
        custom=where.endswith("custom"),
        grammar=grammar_of(function.get("format")),
    )


def _tool_choice(body: dict[str, Any], tools: tuple[OfferedTool, ...], strict: bool) -> str:
    choice = body.get("tool_choice")
    legacy = choice is None
    if legacy:
        choice = body.get("function_call")
        if choice is None:
            return "auto"
    name = _chosen(choice)
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


def _check_form(choice: dict[str, Any]) -> None:
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


def _check_chosen(choice: dict[str, Any], name: str, tools: tuple[OfferedTool, ...]) -> None:
    """Refuses the name of a function that is missing, or of one that is not offered."""
    if not name:
        raise missing("tool_choice.function.name")
    if choice.get("type") != "allowed_tools" and all(tool.name != name for tool in tools):
        raise RequestError(
            f"Invalid value for 'tool_choice': no function named '{name}' was specified in the "
            "'tools' parameter.",
            param="tool_choice",
        )


def _chosen(choice: object) -> str:
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


def _output_schema(format_: object, strict: bool) -> Mapping[str, Any] | None:
    """The schema in `response_format`; {} for any JSON object, None for text."""
    if format_ is None:
        return None
    if not isinstance(format_, dict):
        if strict:
            raise invalid_type("response_format", "an object", format_)
        return None
    match format_.get("type"):
        case "json_object":
            return {}
        case "json_schema":
            return _named_schema(format_.get("json_schema"), strict)
        case "text":
            return None
        case other if strict:
            where = "response_format.type"
            raise (
                missing(where)
                if other is None
                else bad_value(where, str(other), ("json_object", "json_schema", "text"))
            )
    return None


def _named_schema(named: object, strict: bool) -> Mapping[str, Any]:
    where = "response_format.json_schema"
    if not isinstance(named, dict):
        if strict:
            raise missing(where) if named is None else invalid_type(where, "an object", named)
        return {}
    schema = named.get("schema")
    if strict:
        check_tool(named.get("name"), None, where)
        if schema is not None and not isinstance(schema, dict):
            raise invalid_type(f"{where}.schema", "an object", schema)
    return schema if isinstance(schema, dict) else {}


_boolean = of_kind(bool, "a boolean")
_string = of_kind(str, "a string")
_object = of_kind(dict, "an object")

_CHECKS: dict[str, Check] = {
    "stream": _boolean,
    "stream_options": _object,
    "n": number(1, _MOST_CHOICES, whole=True),
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "max_tokens": number(1, whole=True),
    "max_completion_tokens": number(1, whole=True),
    "seed": number(-(2**63), 2**63 - 1, whole=True),
    "logprobs": _boolean,
    "top_logprobs": number(0, 20, whole=True),
    "parallel_tool_calls": _boolean,
    "store": _boolean,
    "user": _string,
    "service_tier": _string,
    "reasoning_effort": _string,
    "stop": of_kind((str, list), "a string or an array of strings"),
    "metadata": _object,
    "logit_bias": _object,
    "functions": of_kind(list, "an array of objects"),
}
