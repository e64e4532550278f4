"""The requests that a client of the Echo API sends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mockllm.core.request import Message, Parameters, Request
from mockllm.core.turn import ToolCall
from mockllm.wire.protocols.records import ClientRequests, Json
from mockllm.wire.protocols.values import tool_schema


def _write(request: Request, parameters: Parameters) -> Json:
    told = [message.text for message in request.messages if message.role == "system"]
    said = [message for message in request.messages if message.role != "system"]
    body: Json = {"speaker": request.model, "live": request.stream, "dialogue": _entries(said)}
    if any(told):
        body["stage"] = "\n".join(told)
    if request.tools:
        body["gadgets"] = [
            {"title": tool.name, "about": tool.description, "settings": tool_schema(tool)}
            for tool in request.tools
        ]
    if request.tools and request.tool_choice != "auto":
        modes: dict[str, Any] = {"none": "none", "required": "must"}
        body["pick"] = modes.get(request.tool_choice, {"gadget": request.tool_choice})
    if request.output_schema is not None:
        body["shape"] = request.output_schema
    if request.wants_reasoning:
        body["muse"] = True
    return body


_WHO = {"user": "human", "assistant": "machine", "tool": "gadget"}


def _entries(messages: Sequence[Message]) -> list[Json]:
    return [_entry(message) for message in messages]


def _entry(message: Message) -> Json:
    entry: Json = {"who": _WHO[message.role], "line": message.text}
    if message.role == "tool":
        return {**entry, "cue": message.call_id, **({"broken": True} if message.error else {})}
    cues = [
        {"cue": call.id, "gadget": call.name, "settings": call.arguments} for call in message.calls
    ]
    return {**entry, **({"cues": cues} if cues else {})}


def _next_body(
    body: Json, answer: str, messages: Sequence[Message], calls: Sequence[ToolCall]
) -> Json:
    return {**body, "dialogue": [*body["dialogue"], *_entries(messages)]}


CLIENT = ClientRequests(
    write=_write,
    parameters=lambda _: Parameters(),
    next_body=_next_body,
    path="/echo/v2/speak",
    service="https://echo.example",
    group="echo",
    headers={"x-echo-key": "mock-key"},
    stream_field="live",
    tool_fields=("gadgets", "pick"),
)
