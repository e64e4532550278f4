"""The requests that a client of Anthropic Messages sends."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.request import OfferedTool
from mockllm.core.turn import ToolCall
from mockllm.protocols.anthropic_messages.opaque import opaque_mistake
from mockllm.protocols.records import Client, Json
from mockllm.protocols.values import tool_schema

__all__ = ["CLIENT"]


def _first_request(model: str, user: str) -> Json:
    messages = [{"role": "user", "content": user}]
    return {"model": model, "max_tokens": 1024, "stream": True, "messages": messages}


def _tools(tools: Sequence[OfferedTool]) -> Json:
    return {
        "tools": [
            {"name": tool.name, "description": tool.description, "input_schema": tool_schema(tool)}
            for tool in tools
        ]
    }


def _continuation(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    uses = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.parsed()}
        for call in calls
    ]
    tool_results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": text}
        for call, text in zip(calls, results, strict=True)
    ]
    more = [{"role": "assistant", "content": uses}, {"role": "user", "content": tool_results}]
    return {**body, "messages": [*body["messages"], *more]}


def _next_message(body: Json, answer: str, text: str, user: str) -> Json:
    more = [{"role": "assistant", "content": text}, {"role": "user", "content": user}]
    return {**body, "messages": [*body["messages"], *more]}


CLIENT = Client(
    first_request=_first_request,
    tools=_tools,
    continuation=_continuation,
    next_message=_next_message,
    path="/v1/messages",
    service="https://api.anthropic.com",
    group="anthropic",
    tool_fields=("tools", "tool_choice"),
    headers={"x-api-key": "mock-key", "anthropic-version": "2023-06-01"},
    stream_field="stream",
    arguments_are_values=True,
    opaque_mistake=opaque_mistake,
)
