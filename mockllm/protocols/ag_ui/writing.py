"""Writes the inputs of AG-UI's runs: the inverse of `request`. The API has no model, no parameters,
and no choice of tools."""

from __future__ import annotations

from mockllm.core.request import Message, Parameters, Request
from mockllm.protocols.openai_common import function_call
from mockllm.protocols.records import Fields, Json
from mockllm.protocols.values import function_tool
from mockllm.protocols.writing import joined_answers, paired, with_function_tools


def write(request: Request, parameters: Parameters) -> Json:
    """The input of a run."""
    request = with_function_tools(request)
    history = enumerate(joined_answers(paired(request.messages)), 1)
    return {
        "threadId": "thread_1",
        "runId": "run_1",
        "messages": [
            write_message(f"{message.role}_{number}", message) for number, message in history
        ],
        "tools": list(map(function_tool, request.tools)),
        "context": [],
        "state": {},
        "forwardedProps": {},
    }


def parameters(body: Fields) -> Parameters:
    """The parameters in a body: none."""
    return Parameters()


def write_message(id: str, message: Message) -> Json:
    """A message as the API has it."""
    written: Json = {"id": id, "role": message.role}
    if message.role == "tool":
        failed = {"error": message.text} if message.error else {}
        return {**written, "toolCallId": message.call_id, "content": message.text, **failed}
    if message.text or not message.calls:
        written["content"] = message.text
    calls = [function_call(call.id, call.name, call.arguments) for call in message.calls]
    return written | ({"toolCalls": calls} if calls else {})
