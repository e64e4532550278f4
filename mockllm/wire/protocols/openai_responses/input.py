"""The `input` of a Responses request: to neutral messages, and as the service lists it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from mockllm.core.errors import RequestError
from mockllm.core.request import CallEcho, Message
from mockllm.wire.protocols.base import dumps
from mockllm.wire.protocols.checks import Check
from mockllm.wire.protocols.openai_common import (
    CHECKS,
    OBJECT,
    OBJECTS,
    TEXT,
    bad_value,
    check_parts,
    files_of,
    missing,
    text_of,
)
from mockllm.wire.protocols.openai_responses.objects import item_of
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import array, mapping, string

_ROLES: dict[str, Literal["system", "user", "assistant"]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
_OF_MODEL = frozenset(("mcp_list_tools", "mcp_approval_request", "compaction"))
"""Types of items that the model, or the service for it, produced; others end in `_call`."""
_INPUT_PARTS = ("input_text", "input_image", "input_file", "input_audio")
_OUTPUT_PARTS = ("output_text", "refusal")


def messages(value: object, strict: bool) -> list[Message]:
    """The messages of an `input`, one for each of its items. Items that the model produced are
    assistant messages, some without text; results are tool messages."""
    if isinstance(value, str):
        return [Message("user", value)]
    if not isinstance(value, list):
        return []
    if strict:
        for i, item in enumerate(value):
            _check_item(f"input[{i}]", item)
    return [_message_of(item) for item in value if isinstance(item, Mapping)]


def _check_item(where: str, item: object) -> None:
    OBJECT(where, item)
    kind = item_kind(mapping(item))
    if not kind:
        raise missing(f"{where}.type")
    check = _CHECKS.get(kind)
    if check is not None:
        check(where, item)


def item_kind(item: Fields) -> str:
    """The type of an item. The service lets clients omit it in messages and references."""
    kind = item.get("type")
    if isinstance(kind, str):
        return kind
    if "role" in item:
        return "message"
    return "item_reference" if "id" in item else ""


def _message_of(item: Fields) -> Message:
    kind = item_kind(item)
    reader = _READERS.get(kind)
    if reader is not None:
        return reader(item)
    if kind.endswith(("_output", "_response")) and item.get("execution") != "server":
        return _tool_answer(item)
    # A service adds types faster than clients learn them. What may be the model's ends in `_call`,
    # and anything else that is not known here is no answer: a turn more would be counted.
    is_answer = kind in _OF_MODEL or kind.endswith(("_call", "_output"))
    return Message(_ROLES.get(string(item.get("role")), "assistant" if is_answer else "system"))


def _tool_answer(item: Fields) -> Message:
    """The result of a shell, a computer or a search that the client runs, or its approval."""
    ids = (item.get(name) for name in ("call_id", "approval_request_id", "id"))
    output = item.get("output", item.get("tools", item.get("approve")))
    if isinstance(output, Mapping):  # a screenshot
        output = ""
    text = output if isinstance(output, str) else dumps(output)
    return Message("tool", text, call_id=next((id for id in ids if isinstance(id, str)), ""))


def _message(item: Fields) -> Message:
    content, role = item.get("content"), _ROLES.get(string(item.get("role")), "user")
    return Message(role, text_of(content), files=files_of(content))


def _call(item: Fields) -> Message:
    arguments = "input" if item_kind(item) == "custom_tool_call" else "arguments"
    id, name, text = (string(item.get(field)) for field in ("call_id", "name", arguments))
    return Message("assistant", calls=(CallEcho(id, name, text),))


def _result(item: Fields) -> Message:
    output = item.get("output")
    text = dumps(output) if isinstance(output, Mapping) else text_of(output)
    id = string(item.get("call_id"))
    return Message("tool", text, call_id=id, name="" if id else string(item.get("name")))


def _reference(item: Fields) -> Message:
    id = string(item.get("id"))
    known = item_of(id)
    return Message("assistant", ref=known[0] if known else id)


_READERS: dict[str, Callable[[Fields], Message]] = {
    "message": _message,
    "function_call": _call,
    "function_call_output": _result,
    "custom_tool_call": _call,
    "custom_tool_call_output": _result,
    "reasoning": lambda item: Message("assistant"),
    "item_reference": _reference,
    "program_output": lambda item: Message("assistant"),
    # What the client sets or asks for is no part of the conversation.
    "configuration_update": lambda item: Message("system"),
    "compaction": lambda item: Message("system", ref=string(item.get("encrypted_content"))),
    "compaction_trigger": lambda item: Message("system"),
}


def _check_message(where: str, item: Fields) -> None:
    """Raises for parts that a role cannot have: `output_text` is the assistant's, `input_text`
    everyone else's."""
    _MESSAGE(where, item)
    content = item["content"]
    allowed = _OUTPUT_PARTS if item["role"] == "assistant" else _INPUT_PARTS
    for k, part in enumerate(array(content)):
        kind = mapping(part).get("type")
        if isinstance(kind, str) and kind not in allowed:
            raise bad_value(f"{where}.content[{k}].type", kind, allowed)
    check_parts(f"{where}.content", content)


