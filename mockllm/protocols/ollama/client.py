"""The requests that a client of `/api/chat` sends; each has the whole history. The Python SDK keeps
no ids of calls, so a history has none; the name of its tool says to which call a result belongs."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.turn import ToolCall
from mockllm.protocols.records import ClientRequests, Json, with_messages
from mockllm.protocols.values import function_tool


def _continuation(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    tool_calls = [{"function": {"name": call.name, "arguments": call.parsed()}} for call in calls]
    assistant = {"role": "assistant", "content": "", "tool_calls": tool_calls}
    tool_messages = [
        {"role": "tool", "tool_name": call.name, "content": text}
        for call, text in zip(calls, results, strict=True)
    ]
    return with_messages(body, assistant, *tool_messages)


def _next_message(body: Json, answer: str, text: str, user: str) -> Json:
    answered = {"role": "assistant", "content": text}
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
    path="/api/chat",
    service="http://127.0.0.1:11434",
    group="ollama",
    stream_field="stream",
    arguments_are_values=True,
    may_lack_call_ids=lambda _: True,
)
