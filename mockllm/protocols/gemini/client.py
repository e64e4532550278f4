"""The requests that a client of Gemini sends, with the model and the method in the path."""

from __future__ import annotations

from collections.abc import Sequence

from mockllm.core.request import OfferedTool
from mockllm.core.turn import ToolCall
from mockllm.protocols.gemini.fields import signature_of
from mockllm.protocols.gemini.opaque import opaque_mistake
from mockllm.protocols.records import Client, Json
from mockllm.protocols.values import function_tool

__all__ = ["CLIENT"]


def _first_request(model: str, user: str) -> Json:
    return {"contents": [{"role": "user", "parts": [{"text": user}]}]}


def _tools(tools: Sequence[OfferedTool]) -> Json:
    return {"tools": [{"functionDeclarations": list(map(function_tool, tools))}]}


def _continuation(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    parts = [
        {
            "functionCall": {"name": call.name, "args": call.parsed()},
            **({"thoughtSignature": signature_of(call.signature)} if call.signature else {}),
        }
        for call in calls
    ]
    responses = [
        {"functionResponse": {"name": call.name, "response": {"result": text}}}
        for call, text in zip(calls, results, strict=True)
    ]
    more = [{"role": "model", "parts": parts}, {"role": "user", "parts": responses}]
    return {**body, "contents": [*body["contents"], *more]}


def _next_message(body: Json, answer: str, text: str, user: str) -> Json:
    more = [
        {"role": role, "parts": [{"text": part}]}
        for role, part in (("model", text), ("user", user))
    ]
    return {**body, "contents": [*body["contents"], *more]}


CLIENT = Client(
    first_request=_first_request,
    tools=_tools,
    continuation=_continuation,
    next_message=_next_message,
    path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
    body_path="/v1beta/models/{model}:generateContent",
    service="https://generativelanguage.googleapis.com",
    group="gemini",
    tool_fields=("tools", "toolConfig", "tool_config"),
    headers={"x-goog-api-key": "mock-key"},
    arguments_are_values=True,
    may_lack_call_ids=lambda _: True,
    opaque_mistake=opaque_mistake,
)
