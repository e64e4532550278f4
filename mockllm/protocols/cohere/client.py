"""The requests that a client of Cohere sends."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.turn import ToolCall
from mockllm.protocols.openai_common import function_call
from mockllm.protocols.records import ClientRequests, Json, with_messages
from mockllm.protocols.values import function_tool


def _continuation(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    tool_calls = [function_call(call.id, call.name, call.arguments) for call in calls]
    tool_messages = [
        {
            "role": "tool",
            "tool_call_id": call.id,
            "content": [{"type": "document", "document": {"data": text}}],
        }
        for call, text in zip(calls, results, strict=True)
    ]
    return with_messages(body, {"role": "assistant", "tool_calls": tool_calls}, *tool_messages)


def _next_message(body: Json, answer: str, text: str, user: str) -> Json:
    answered = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    return with_messages(body, answered, {"role": "user", "content": user})


CLIENT = ClientRequests(
    first_request=lambda model, user: {
        "model": model,
        "messages": [{"role": "user", "content": user}],
        "stream": True,
    },
    tools=lambda tools: {
        "tools": [{"type": "function", "function": function_tool(tool)} for tool in tools]
    },
    continuation=_continuation,
    next_message=_next_message,
    path="/v2/chat",
    service="https://api.cohere.com",
    group="cohere",
    tool_fields=("tools", "tool_choice"),
    headers={"authorization": "Bearer mock-key"},
    stream_field="stream",
)
