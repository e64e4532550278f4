"""Requests of Cohere: the body to the neutral request, with validation.

https://docs.cohere.com/reference/chat
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from mockllm.core.http import Target
from mockllm.core.request import OfferedTool, Request
from mockllm.protocols.checks import Check
from mockllm.protocols.cohere import API
from mockllm.protocols.cohere.errors import BOOLEAN, CHECKS, TEXT, invalid
from mockllm.protocols.cohere.messages import check_messages, read_messages
from mockllm.protocols.records import Fields
from mockllm.protocols.values import mapping, objects, string

_CHOICES = {"REQUIRED": "required", "NONE": "none"}


def parse(body: Fields, target: Target, strict: bool) -> Request:
    """The neutral request of a body of Cohere."""
    (_check if strict else CHECKS.mapping)("", body)
    messages = read_messages(body.get("messages"))
    return Request(
        api=API,
        model=string(body.get("model")),
        body=body,
        stream=body.get("stream") is True,
        messages=messages,
        system="\n".join([message.text for message in messages if message.role == "system"]),
        tools=_tools(body.get("tools")),
        tool_choice=_CHOICES.get(string(body.get("tool_choice")), "auto"),
        output_schema=_schema(body.get("response_format")),
        wants_reasoning=mapping(body.get("thinking")).get("type") == "enabled",
    )


def options(request: Request) -> Hashable:
    """Nothing: the bytes of an answer depend on nothing in the request."""
    return ()


def _tools(value: object) -> tuple[OfferedTool, ...]:
    functions = [mapping(tool.get("function")) for tool in objects(value)]
    return tuple(
        OfferedTool(name, string(function.get("description")), mapping(function.get("parameters")))
        for function in functions
        if isinstance(name := function.get("name"), str)
    )


def _schema(value: object) -> Fields | None:
    format = mapping(value)
    if format.get("type") != "json_object":
        return None
    return mapping(format.get("json_schema") or format.get("schema"))


# Checks


def _check(where: str, body: Any) -> None:
    _BODY(where, body)
    if body.get("tool_choice") == "REQUIRED" and not body.get("tools"):
        raise invalid("tool_choice needs tools.", "tool_choice")


_FUNCTION = CHECKS.fields({"name": TEXT}, {"description": TEXT, "parameters": CHECKS.mapping})
_TOOL = CHECKS.fields({"type": CHECKS.one_of("function"), "function": _FUNCTION})
_FORMAT = CHECKS.fields(
    {"type": CHECKS.one_of("text", "json_object")},
    {"json_schema": CHECKS.mapping, "schema": CHECKS.mapping},
)
_OTHERS: dict[str, Check] = {
    "stream": BOOLEAN,
    "tools": CHECKS.list_of(_TOOL),
    "strict_tools": BOOLEAN,
    "tool_choice": CHECKS.one_of(*_CHOICES),
    "documents": CHECKS.of_kind(list, "array"),
    "citation_options": CHECKS.mapping,
    "response_format": _FORMAT,
    "safety_mode": TEXT,
    "max_tokens": CHECKS.number(0, whole=True),
    "stop_sequences": CHECKS.list_of(TEXT),
    "temperature": CHECKS.number(0, 2),
    "seed": CHECKS.number(0, 2**64 - 1, whole=True),
    "frequency_penalty": CHECKS.number(0, 1),
    "presence_penalty": CHECKS.number(0, 1),
    "k": CHECKS.number(0, 500, whole=True),
    "p": CHECKS.number(0, 1),
    "logprobs": BOOLEAN,
    "thinking": CHECKS.fields(
        {"type": CHECKS.one_of("enabled", "disabled")},
        {"token_budget": CHECKS.number(1, whole=True)},
    ),
}
_BODY = CHECKS.fields({"model": TEXT, "messages": check_messages}, _OTHERS)
