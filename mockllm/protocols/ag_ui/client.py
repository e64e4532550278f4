"""The requests that a client of an AG-UI agent sends; each run has all messages."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.turn import ToolCall
from mockllm.protocols.openai_common import function_call
from mockllm.protocols.records import ClientRequests, Json, with_messages
from mockllm.protocols.values import function_tool


def _first_request(model: str, user: str) -> Json:
    messages = [{"id": "user_1", "role": "user", "content": user}]
    empty: Json = {"tools": [], "context": [], "state": {}, "forwardedProps": {}}
    return {"threadId": "thread_1", "runId": "run_1", "messages": messages, **empty}


def _continuation(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    tool_calls = [function_call(call.id, call.name, call.arguments) for call in calls]
    assistant = {"id": f"assistant_{len(body['messages'])}", "role": "assistant"}
    tool_messages = [
        {"id": f"tool_{call.id}", "role": "tool", "toolCallId": call.id, "content": text}
        for call, text in zip(calls, results, strict=True)
    ]
    called = {**assistant, "toolCalls": tool_calls}
    return _next_run(with_messages(body, called, *tool_messages))


def _next_message(body: Json, answer: str, text: str, user: str) -> Json:
    count = len(body["messages"])
    answered = {"id": f"assistant_{count}", "role": "assistant", "content": text}
    asked = {"id": f"user_{count}", "role": "user", "content": user}
    return _next_run(with_messages(body, answered, asked))


def _next_run(body: Json) -> Json:
    number = int(body["runId"].removeprefix("run_")) + 1
    return {**body, "runId": f"run_{number}"}


CLIENT = ClientRequests(
    first_request=_first_request,
    tools=lambda tools: {"tools": list(map(function_tool, tools))},
    continuation=_continuation,
    next_message=_next_message,
    path="/agui",
    service="http://localhost",
    group="agui",
    may_leave_calls=True,
)
