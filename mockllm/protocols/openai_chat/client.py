"""The requests that a client of Chat Completions sends."""

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
        {"role": "tool", "tool_call_id": call.id, "content": text}
        for call, text in zip(calls, results, strict=True)
    ]
    assistant = {"role": "assistant", "content": None, "tool_calls": tool_calls}
    return with_messages(body, assistant, *tool_messages)


def _next_message(body: Json, answer: str, text: str, user: str) -> Json:
    answered = {"role": "assistant", "content": text}
    return with_messages(body, answered, {"role": "user", "content": user})


CLIENT = ClientRequests(
    first_request=lambda model, user: {
        "model": model,
        "stream": True,
        "messages": [{"role": "user", "content": user}],
    },
    tools=lambda tools: {
        "tools": [{"type": "function", "function": function_tool(tool)} for tool in tools]
    },
    continuation=_continuation,
    next_message=_next_message,
    path="/v1/chat/completions",
    service="https://api.openai.com",
    group="openai",
    tool_fields=("tools", "tool_choice", "functions", "function_call"),
    headers={"authorization": "Bearer mock-key"},
    stream_field="stream",
    usage={"stream_options": {"include_usage": True}},
    # `functions`, deprecated in favour of `tools` in 2023, has no call ids.
    may_lack_call_ids=lambda body: "functions" in body,
)
