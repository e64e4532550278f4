"""The requests that a client of an AG-UI agent sends; each run has all messages. The API has no
model, no parameters, and no choice of tools."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.request import Message, Parameters, Request
from mockllm.core.turn import ToolCall
from mockllm.wire.protocols.openai_common import function_call
from mockllm.wire.protocols.records import ClientRequests, Json, with_messages
from mockllm.wire.protocols.values import function_tool
from mockllm.wire.protocols.writing import joined_answers, pair_results, with_function_tools


def _write(request: Request, parameters: Parameters) -> Json:
    """The input of a run."""
    request = with_function_tools(request)
    history = enumerate(joined_answers(pair_results(request.messages)), 1)
    return {
        "threadId": "thread_1",
        "runId": "run_1",
        "messages": [
            _write_message(f"{message.role}_{number}", message) for number, message in history
        ],
        "tools": list(map(function_tool, request.tools)),
        "context": [],
        "state": {},
        "forwardedProps": {},
    }


def _write_message(id: str, message: Message) -> Json:
    """A message as the API has it."""
    written: Json = {"id": id, "role": message.role}
    if message.role == "tool":
        failed = {"error": message.text} if message.error else {}
        return {**written, "toolCallId": message.call_id, "content": message.text, **failed}
    if message.text or not message.calls:
        written["content"] = message.text
    calls = [function_call(call.id, call.name, call.arguments) for call in message.calls]
    return written | ({"toolCalls": calls} if calls else {})


def _next_body(
    body: Json, answer: str, messages: Sequence[Message], calls: Sequence[ToolCall]
) -> Json:
    count, run = len(body["messages"]), int(body["runId"].removeprefix("run_"))
    more = [
        _write_message(f"{message.role}_{message.call_id or count}", message)
        for message in messages
    ]
    return {**with_messages(body, *more), "runId": f"run_{run + 1}"}


CLIENT = ClientRequests(
    write=_write,
    parameters=lambda _: Parameters(),
    next_body=_next_body,
    path="/agui",
    service="http://localhost",
    group="agui",
    may_leave_calls=True,
)
