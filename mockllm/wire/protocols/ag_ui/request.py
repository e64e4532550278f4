"""Requests of AG-UI: the input of a run to the neutral request, with validation by its types.

https://docs.ag-ui.com/sdk/python/core/types#runagentinput and
https://docs.ag-ui.com/concepts/messages
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from mockllm.core.http import Target
from mockllm.core.request import CallEcho, Message, Request, system_text
from mockllm.wire.protocols.ag_ui import API
from mockllm.wire.protocols.ag_ui.created import ids_of_path
from mockllm.wire.protocols.ag_ui.errors import CHECKS, TEXT, impossible_history, wrong_type
from mockllm.wire.protocols.ag_ui.objects import Options, answer_of
from mockllm.wire.protocols.openai_common import read_call
from mockllm.wire.protocols.records import Fields
from mockllm.wire.protocols.values import array, encodable, mapping, objects, offered_tools, string

_MODEL = "ag-ui"


def parse(body: Fields, target: Target, strict: bool) -> Request:
    """The neutral request of the input of a run. The path may name the scenario, and the thread and
    the run where the body leaves them out. AG-UI has no model: it is `forwardedProps.model` if
    present, else `ag-ui`. `context`, `state` and `resume` are only in `body`."""
    if target.segments:
        body = {**ids_of_path(target), **body}
    (_INPUT if strict else CHECKS.mapping)("", body)
    history = _read_messages(body.get("messages"))
    props = body.get("forwardedProps")
    model = string(props.get("model")) if isinstance(props, dict) else ""
    return Request(
        api=API,
        model=encodable(model) or _MODEL,
        body=body,
        stream=True,
        messages=history,
        system=system_text(history),
        tools=offered_tools(map(mapping, array(body.get("tools")))),
        scenario=target.segments.get("scenario"),
    )


def options(request: Request) -> Options:
    """The options for the encoder; never fails, whatever the body holds."""
    usual = Options()
    body = request.body
    parent = body.get("parentRunId")
    return Options(
        encodable(string(body.get("threadId"))) or usual.thread_id,
        encodable(string(body.get("runId"))) or usual.run_id,
        encodable(parent) if isinstance(parent, str) else None,
    )


# The history


def _read_messages(value: object) -> tuple[Message, ...]:
    """The messages in order; items of other roles, and items that are not messages, are ignored.
    Reasoning counts as a message of the model without text. Some clients put the result of a call
    directly after its message, in the middle of an answer with several messages. Messages of one
    answer of mockllm are therefore moved together, up to the next user message."""
    positions: dict[str, int] = {}
    numbered: list[tuple[int, Message]] = []
    for number, item in enumerate(array(value)):
        message = _message(item) if isinstance(item, Mapping) else None
        if message is None:
            continue
        if message.role == "user":
            positions.clear()
        answer = answer_of(item.get("id")) if message.role == "assistant" else None
        numbered.append((positions.setdefault(answer, number) if answer else number, message))
    return tuple(message for _, message in sorted(numbered, key=itemgetter(0)))


def _message(value: Fields) -> Message | None:
    content = _text_of(value.get("content"))
    match value.get("role"):
        case "user":
            return Message("user", content)
        case "system" | "developer":
            return Message("system", content)
        case "assistant":
            return Message("assistant", content, _calls(value.get("toolCalls")))
        case "reasoning":
            return Message("assistant")
        case "tool":
            error = string(value.get("error"))
            id = string(value.get("toolCallId"))
            return Message("tool", content or error, call_id=id, error=bool(error))
    return None


def _text_of(content: object) -> str:
    return string(content) or "".join(string(part.get("text")) for part in objects(content))


def _calls(value: object) -> tuple[CallEcho, ...]:
    calls = [call for call in objects(value) if isinstance(call.get("function"), Mapping)]
    return tuple(map(read_call, calls))


# Checks


def _check_messages(where: str, value: object) -> None:
    """Raises for ill-formed messages, for results without a call, and for calls without a result
    if the history continues after them."""
    CHECKS.list_of(_check_message)(where, value)
    assert isinstance(value, list)
    _check_pairs(value)


def _check_message(where: str, value: Any) -> None:
    _HAS_ROLE(where, value)
    _ROLES[value["role"]](where, value)


def _check_content(where: str, value: object) -> None:
    if not isinstance(value, (str, list)):
        raise wrong_type(where, "a string or an array of parts", value)
    if isinstance(value, list):
        CHECKS.list_of(_check_part)(where, value)


def _check_part(where: str, value: Any) -> None:
    _HAS_TYPE(where, value)
    if value["type"] == "text":
        CHECKS.fields({"text": TEXT})(where, value)


_HAS_TYPE = CHECKS.fields(
    {"type": CHECKS.one_of("text", "image", "audio", "video", "document", "binary")}
)
_FUNCTION = CHECKS.fields({"name": TEXT, "arguments": TEXT})
_CALL = CHECKS.fields({"id": TEXT, "function": _FUNCTION}, {"type": TEXT})
_ROLES = {
    role: CHECKS.fields({"id": TEXT, **required}, others)
    for role, required, others in (
        ("user", {"content": _check_content}, {}),
        ("assistant", {}, {"content": TEXT, "toolCalls": CHECKS.list_of(_CALL)}),
        ("tool", {"content": _check_content, "toolCallId": TEXT}, {"error": TEXT}),
        ("system", {"content": TEXT}, {}),
        ("developer", {"content": TEXT}, {}),
        ("reasoning", {"content": TEXT}, {"encryptedValue": TEXT}),
        ("activity", {"activityType": TEXT, "content": CHECKS.mapping}, {}),
    )
}
"""The checks of messages, by their roles: the fields that each must have, and may have."""

_HAS_ROLE = CHECKS.fields({"role": CHECKS.one_of(*_ROLES)})


def _check_pairs(messages: list[Fields]) -> None:
    waiting: dict[str, str] = {}
    called: set[str] = set()
    for i, message in enumerate(messages):
        where = f"messages[{i}]"
        if message["role"] == "assistant":
            for k, call in enumerate(message.get("toolCalls") or ()):
                waiting[call["id"]] = f"{where}.toolCalls[{k}]"
                called.add(call["id"])
        elif message["role"] == "tool":
            id = message["toolCallId"]
            if waiting.pop(id, None) is None:
                problem = "is answered twice" if id in called else "was never made"
                raise impossible_history(
                    f"{where} is the result of call {id!r}, which {problem}: each call of an "
                    "assistant message before it takes one result.",
                    f"{where}.toolCallId",
                )
        if message["role"] == "user":
            _check_answered(waiting)
    if messages and messages[-1]["role"] == "tool":
        _check_answered(waiting)


def _check_answered(waiting: dict[str, str]) -> None:
    for id, where in waiting.items():
        raise impossible_history(
            f"{where}, call {id!r}, has no result, yet the history goes on: send a tool message "
            "for every call of an answer.",
            where,
        )


def _check_name(where: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise wrong_type(where, "the name of a tool", value)


_TOOL = CHECKS.fields({"name": _check_name, "description": TEXT}, {"parameters": CHECKS.mapping})
_CONTEXT = CHECKS.fields({"description": TEXT, "value": TEXT})
_ANSWER = CHECKS.fields({"interruptId": TEXT, "status": TEXT})
_INPUT = CHECKS.fields(
    {"threadId": TEXT, "runId": TEXT, "messages": _check_messages},
    {
        "protocolVersion": TEXT,
        "parentRunId": TEXT,
        "tools": CHECKS.list_of(_TOOL),
        "context": CHECKS.list_of(_CONTEXT),
        "resume": CHECKS.list_of(_ANSWER),
    },
)
