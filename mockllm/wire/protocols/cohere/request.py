"""Requests of Cohere: the body to the neutral request, with validation.

https://docs.cohere.com/reference/chat
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from mockllm.core.http import Target
from mockllm.core.request import Message, Request, system_text
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.checks import Check
from mockllm.wire.protocols.cohere import API
from mockllm.wire.protocols.cohere.errors import BOOLEAN, CHECKS, TEXT, invalid, wrong_type
from mockllm.wire.protocols.openai_common import files_of, read_call
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import array, mapping, objects, offered_tools, string

_CHOICES = {"REQUIRED": "required", "NONE": "none"}


TRANSLATED = Target({"version": "1"})
"""The target of a request of the first version: its calls have no ids."""


def parse(body: Fields, target: Target, strict: bool) -> Request:
    """The neutral request of a body of Cohere."""
    (_check if strict and target != TRANSLATED else CHECKS.mapping)("", body)
    messages = _messages(body.get("messages"))
    return Request(
        api=API,
        model=string(body.get("model")),
        body=body,
        stream=body.get("stream") is True,
        messages=messages,
        system=system_text(messages),
        tools=offered_tools(mapping(tool.get("function")) for tool in objects(body.get("tools"))),
        tool_choice=_CHOICES.get(string(body.get("tool_choice")), "auto"),
        output_schema=_schema(body.get("response_format")),
        wants_reasoning=mapping(body.get("thinking")).get("type") == "enabled",
    )


def options(request: Request) -> Hashable:
    """Nothing: the bytes of an answer depend on nothing in the request."""
    return ()


def _schema(value: object) -> Fields | None:
    format = mapping(value)
    if format.get("type") != "json_object":
        return None
    return mapping(format.get("json_schema") or format.get("schema"))


# The history


def _messages(value: object) -> tuple[Message, ...]:
    """The messages in order; items that are no messages are left out."""
    messages = map(_message, objects(value))
    return tuple(message for message in messages if message is not None)


def _message(value: Fields) -> Message | None:
    text = _text_of(value.get("content"))
    match value.get("role"):
        case "user":
            return Message("user", text, files=files_of(value.get("content")))
        case "system" | "developer":
            return Message("system", text)
        case "assistant":
            plan = string(value.get("tool_plan"))
            calls = tuple(map(read_call, objects(value.get("tool_calls"))))
            return Message("assistant", plan + text, calls)
        case "tool":
            return Message("tool", text, call_id=string(value.get("tool_call_id")))
    return None


def _text_of(content: object) -> str:
    """The text of a content: a string, or parts, of which documents may hold any object."""
    return string(content) or "".join(map(_part_text, array(content)))


def _part_text(part: object) -> str:
    if not isinstance(part, Mapping):
        return string(part)
    if "document" not in part:
        return string(part.get("text"))
    document = part["document"]
    data = document.get("data", document) if isinstance(document, Mapping) else document
    return data if isinstance(data, str) else dumps(data)


# Checks


def _check_messages(where: str, value: object) -> None:
    """Raises for ill-formed messages, for results without a call, and for calls without a result
    if the history continues after them."""
    CHECKS.list_of(_check_message)(where, value)
    assert isinstance(value, list)
    if not value:
        raise invalid("messages must have at least one message.", where)
    _check_pairs(value)


def _check_message(where: str, value: Any) -> None:
    _HAS_ROLE(where, value)
    _ROLES[value["role"]](where, value)


def _check_content(where: str, value: object) -> None:
    if isinstance(value, str):
        return
    if not isinstance(value, list):
        raise wrong_type(where, "string or array", value)
    for i, part in enumerate(value):
        if not isinstance(part, str):
            _PART(f"{where}[{i}]", part)


_PART = CHECKS.fields(
    {"type": CHECKS.one_of("text", "thinking", "image_url", "document")},
    {"text": TEXT, "thinking": TEXT},
)
_CALL = CHECKS.fields({"id": TEXT, "function": CHECKS.fields({"name": TEXT}, {"arguments": TEXT})})
_SAID = {"content": _check_content}
_ROLES = {
    "user": CHECKS.fields(_SAID),
    "system": CHECKS.fields(_SAID),
    "developer": CHECKS.fields(_SAID),
    "assistant": CHECKS.fields(
        {}, {**_SAID, "tool_plan": TEXT, "tool_calls": CHECKS.list_of(_CALL)}
    ),
    "tool": CHECKS.fields({**_SAID, "tool_call_id": TEXT}),
}
"""The checks of messages, by their roles."""

_HAS_ROLE = CHECKS.fields({"role": CHECKS.one_of(*_ROLES)})


def _check_pairs(messages: list[Fields]) -> None:
    """Raises unless the results of an assistant message's calls directly follow that message."""
    waiting: dict[str, str] = {}
    for i, message in enumerate(messages):
        where = f"messages[{i}]"
        if message["role"] == "tool":
            id = message["tool_call_id"]
            if waiting.pop(id, None) is None:
                raise invalid(
                    f"{where} is the result of tool call {id!r}, which the assistant message "
                    "before it does not have, or which has a result already.",
                    where,
                )
            continue
        _check_answered(waiting)
        for k, call in enumerate(message.get("tool_calls") or ()):
            if message["role"] == "assistant":
                waiting[call["id"]] = f"{where}.tool_calls[{k}]"
    _check_answered(waiting)


def _check_answered(waiting: dict[str, str]) -> None:
    for id, where in waiting.items():
        raise invalid(f"{where}, tool call {id!r}, has no result in a tool message.", where)


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
_BODY = CHECKS.fields({"model": TEXT, "messages": _check_messages}, _OTHERS)
