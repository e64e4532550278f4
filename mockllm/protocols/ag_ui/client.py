"""The requests that a client of an AG-UI agent sends; each run has all messages. The API has no
model, no parameters, and no choice of tools."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.request import Message, Parameters, Request
from mockllm.core.turn import ToolCall
from mockllm.protocols.openai_common import function_call
from mockllm.protocols.records import ClientRequests, Json, with_messages
from mockllm.protocols.values import function_tool
from mockllm.protocols.writing import answered, joined_answers, paired, with_function_tools


def _write(request: Request, parameters: Parameters) -> Json:
    """The input of a run."""
    request = with_function_tools(request)
    history = enumerate(joined_answers(paired(request.messages)), 1)
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


def _continuation(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    called, *given = answered(calls, results)
    tool_messages = [_write_message(f"tool_{result.call_id}", result) for result in given]
    assistant = _write_message(f"assistant_{len(body['messages'])}", called)
    return _next_run(with_messages(body, assistant, *tool_messages))


def _next_message(body: Json, answer: str, text: str, user: str) -> Json:
    count = len(body["messages"])
    said = _write_message(f"assistant_{count}", Message("assistant", text))
    asked = _write_message(f"user_{count}", Message("user", user))
    return _next_run(with_messages(body, said, asked))


def _next_run(body: Json) -> Json:
    number = int(body["runId"].removeprefix("run_")) + 1
    return {**body, "runId": f"run_{number}"}


CLIENT = ClientRequests(
    write=_write,
    parameters=lambda _: Parameters(),
    continuation=_continuation,
    next_message=_next_message,
    path="/agui",
    service="http://localhost",
    group="agui",
    may_leave_calls=True,
)
