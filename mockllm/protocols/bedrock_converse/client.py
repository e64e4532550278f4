"""The requests that a client of Converse sends, with the model and the operation in the path."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.request import OfferedTool
from mockllm.core.turn import ToolCall
from mockllm.protocols.records import ClientRequests, Json, with_messages
from mockllm.protocols.values import tool_schema


def _message(role: str, *blocks: Json) -> Json:
    return {"role": role, "content": list(blocks)}


def _spec(tool: OfferedTool) -> Json:
    # The service refuses an empty description.
    described = {"description": tool.description} if tool.description else {}
    return {
        "toolSpec": {"name": tool.name, **described, "inputSchema": {"json": tool_schema(tool)}}
    }


def _continuation(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    uses = [
        {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.parsed()}}
        for call in calls
    ]
    given = [
        {"toolResult": {"toolUseId": call.id, "content": [{"text": text}]}}
        for call, text in zip(calls, results, strict=True)
    ]
    return with_messages(body, _message("assistant", *uses), _message("user", *given))


def _next_message(body: Json, answer: str, text: str, user: str) -> Json:
    # The service refuses a blank text.
    answered = _message("assistant", {"text": text if text.strip() else "."})
    return with_messages(body, answered, _message("user", {"text": user}))


CLIENT = ClientRequests(
    first_request=lambda _model, user: {"messages": [_message("user", {"text": user})]},
    tools=lambda tools: {"toolConfig": {"tools": list(map(_spec, tools))}} if tools else {},
    continuation=_continuation,
    next_message=_next_message,
    path="/model/{model}/converse-stream",
    body_path="/model/{model}/converse",
    service="https://bedrock-runtime.us-east-1.amazonaws.com",
    group="bedrock",
    tool_fields=("toolConfig",),
    arguments_are_values=True,
)
