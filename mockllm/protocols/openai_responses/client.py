"""The requests that a client of Responses sends: a continuation names the earlier answer by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mockllm.core.request import OfferedTool
from mockllm.core.turn import ToolCall
from mockllm.protocols.openai_responses.opaque import opaque_mistake
from mockllm.protocols.records import Client, Json
from mockllm.protocols.values import function_tool

__all__ = ["CLIENT"]

_CLIENT_RESULTS = ("function_call_output", "custom_tool_call_output")
"""The types of input items with the result of a call of the client; the second of a custom one."""

_HOSTED_ID = ("call_id", "approval_request_id")


def _first_request(model: str, user: str) -> Json:
    return {"model": model, "stream": True, "input": user}


def _tools(tools: Sequence[OfferedTool]) -> Json:
    return {"tools": [{"type": "function", **function_tool(tool)} for tool in tools]}


def _continuation(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    outputs = [
        {"type": _CLIENT_RESULTS[call.custom], "call_id": call.id, "output": text}
        for call, text in zip(calls, results, strict=True)
    ]
    return {**body, "previous_response_id": answer, "input": outputs}


def _next_message(body: Json, answer: str, text: str, user: str) -> Json:
    return {**body, "previous_response_id": answer, "input": user}


def _hosted_results(body: Mapping[str, Any]) -> frozenset[str]:
    items = body.get("input")
    if not isinstance(items, list):
        return frozenset()
    return frozenset(
        item[name]
        for item in items
        if isinstance(item, dict) and item.get("type") not in _CLIENT_RESULTS
        # Results of a local shell have the id of the call as their own.
        for name in (*_HOSTED_ID, *["id"] * (item.get("type") == "local_shell_call_output"))
        if isinstance(item.get(name), str)
    )


CLIENT = Client(
    first_request=_first_request,
    tools=_tools,
    continuation=_continuation,
    next_message=_next_message,
    path="/v1/responses",
    service="https://api.openai.com",
    group="openai",
    tool_fields=("tools", "tool_choice"),
    headers={"authorization": "Bearer mock-key"},
    stream_field="stream",
    hosted_results=_hosted_results,
    opaque_mistake=opaque_mistake,
)
