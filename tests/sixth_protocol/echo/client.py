"""How a client of the Echo API goes on with a conversation."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.request import Message, Parameters
from mockllm.core.turn import ToolCall
from mockllm.protocols.records import ClientRequests, Json
from mockllm.protocols.writing import answered
from tests.sixth_protocol.echo.writing import entries, write


def _continuation(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    return {**body, "dialogue": [*body["dialogue"], *entries(answered(calls, results))]}


def _next_message(body: Json, answer: str, text: str, user: str) -> Json:
    more = entries([Message("assistant", text), Message("user", user)])
    return {**body, "dialogue": [*body["dialogue"], *more]}


CLIENT = ClientRequests(
    write=write,
    parameters=lambda body: Parameters(),
    continuation=_continuation,
    next_message=_next_message,
    path="/echo/v2/speak",
    service="https://echo.example",
    group="echo",
    headers={"x-echo-key": "mock-key"},
    stream_field="live",
    tool_fields=("gadgets", "pick"),
)