def _check_result(where: str, item: Fields) -> None:
    """Raises for a result of no call: of a function, a name is enough."""
    named = item.get("call_id") is None and isinstance(item.get("name"), str)
    (_NAMED_ANSWER if named else _ANSWER)(where, item)


def _present(where: str, value: object) -> None:
    """A check of a field that need only be there."""


_ROLE = CHECKS.one_of("assistant", "system", "developer", "user")
_MESSAGE = CHECKS.fields({"role": _ROLE, "content": _present})
_ANSWER = CHECKS.fields({"call_id": TEXT, "output": check_parts})
_NAMED_ANSWER = CHECKS.fields({"output": check_parts})
_CHECKS: dict[str, Check] = {
    "message": _check_message,
    "function_call": CHECKS.fields(dict.fromkeys(("call_id", "name", "arguments"), TEXT)),
    "function_call_output": _check_result,
    "custom_tool_call": CHECKS.fields(dict.fromkeys(("call_id", "name", "input"), TEXT)),
    "custom_tool_call_output": _ANSWER,
    "reasoning": CHECKS.fields({"summary": OBJECTS}),
    "item_reference": CHECKS.fields({"id": TEXT}),
}
"""The checks of items, by their types."""

CALLS = {"function_call": "function call", "custom_tool_call": "custom tool call"}
RESULTS = {f"{kind}_output": title for kind, title in CALLS.items()}


def check_pairs(body: Fields) -> None:
    """Raises for a call without its result, and for a result without its call before it. With
    `previous_response_id`, a conversation or references to items, the call of a result may be
    stored by the service; such results are accepted here."""
    value = body.get("input")
    if not isinstance(value, list):
        return
    calls: dict[str, str] = {}
    names: dict[str, str] = {}
    answered: set[str] = set()
    elsewhere = bool(body.get("previous_response_id") or body.get("conversation"))
    for i, item in enumerate(value):
        kind = item_kind(item)
        if kind in CALLS:
            calls[item["call_id"]] = CALLS[kind]
            names[item["name"]] = item["call_id"]
        elif kind == "item_reference":
            elsewhere = True
        elif kind in RESULTS:
            id = item.get("call_id")
            if id is None:  # of the last call of the function
                answered.add(names.get(item["name"], ""))
                continue
            answered.add(id)
            if id not in calls and not elsewhere:
                raise RequestError(
                    f"No tool call found for {RESULTS[kind]} output with call_id {id}.",
                    param=f"input[{i}].call_id",
                )
    for id, title in calls.items():
        if id not in answered:
            raise RequestError(f"No tool output found for {title} {id}.", param="input")
