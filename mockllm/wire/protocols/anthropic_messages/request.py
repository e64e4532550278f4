"""Requests of the Messages API: the body to the neutral request, with the service's validation.

https://docs.claude.com/en/api/messages

Errors have the service's messages. Only pure functions may live here.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.request import Message, Request, system_text
from mockllm.wire.protocols.anthropic_messages import API
from mockllm.wire.protocols.anthropic_messages.bedrock import BEDROCK, STREAMED, is_bedrock
from mockllm.wire.protocols.anthropic_messages.blocks import UNTHREADED
from mockllm.wire.protocols.anthropic_messages.messages import (
    CHECKS,
    DICTIONARY,
    TEXT,
    check_messages,
    field_error,
    messages,
    text_of,
    wrong_tag,
)
from mockllm.wire.protocols.checks import Check
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import array, mapping, offered_tools, string


def parse(body: Fields, target: Target, strict: bool) -> Request:
    """The neutral request of a body."""
    if body.get("thread") is not None:
        raise RequestError(
            "thread: messages are not kept here, as which turn is due is read from the history; "
            "send all of it (`thread=False` in a tool runner)",
            param="thread",
            code=UNTHREADED,
        )
    # On Vertex AI and on Bedrock only the path has the model.
    segments = target.segments
    named = "/".join(filter(None, (segments.get("owner"), segments.get("model"))))
    model = string(body.get("model")) or named
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
        segments["action"] == STREAMED if is_bedrock(target) else body.get("stream") is True,
        tuple(history),
        system_text(history),
        offered_tools(
            filter(_is_client_run, map(mapping, array(body.get("tools")))), "input_schema"
        ),
        _tool_choice(mapping(body.get("tool_choice"))),
        output_schema=_output_schema(body),
        wants_reasoning=mapping(body.get("thinking")).get("type", "disabled") != "disabled",
        traits=frozenset({BEDROCK} if is_bedrock(target) else ()),
    )


def options(request: Request) -> Hashable:
    """The options for the encoder: the service, if it is not Anthropic's own."""
    return BEDROCK if BEDROCK in request.traits else None


# Tools that Anthropic defines have versioned types; the client runs these of them itself.
_CLIENT_RUN = re.compile(r"(?:bash|text_editor|computer|memory|custom)(?:_|\Z)")


def _is_client_run(tool: Fields) -> bool:
    kind = tool.get("type") or "custom"
    return isinstance(kind, str) and _CLIENT_RUN.match(kind) is not None


def _tool_choice(choice: Fields) -> str:
    match choice.get("type"):
        case "any":
            return "required"
        case "none":
            return "none"
        case "tool":
            return string(choice.get("name")) or "auto"
    return "auto"


def _output_schema(body: Fields) -> Fields | None:
    # `output_format` is the name of the field in the beta version.
    for format in (mapping(body.get("output_config")).get("format"), body.get("output_format")):
        if isinstance(format, Mapping) and format.get("type") == "json_schema":
            return mapping(format.get("schema"))
    return None


# Refusals

_LIST = CHECKS.of_kind(list, "list")
_CHECKS: dict[str, Check] = {
    "max_tokens": CHECKS.number(0, whole=True),
    "metadata": DICTIONARY,
    "model": TEXT,
    "output_config": DICTIONARY,
    "output_format": DICTIONARY,
    "stop_sequences": _LIST,
    "stream": CHECKS.of_kind(bool, "boolean"),
    "system": CHECKS.of_kind((str, list), "list"),
    "temperature": CHECKS.number(0, 1),
    "thinking": DICTIONARY,
    "tool_choice": DICTIONARY,
    "tools": _LIST,
    "top_k": CHECKS.number(0, whole=True),
    "top_p": CHECKS.number(0, 1),
}
# Parameters of other APIs that clients send by mistake.
_FOREIGN = frozenset(
    {"frequency_penalty", "function_call", "functions", "input", "instructions"}
    | {"logit_bias", "logprobs", "max_completion_tokens", "max_output_tokens", "n"}
    | {"parallel_tool_calls", "presence_penalty", "previous_response_id", "prompt"}
    | {"reasoning", "reasoning_effort", "response_format", "seed", "stop", "store"}
    | {"stream_options", "top_logprobs", "user"}
)


