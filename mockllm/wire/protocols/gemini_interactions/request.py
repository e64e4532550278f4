"""Requests of Interactions: the body to the neutral request, with the service's validation.

https://ai.google.dev/api/interactions-api#CreateInteraction

Who answers, and whether the answer is streamed, are in the body. Only pure functions may live here.
"""

from __future__ import annotations

from collections.abc import Mapping

from mockllm.core.http import Target
from mockllm.core.request import Message, Request
from mockllm.wire.protocols.checks import Check
from mockllm.wire.protocols.gemini_common import json_schema
from mockllm.wire.protocols.gemini_interactions import API
from mockllm.wire.protocols.gemini_interactions.errors import CHECKS, invalid
from mockllm.wire.protocols.gemini_interactions.fields import PREFIX, Options
from mockllm.wire.protocols.gemini_interactions.input import check_input, messages
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import array, mapping, objects, offered_tools, string

PREVIOUS = "previous_interaction_id"


def parse(body: Fields, target: Target, strict: bool) -> Request:
    """The neutral request of a body."""
    if strict:
        _check(body)
    config = mapping(body.get("generation_config"))
    history, system = messages(body.get("input")), string(body.get("system_instruction"))
    previous = string(body.get(PREVIOUS))
    if previous and history and history[0].role == "assistant":
        history.pop(0)  # ADK sends thoughts of the earlier answer again, streamed ones as text
    if system:
        history.insert(0, Message("system", system))
    functions = [tool for tool in objects(body.get("tools")) if tool.get("type") == "function"]
    return Request(
        API,
        string(body.get("model")) or string(body.get("agent")),
        body,
        body.get("stream") is True,
        tuple(history),
        system,
        offered_tools(functions),
        _tool_choice(config.get("tool_choice")),
        previous.removeprefix(PREFIX) or None,
        output_schema=_output_schema(body.get("response_format")),
        wants_reasoning=config.get("thinking_summaries") == "auto",
    )


def options(request: Request) -> Options:
    """The options for the encoder; never fails, whatever the body holds."""
    body = request.body
    return Options(
        names="agent" if string(body.get("agent")) else "model",
        background=body.get("background") is True,
        stored=body.get("store") is not False,
        tier=string(body.get("service_tier")) or "standard",
    )


def _tool_choice(choice: object) -> str:
    """`auto`, `none`, `required`, or the name of the tool that must be called: of several that are
    allowed, the first."""
    allowed = mapping(mapping(choice).get("allowed_tools"))
    if not allowed:
        return {"any": "required", "none": "none"}.get(string(choice), "auto")
    names = [name for name in array(allowed.get("tools")) if isinstance(name, str)]
    if allowed.get("mode") != "any":
        return "none" if allowed.get("mode") == "none" else "auto"
    return names[0] if names else "required"


def _output_schema(value: object) -> Fields | None:
    """The JSON Schema of the text; {} for any JSON, None for plain text."""
    for format in objects(value if isinstance(value, list) else [value]):
        if format.get("type") == "text" and format.get("mime_type") == "application/json":
            return json_schema(format.get("schema"))
    return None


# Refusals

_OBJECT, _TEXT, _FLAG = CHECKS.mapping, CHECKS.text, CHECKS.of_kind(bool, "a boolean")
_CHECKS: dict[str, Check] = {
    "agent": _TEXT,
    "agent_config": _OBJECT,
    "background": _FLAG,
    "cached_content": _TEXT,
    "continuation_token": _TEXT,
    "environment": CHECKS.of_kind((str, Mapping), "a string or an object"),
    "generation_config": _OBJECT,
    "input": lambda where, value: None,
    "labels": _OBJECT,
    "model": _TEXT,
    PREVIOUS: _TEXT,
    "response_format": CHECKS.of_kind((list, Mapping), "an object or an array"),
    "response_modalities": CHECKS.of_kind(list, "an array"),
    "safety_settings": CHECKS.of_kind(list, "an array"),
    "service_tier": _TEXT,
    "store": _FLAG,
    "stream": _FLAG,
    "system_instruction": _TEXT,
    "tools": CHECKS.list_of(CHECKS.fields({"type": _TEXT})),
    "webhook_config": _OBJECT,
}
_CONFIG_CHECKS: dict[str, Check] = {
    "temperature": CHECKS.number(0, 2),
    "top_p": CHECKS.number(0, 1),
    "seed": CHECKS.of_kind(int, "an integer"),
    "stop_sequences": CHECKS.of_kind(list, "an array"),
    "max_output_tokens": CHECKS.number(1, whole=True),
    "thinking_level": CHECKS.one_of("minimal", "low", "medium", "high"),
    "thinking_summaries": CHECKS.one_of("auto", "none"),
    "tool_choice": CHECKS.of_kind((str, Mapping), "a string or an object"),
}
_PENALTIES = ("presence_penalty", "frequency_penalty")
_TOOLS = frozenset(
    {"code_execution", "computer_use", "file_search", "function", "google_maps", "google_search"}
    | {"mcp_server", "retrieval", "tool_search", "url_context"}
)


def _check(body: Fields) -> None:
    for name, value in body.items():
        if value is None:
            continue
        if name not in _CHECKS:
            raise invalid(name, f"Unknown parameter '{name}'.", "parameter_unknown")
        _CHECKS[name](name, value)
    if bool(body.get("model")) == bool(body.get("agent")):
        raise invalid("model", "Exactly one of 'model' and 'agent' must be set.")
    config = mapping(body.get("generation_config"))
    if body.get("agent") and config:
        raise invalid("generation_config", "'generation_config' cannot be set with 'agent'.")
    for name, value in config.items():
        if name in _PENALTIES:
            where = f"generation_config.{name}"
            raise invalid(where, f"Unknown parameter '{where}'.", "parameter_unknown")
        if value is not None and name in _CONFIG_CHECKS:
            _CONFIG_CHECKS[name](f"generation_config.{name}", value)
    if body.get("background") and body.get("store") is False:
        raise invalid("background", "'background' requires 'store' to be true.")
    for i, tool in enumerate(array(body.get("tools"))):
        _check_tool(f"tools[{i}]", tool)
    if body.get("input") is not None or not body.get("continuation_token"):
        check_input(body.get("input"), continues=bool(body.get(PREVIOUS)))


def _check_tool(where: str, tool: Fields) -> None:
    kind = tool["type"]
    if kind not in _TOOLS:
        raise invalid(where, f"The value '{kind}' is not supported for 'type' at '{where}'.")
    if kind == "function":
        _FUNCTION(where, tool)
        if tool.get("parameters", {}).get("required") == []:
            problem = f"Invalid input at '{where}.parameters.required': must not be empty."
            raise invalid(where, problem)


_FUNCTION = CHECKS.fields({"name": _TEXT}, {"description": _TEXT, "parameters": _OBJECT})
