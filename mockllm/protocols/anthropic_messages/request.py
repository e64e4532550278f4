"""Requests of the Messages API: the body to the neutral request, with the service's validation.

https://docs.claude.com/en/api/messages

Errors have the service's messages. Only pure functions may live here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from mockllm.core.request import Message, OfferedTool, Request
from mockllm.core.target import Target
from mockllm.errors import RequestError
from mockllm.protocols.anthropic_messages import API
from mockllm.protocols.anthropic_messages.blocks import UNTHREADED
from mockllm.protocols.anthropic_messages.messages import (
    check_messages,
    messages,
    refused,
    text_of,
)
from mockllm.protocols.values import mapping, string

_Body = Mapping[str, Any]


def parse(body: Mapping[str, Any], target: Target, strict: bool) -> Request:
    """The neutral request of a body."""
    if body.get("thread") is not None:
        raise RequestError(
            "thread: messages are not kept here, as which turn is due is read from the history; "
            "send all of it (`thread=False` in a tool runner)",
            param="thread",
            code=UNTHREADED,
        )
    # On Vertex AI only the path has the model.
    model = string(body.get("model")) or target.segments.get("model", "")
    if strict:
        _check({**body, "model": model} if model else body)
    history = messages(body.get("messages"))
    system = text_of(body.get("system"))
    if system:
        history.insert(0, Message("system", system))
    return Request(
        API,
        model,
        body,
        body.get("stream") is True,
        tuple(history),
        "\n".join([message.text for message in history if message.role == "system"]),
        _offered(body.get("tools")),
        _tool_choice(mapping(body.get("tool_choice"))),
        output_schema=_output_schema(body),
        wants_reasoning=mapping(body.get("thinking")).get("type", "disabled") != "disabled",
    )


def options(request: Request) -> Hashable:
    """The options for the encoder: none, as the bytes depend on nothing but the model."""
    return None


# Tools that Anthropic defines have versioned types; the client runs these of them itself.
_CLIENT_RUN = re.compile(r"(?:bash|text_editor|computer|memory|custom)(?:_|\Z)")


def _offered(value: object) -> tuple[OfferedTool, ...]:
    """The tools that the client runs itself, without those that the service hosts."""
    tools = []
    for offer in value if isinstance(value, list) else ():
        tool = mapping(offer)
        name, kind = tool.get("name"), tool.get("type") or "custom"
        if isinstance(name, str) and isinstance(kind, str) and _CLIENT_RUN.match(kind):
            description, schema = string(tool.get("description")), mapping(tool.get("input_schema"))
            tools.append(OfferedTool(name, description, schema))
    return tuple(tools)


def _tool_choice(choice: Mapping[str, Any]) -> str:
    match choice.get("type"):
        case "any":
            return "required"
        case "none":
            return "none"
        case "tool":
            return string(choice.get("name")) or "auto"
    return "auto"


def _output_schema(body: _Body) -> Mapping[str, Any] | None:
    # `output_format` is the name of the field in the beta version.
    for format in (mapping(body.get("output_config")).get("format"), body.get("output_format")):
        if isinstance(format, Mapping) and format.get("type") == "json_schema":
            return mapping(format.get("schema"))
    return None


# Refusals

_Check = Callable[[str, Any], None]


def _of_kind(type_: type | tuple[type, ...], type_name: str) -> _Check:
    def check(where: str, value: object) -> None:
        if not isinstance(value, type_) or (isinstance(value, bool) and type_ is not bool):
            raise refused(where, f"Input should be a valid {type_name}")

    return check


def _number(low: float, high: float | None = None, *, whole: bool = False) -> _Check:
    kind = _of_kind(int, "integer") if whole else _of_kind((int, float), "number")

    def check(where: str, value: Any) -> None:
        kind(where, value)
        if value < low:
            raise refused(where, f"Input should be greater than or equal to {low:g}")
        if high is not None and not value <= high:
            raise refused(where, f"Input should be less than or equal to {high:g}")

    return check


_DICTIONARY = _of_kind(Mapping, "dictionary")
_CHECKS: dict[str, _Check] = {
    "max_tokens": _number(0, whole=True),
    "metadata": _DICTIONARY,
    "model": _of_kind(str, "string"),
    "output_config": _DICTIONARY,
    "output_format": _DICTIONARY,
    "stop_sequences": _of_kind(list, "list"),
    "stream": _of_kind(bool, "boolean"),
    "system": _of_kind((str, list), "list"),
    "temperature": _number(0, 1),
    "thinking": _DICTIONARY,
    "tool_choice": _DICTIONARY,
    "tools": _of_kind(list, "list"),
    "top_k": _number(0, whole=True),
    "top_p": _number(0, 1),
}
# Parameters of other APIs that clients send by mistake.
_FOREIGN = frozenset(
    {
        "frequency_penalty",
        "function_call",
        "functions",
        "input",
        "instructions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_output_tokens",
        "n",
        "parallel_tool_calls",
        "presence_penalty",
        "previous_response_id",
        "prompt",
        "reasoning",
        "reasoning_effort",
        "response_format",
        "seed",
        "stop",
        "store",
        "stream_options",
        "top_logprobs",
        "user",
    }
)


def _check(body: _Body) -> None:
    for name in ("model", "max_tokens", "messages"):
        if body.get(name) is None:
            raise refused(name, "Field required")
    for name, value in body.items():
        if name in _FOREIGN:
            raise refused(name, "Extra inputs are not permitted")
        if value is not None and name in _CHECKS:
            _CHECKS[name](name, value)
    if not body["model"]:
        raise refused("model", "String should have at least 1 character")
    _check_system(body.get("system"))
    check_messages(body["messages"])
    _check_tools(body.get("tools") or [])
    _check_choice(body)
    _check_thinking(body)


def _check_system(system: object) -> None:
    for i, block in enumerate(system if isinstance(system, list) else ()):
        if not isinstance(block, Mapping) or block.get("type") != "text":
            raise refused(f"system.{i}.type", "Input should be 'text'")
        if not isinstance(block.get("text"), str):
            raise refused(f"system.{i}.text", "Input should be a valid string")
        if not block["text"]:
            raise refused("system", "text content blocks must be non-empty")


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
_VERSIONED = re.compile(r"\w+_\d{8}\Z|mcp_toolset\Z")
_SCHEMA_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def _check_tools(tools: list[Any]) -> None:
    names = set()
    for i, tool in enumerate(tools):
        where = f"tools.{i}"
        if not isinstance(tool, Mapping):
            raise refused(where, "Input should be a valid dictionary")
        kind = tool.get("type")
        if kind in (None, "custom"):
            _check_tool(tool, f"{where}.custom")
        elif not isinstance(kind, str) or not _VERSIONED.match(kind):
            raise refused(
                where,
                f"Input tag '{kind}' found using 'type' does not match any of the expected tags: "
                "'custom', or a versioned server tool such as 'web_search_20250305'",
            )
        name = tool.get("name")
        if isinstance(name, str) and name in names:
            raise refused("tools", "Tool names must be unique.")
        names.add(string(name))


def _check_tool(tool: Mapping[str, Any], where: str) -> None:
    name, schema = tool.get("name"), tool.get("input_schema")
    for field, value in (("name", name), ("input_schema", schema)):
        if value is None:
            raise refused(f"{where}.{field}", "Field required")
    if not isinstance(name, str):
        raise refused(f"{where}.name", "Input should be a valid string")
    if not _NAME.match(name):
        raise refused(f"{where}.name", "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'")
    if tool.get("description") is not None and not isinstance(tool["description"], str):
        raise refused(f"{where}.description", "Input should be a valid string")
    _check_schema(schema, f"{where}.input_schema")


def _check_schema(schema: object, where: str) -> None:
    if not isinstance(schema, Mapping):
        raise refused(where, "Input should be a valid dictionary")
    if "type" not in schema:
        raise refused(f"{where}.type", "Field required")
    if schema["type"] != "object":
        raise refused(f"{where}.type", "Input should be 'object'")
    if any(name in schema for name in ("oneOf", "allOf", "anyOf")):
        raise refused(
            where, "input_schema does not support oneOf, allOf, or anyOf at the top level"
        )
    properties = schema.get("properties") or {}
    if not isinstance(properties, Mapping) or not all(map(_is_schema, properties.values())):
        raise refused(
            where, "JSON schema is invalid. It must match JSON Schema draft 2020-12: `properties`"
        )


def _is_schema(value: object) -> bool:
    if not isinstance(value, Mapping):
        return isinstance(value, bool)
    kind = value.get("type")
    return not isinstance(kind, str) or kind in _SCHEMA_TYPES


def _check_choice(body: _Body) -> None:
    choice, tools = body.get("tool_choice"), body.get("tools") or []
    if choice is None:
        return
    kind, name = choice.get("type"), choice.get("name")
    if kind not in ("auto", "any", "tool", "none"):
        raise refused(
            "tool_choice",
            f"Input tag '{kind}' found using 'type' does not match any of the expected tags: "
            "'auto', 'any', 'tool', 'none'",
        )
    if kind == "tool" and not isinstance(name, str):
        raise refused("tool_choice.tool.name", "Field required")
    if not tools and kind != "none":
        raise refused("tool_choice", "may only be specified while providing `tools`")
    if kind == "tool" and all(tool.get("name") != name for tool in tools):
        raise refused("tool_choice", f"Tool '{name}' not found in provided tools")


def _check_thinking(body: _Body) -> None:
    thinking = mapping(body.get("thinking"))
    if not thinking:
        return
    kind = thinking.get("type")
    if kind not in ("enabled", "disabled", "adaptive", "between_tools"):
        raise refused(
            "thinking",
            f"Input tag '{kind}' found using 'type' does not match any of the expected tags: "
            "'adaptive', 'between_tools', 'disabled', 'enabled'",
        )
    if kind != "enabled":
        return
    budget = thinking.get("budget_tokens")
    if budget is None:
        raise refused("thinking.enabled.budget_tokens", "Field required")
    _number(1024, whole=True)("thinking.enabled.budget_tokens", budget)
    # With tools, interleaved thinking (a beta) lets the budget span several answers.
    if budget >= body["max_tokens"] and not body.get("tools"):
        raise refused("max_tokens", "must be greater than `thinking.budget_tokens`")
    if mapping(body.get("tool_choice")).get("type") in ("any", "tool"):
        raise refused("thinking", "may not be enabled when tool_choice forces tool use")