def _check(body: Fields) -> None:
    for name in ("model", "max_tokens", "messages"):
        if body.get(name) is None:
            raise field_error(name, "Field required")
    for name, value in body.items():
        if name in _FOREIGN:
            raise field_error(name, "Extra inputs are not permitted")
        if value is not None and name in _CHECKS:
            _CHECKS[name](name, value)
    if not body["model"]:
        raise field_error("model", "String should have at least 1 character")
    _check_system(body.get("system"))
    check_messages(body["messages"])
    _check_tools(body.get("tools") or [])
    _check_choice(body)
    _check_thinking(body)


def _check_system(system: object) -> None:
    for i, block in enumerate(array(system)):
        if not isinstance(block, Mapping) or block.get("type") != "text":
            raise field_error(f"system.{i}.type", "Input should be 'text'")
        TEXT(f"system.{i}.text", block.get("text"))
        if not block["text"]:
            raise field_error("system", "text content blocks must be non-empty")


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
_VERSIONED = re.compile(r"\w+_\d{8}\Z|mcp_toolset\Z")
_SCHEMA_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def _check_tools(tools: list[Any]) -> None:
    names = set()
    for i, tool in enumerate(tools):
        where = f"tools.{i}"
        DICTIONARY(where, tool)
        kind = tool.get("type")
        if kind in (None, "custom"):
            _TOOL(f"{where}.custom", tool)
        elif not isinstance(kind, str) or not _VERSIONED.match(kind):
            raise wrong_tag(
                where, kind, "'custom', or a versioned server tool such as 'web_search_20250305'"
            )
        name = tool.get("name")
        if isinstance(name, str) and name in names:
            raise field_error("tools", "Tool names must be unique.")
        names.add(string(name))


def _check_name(where: str, name: object) -> None:
    TEXT(where, name)
    if not _NAME.match(str(name)):
        raise field_error(where, "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'")


def _check_schema(where: str, schema: Any) -> None:
    DICTIONARY(where, schema)
    if "type" not in schema:
        raise field_error(f"{where}.type", "Field required")
    if schema["type"] != "object":
        raise field_error(f"{where}.type", "Input should be 'object'")
    if any(name in schema for name in ("oneOf", "allOf", "anyOf")):
        raise field_error(
            where, "input_schema does not support oneOf, allOf, or anyOf at the top level"
        )
    properties = schema.get("properties") or {}
    if not isinstance(properties, Mapping) or not all(map(_is_schema, properties.values())):
        raise field_error(
            where, "JSON schema is invalid. It must match JSON Schema draft 2020-12: `properties`"
        )


_TOOL = CHECKS.fields({"name": _check_name, "input_schema": _check_schema}, {"description": TEXT})


def _is_schema(value: object) -> bool:
    if not isinstance(value, Mapping):
        return isinstance(value, bool)
    kind = value.get("type")
    return not isinstance(kind, str) or kind in _SCHEMA_TYPES


def _check_choice(body: Fields) -> None:
    choice, tools = body.get("tool_choice"), body.get("tools") or []
    if choice is None:
        return
    kind, name = choice.get("type"), choice.get("name")
    if kind not in ("auto", "any", "tool", "none"):
        raise wrong_tag("tool_choice", kind, "'auto', 'any', 'tool', 'none'")
    if kind == "tool" and not isinstance(name, str):
        raise field_error("tool_choice.tool.name", "Field required")
    if not tools and kind != "none":
        raise field_error("tool_choice", "may only be specified while providing `tools`")
    if kind == "tool" and all(tool.get("name") != name for tool in tools):
        raise field_error("tool_choice", f"Tool '{name}' not found in provided tools")


_ENABLED = CHECKS.fields({"budget_tokens": CHECKS.number(1024, whole=True)})


def _check_thinking(body: Fields) -> None:
    thinking = mapping(body.get("thinking"))
    if not thinking:
        return
    kind = thinking.get("type")
    if kind not in ("enabled", "disabled", "adaptive", "between_tools"):
        raise wrong_tag("thinking", kind, "'adaptive', 'between_tools', 'disabled', 'enabled'")
    if kind != "enabled":
        return
    _ENABLED("thinking.enabled", thinking)
    budget = thinking["budget_tokens"]
    # With tools, interleaved thinking (a beta) lets the budget span several answers.
    if budget >= body["max_tokens"] and not body.get("tools"):
        raise field_error("max_tokens", "must be greater than `thinking.budget_tokens`")
    if mapping(body.get("tool_choice")).get("type") in ("any", "tool"):
        raise field_error("thinking", "may not be enabled when tool_choice forces tool use")
