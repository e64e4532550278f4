"""The `input` of a Responses request: to neutral messages, and as the service lists it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from mockllm.core.request import CallEcho, Message
from mockllm.errors import RequestError
from mockllm.protocols.base import dumps
from mockllm.protocols.openai_common import text_of
from mockllm.protocols.openai_refusals import bad_value, invalid_type, missing
from mockllm.protocols.openai_responses.objects import item_of
from mockllm.protocols.values import mapping, string

_Item = Mapping[str, Any]

_ROLES: dict[str, Literal["system", "user", "assistant"]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
_INPUT_PARTS = ("input_text", "input_image", "input_file", "input_audio")
_OUTPUT_PARTS = ("output_text", "refusal")


def messages(value: object, strict: bool) -> list[Message]:
    """The messages of an `input`, one for each of its items. Items that the model produced are
    assistant messages, some without text; results are tool messages."""
    if isinstance(value, str):
        return [Message("user", value)]
    if not isinstance(value, list):
        return []
    out = []
    for i, item in enumerate(value):
        if isinstance(item, Mapping):
            out.append(_message_of(item, i, strict))
        elif strict:
            raise invalid_type(f"input[{i}]", "an object", item)
    return out


def item_kind(item: _Item) -> str:
    """The type of an item. The service lets clients omit it in messages and references."""
    kind = item.get("type")
    if isinstance(kind, str):
        return kind
    if "role" in item:
        return "message"
    return "item_reference" if "id" in item else ""


def _message_of(item: _Item, i: int, strict: bool) -> Message:
    kind = item_kind(item)
    reader = _READERS.get(kind)
    if reader is not None:
        return reader(item, f"input[{i}]", strict)
    if strict and not kind:
        raise missing(f"input[{i}].type")
    if kind.endswith(("_output", "_response")) and item.get("execution") != "server":
        return _tool_answer(item)
    role = _ROLES.get(string(item.get("role")), "assistant")
    return Message(role)


def _tool_answer(item: _Item) -> Message:
    """The result of a shell, a computer or a search that the client runs, or its approval."""
    ids = (item.get(name) for name in ("call_id", "approval_request_id", "id"))
    output = item.get("output", item.get("tools", item.get("approve")))
    if isinstance(output, Mapping):  # a screenshot
        output = ""
    text = output if isinstance(output, str) else dumps(output)
    return Message("tool", text, call_id=next((id for id in ids if isinstance(id, str)), ""))


def _field(item: _Item, name: str, where: str, strict: bool) -> str:
    value = item.get(name)
    if strict and not isinstance(value, str):
        if value is None:
            raise missing(f"{where}.{name}")
        raise invalid_type(f"{where}.{name}", "a string", value)
    return string(value)


def _message(item: _Item, where: str, strict: bool) -> Message:
    role, content = item.get("role"), item.get("content")
    neutral = _ROLES.get(role) if isinstance(role, str) else None
    if strict:
        if role is None:
            raise missing(f"{where}.role")
        if not isinstance(role, str):
            raise invalid_type(f"{where}.role", "a string", role)
        if neutral is None:
            allowed = ("assistant", "system", "developer", "user")
            raise bad_value(f"{where}.role", role, allowed)
        if content is None:
            raise missing(f"{where}.content")
        if isinstance(content, list):
            _check_parts(content, neutral == "assistant", f"{where}.content")
    return Message(neutral or "user", text_of(content, f"{where}.content", strict))


def _check_parts(parts: list[Any], assistant: bool, where: str) -> None:
    """Raises for parts that a role cannot have: `output_text` is the assistant's, `input_text`
    everyone else's."""
    allowed = _OUTPUT_PARTS if assistant else _INPUT_PARTS
    for k, part in enumerate(parts):
        kind = mapping(part).get("type")
        if isinstance(kind, str) and kind not in allowed:
            raise bad_value(f"{where}[{k}].type", kind, allowed)


def _call(item: _Item, where: str, strict: bool) -> Message:
    arguments = "input" if item_kind(item) == "custom_tool_call" else "arguments"
    fields = (_field(item, name, where, strict) for name in ("call_id", "name", arguments))
    return Message("assistant", calls=(CallEcho(*fields),))


def _result(item: _Item, where: str, strict: bool) -> Message:
    call_id = _field(item, "call_id", where, strict)
    output = item.get("output")
    if strict and output is None:
        raise missing(f"{where}.output")
    if isinstance(output, Mapping) and not strict:
        return Message("tool", dumps(output), call_id=call_id)
    return Message("tool", text_of(output, f"{where}.output", strict), call_id=call_id)


def _reasoning(item: _Item, where: str, strict: bool) -> Message:
    summary = item.get("summary")
    if strict and not isinstance(summary, list):
        if summary is None:
            raise missing(f"{where}.summary")
        raise invalid_type(f"{where}.summary", "an array of objects", summary)
    return Message("assistant")


def _reference(item: _Item, where: str, strict: bool) -> Message:
    id = _field(item, "id", where, strict)
    known = item_of(id)
    return Message("assistant", ref=known[0] if known else id)


_READERS: dict[str, Callable[[_Item, str, bool], Message]] = {
    "message": _message,
    "function_call": _call,
    "function_call_output": _result,
    "custom_tool_call": _call,
    "custom_tool_call_output": _result,
    "reasoning": _reasoning,
    "item_reference": _reference,
    "program_output": lambda item, where, strict: Message("assistant"),
}
CALLS = {"function_call": "function call", "custom_tool_call": "custom tool call"}
RESULTS = {f"{kind}_output": title for kind, title in CALLS.items()}


def check_pairs(body: Mapping[str, Any]) -> None:
    """Raises for a call without its result, and for a result without its call before it. With
    `previous_response_id`, a conversation or references to items, the call of a result may be
    stored by the service; such results are accepted here."""
    value = body.get("input")
    if not isinstance(value, list):
        return
    calls: dict[str, str] = {}
    answered: set[str] = set()
    elsewhere = bool(body.get("previous_response_id") or body.get("conversation"))
    for i, item in enumerate(value):
        kind = item_kind(item)
        if kind in CALLS:
            calls[item["call_id"]] = CALLS[kind]
        elif kind == "item_reference":
            elsewhere = True
        elif kind in RESULTS:
            id = item["call_id"]
            answered.add(id)
            if id not in calls and not elsewhere:
                raise RequestError(
                    f"No tool call found for {RESULTS[kind]} output with call_id {id}.",
                    param=f"input[{i}].call_id",
                )
    for id, title in calls.items():
        if id not in answered:
            raise RequestError(f"No tool output found for {title} {id}.", param="input")
