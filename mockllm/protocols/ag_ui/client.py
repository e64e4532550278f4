"""The requests that a client of an AG-UI agent sends; each run has all messages."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.request import Message
from mockllm.core.turn import ToolCall
from mockllm.protocols.ag_ui.writing import parameters, write, write_message
from mockllm.protocols.records import ClientRequests, Json, with_messages
from mockllm.protocols.writing import answered


def _continuation(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    called, *given = answered(calls, results)
    tool_messages = [write_message(f"tool_{result.call_id}", result) for result in given]
    assistant = write_message(f"assistant_{len(body['messages'])}", called)
    return _next_run(with_messages(body, assistant, *tool_messages))


def _next_message(body: Json, answer: str, text: str, user: str) -> Json:
    count = len(body["messages"])
    said = write_message(f"assistant_{count}", Message("assistant", text))
    asked = write_message(f"user_{count}", Message("user", user))
    return _next_run(with_messages(body, said, asked))


def _next_run(body: Json) -> Json:
    number = int(body["runId"].removeprefix("run_")) + 1
    return {**body, "runId": f"run_{number}"}


CLIENT = ClientRequests(
    write=write,
    parameters=parameters,
    continuation=_continuation,
    next_message=_next_message,
    path="/agui",
    service="http://localhost",
    group="agui",
    may_leave_calls=True,
)
