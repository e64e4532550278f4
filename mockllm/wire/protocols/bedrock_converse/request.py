"""Requests of Converse: the body and the path to the neutral request, with validation.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from mockllm.core.http import Target
from mockllm.core.request import Message, OfferedTool, Request, system_text
from mockllm.wire.protocols.base import Lookup, counted_tokens
from mockllm.wire.protocols.bedrock_converse import API
from mockllm.wire.protocols.bedrock_converse.errors import CHECKS, TEXT, validation_error
from mockllm.wire.protocols.bedrock_converse.messages import (
    NAME,
    check_messages,
    has_tool_blocks,
    messages,
    text_of,
)
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import base64_bytes, json_object, mapping, objects, string


def parse(body: Fields, target: Target, strict: bool) -> Request:
    """The neutral request of a body; the path has the model, and whether to stream."""
    if strict:
        _check(body)
    history = messages(body.get("messages"))
    system = text_of(body.get("system"))
    if system:
        history.insert(0, Message("system", system))
    config = mapping(body.get("toolConfig"))
    return Request(
        API,
        _model(target),
        body,
        target.segments.get("action") == "converse-stream",
        tuple(history),
        system_text(history),
        tuple(map(_tool, _specs(config))),
        _tool_choice(mapping(config.get("toolChoice"))),
        output_schema=_output_schema(body),
        wants_reasoning=_wants_reasoning(mapping(body.get("additionalModelRequestFields"))),
    )


def _model(target: Target) -> str:
    segments = target.segments
    return "/".join(filter(None, (segments.get("owner"), segments.get("model"))))


def options(request: Request) -> Hashable:
    """The options for the encoder: none, as the bytes depend on nothing in the request."""
    return None


def _specs(config: Fields) -> list[Fields]:
    specs = (mapping(tool.get("toolSpec")) for tool in objects(config.get("tools")))
    return [spec for spec in specs if isinstance(spec.get("name"), str)]


def _tool(spec: Fields) -> OfferedTool:
    schema = mapping(mapping(spec.get("inputSchema")).get("json"))
    return OfferedTool(spec["name"], string(spec.get("description")), schema)


def _tool_choice(choice: Fields) -> str:
    if "any" in choice:
        return "required"
    return string(mapping(choice.get("tool")).get("name")) or "auto"


def _output_schema(body: Fields) -> Fields | None:
    format = mapping(mapping(body.get("outputConfig")).get("textFormat"))
    schema = mapping(mapping(format.get("structure")).get("jsonSchema")).get("schema")
    return json_object(schema) if isinstance(schema, str) else None


def _wants_reasoning(fields: Fields) -> bool:
    # Claude has `thinking`, Nova `reasoningConfig`; OpenAI's models always reason.
    for name in ("thinking", "reasoning_config", "reasoningConfig"):
        if mapping(fields.get(name)).get("type", "disabled") != "disabled":
            return True
    return False


# Refusals


def _check_schema(where: str, value: Any) -> None:
    CHECKS.fields({"json": CHECKS.mapping})(where, value)
    if value["json"].get("type") != "object":
        raise validation_error(
            f"The value at {where}.json.type must be one of the following: object.", where
        )


_SPEC = CHECKS.fields({"name": NAME, "inputSchema": _check_schema}, {"description": TEXT})
_TOOL = CHECKS.fields(
    {},
    {
        "toolSpec": _SPEC,
        "systemTool": CHECKS.fields({"name": NAME}),
        "cachePoint": CHECKS.mapping,
    },
)


def _check_choice(where: str, value: Any) -> None:
    CHECKS.mapping(where, value)
    if len(value) != 1 or not value.keys() & {"auto", "any", "tool"}:
        raise validation_error(
            f"The object at {where} must have exactly one of auto, any, tool.", where
        )
    if "tool" in value:
        CHECKS.fields({"name": NAME})(f"{where}.tool", value["tool"])


_INFERENCE = CHECKS.fields(
    {},
    {
        "maxTokens": CHECKS.number(1, whole=True),
        "temperature": CHECKS.number(0, 1),
        "topP": CHECKS.number(0, 1),
        "stopSequences": CHECKS.list_of(TEXT),
    },
)
_TOOL_CONFIG = CHECKS.fields({"tools": CHECKS.list_of(_TOOL)}, {"toolChoice": _check_choice})
_BODY = CHECKS.fields(
    {"messages": check_messages},
    {
        "system": CHECKS.list_of(CHECKS.mapping),
        "inferenceConfig": _INFERENCE,
        "toolConfig": _TOOL_CONFIG,
        "additionalModelRequestFields": CHECKS.mapping,
        "guardrailConfig": CHECKS.mapping,
        "outputConfig": CHECKS.mapping,
        "performanceConfig": CHECKS.mapping,
        "requestMetadata": CHECKS.mapping,
        "serviceTier": CHECKS.mapping,
    },
)


def _check(body: Fields) -> None:
    _BODY("", body)
    config = body.get("toolConfig")
    if config is None and has_tool_blocks(body["messages"]):
        raise validation_error(
            "The toolConfig field must be defined when using toolUse and toolResult content "
            "blocks.",
            "toolConfig",
        )
    specs = _specs(mapping(config))
    if config is not None and not config["tools"]:
        raise validation_error(
            "The toolConfig.tools list must have at least 1 item.", "toolConfig.tools"
        )
    chosen = mapping(mapping(mapping(config).get("toolChoice")).get("tool")).get("name")
    if chosen is not None and all(spec["name"] != chosen for spec in specs):
        raise validation_error(
            f"The tool {chosen!r} of toolChoice is not among the tools.", "toolConfig"
        )


# Lookups


def count_tokens(lookup: Lookup) -> Json:
    """The number of tokens of a request, of Converse or of the model's own API."""
    input = mapping(lookup.request.get("input"))
    body = input.get("converse")
    if body is None and "invokeModel" in input:
        body = json_object(base64_bytes(mapping(input["invokeModel"]).get("body")))
    if not isinstance(body, Mapping):
        raise validation_error(
            "input must have converse, or invokeModel with a body in base64.", "input"
        )
    return {"inputTokens": counted_tokens(parse(body, lookup.target, False))}
