"""What a request looks like in each API: enough for `show`, `demo` and the checking kit.

The continuations show both ways of going on: most APIs send the whole history again, Responses
points at the earlier answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mockllm.core.request import Request
from mockllm.core.turn import ToolCall
from mockllm.protocols.base import WireProtocol
from mockllm.scenario.model import Match, Scenario, ToolSpec

__all__ = ["ASKING", "Asking", "Json", "asked", "first_body", "user_text"]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asking:
    """How one API is asked.

    Args:
        first: the body of a conversation that begins with what a user says, for a model.
        tools: how tools are offered.
        then: the body that brings results: from the body before, the id of the answer to it,
            the calls it made, and the result of each.
        path: where a streamed answer is asked for, `{model}` and all.
        headers: what the service demands besides the content type.
        params: what `WireProtocol.parse` gets from path and query; `{model}` in them, too.
    """

    first: Callable[[str, str], Json]
    tools: Callable[[Sequence[ToolSpec]], Json]
    then: Callable[[Json, str, Sequence[ToolCall], Sequence[str]], Json]
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)


def user_text(scenario: Scenario) -> str:
    """What a user may say to get this scenario."""
    match = scenario.match or Match()
    return "Hello" if match.user is None or match.user.op == "regex" else match.user.value


def first_body(asking: Asking, model: str, text: str, tools: Sequence[ToolSpec] = ()) -> Json:
    """The body of the first request of a conversation, for a streamed answer."""
    return {**asking.first(model, text), **(asking.tools(tools) if tools else {})}


def _chat_first(model: str, text: str) -> Json:
    return {"model": model, "stream": True, "messages": [{"role": "user", "content": text}]}


def _chat_tools(tools: Sequence[ToolSpec]) -> Json:
    return {"tools": [{"type": "function", "function": _function(tool)} for tool in tools]}


def _chat_then(body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]) -> Json:
    made = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in calls
    ]
    told = [
        {"role": "tool", "tool_call_id": call.id, "content": text}
        for call, text in zip(calls, results, strict=True)
    ]
    said = {"role": "assistant", "content": None, "tool_calls": made}
    return {**body, "messages": [*body["messages"], said, *told]}


def _responses_first(model: str, text: str) -> Json:
    return {"model": model, "stream": True, "input": text}


def _responses_tools(tools: Sequence[ToolSpec]) -> Json:
    return {"tools": [{"type": "function", **_function(tool)} for tool in tools]}


def _responses_then(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    told = [
        {"type": "function_call_output", "call_id": call.id, "output": text}
        for call, text in zip(calls, results, strict=True)
    ]
    return {**body, "previous_response_id": answer, "input": told}


def _anthropic_first(model: str, text: str) -> Json:
    said = [{"role": "user", "content": text}]
    return {"model": model, "max_tokens": 1024, "stream": True, "messages": said}


def _anthropic_tools(tools: Sequence[ToolSpec]) -> Json:
    return {
        "tools": [
            {"name": tool.name, "description": tool.description, "input_schema": _schema(tool)}
            for tool in tools
        ]
    }


def _anthropic_then(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    made = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.parsed()}
        for call in calls
    ]
    told = [
        {"type": "tool_result", "tool_use_id": call.id, "content": text}
        for call, text in zip(calls, results, strict=True)
    ]
    said = [{"role": "assistant", "content": made}, {"role": "user", "content": told}]
    return {**body, "messages": [*body["messages"], *said]}


def _gemini_first(model: str, text: str) -> Json:
    return {"contents": [{"role": "user", "parts": [{"text": text}]}]}


def _gemini_tools(tools: Sequence[ToolSpec]) -> Json:
    return {"tools": [{"functionDeclarations": [_function(tool) for tool in tools]}]}


def _gemini_then(
    body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]
) -> Json:
    made = [{"functionCall": {"name": call.name, "args": call.parsed()}} for call in calls]
    told = [
        {"functionResponse": {"name": call.name, "response": {"result": text}}}
        for call, text in zip(calls, results, strict=True)
    ]
    said = [{"role": "model", "parts": made}, {"role": "user", "parts": told}]
    return {**body, "contents": [*body["contents"], *said]}


def _agui_first(model: str, text: str) -> Json:
    said = [{"id": "user_1", "role": "user", "content": text}]
    empty: Json = {"tools": [], "context": [], "state": {}, "forwardedProps": {}}
    return {"threadId": "thread_1", "runId": "run_1", "messages": said, **empty}


def _agui_tools(tools: Sequence[ToolSpec]) -> Json:
    return {"tools": [_function(tool) for tool in tools]}


def _agui_then(body: Json, answer: str, calls: Sequence[ToolCall], results: Sequence[str]) -> Json:
    said = {"id": f"assistant_{len(body['messages'])}", "role": "assistant"}
    made = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in calls
    ]
    told = [
        {"id": f"tool_{call.id}", "role": "tool", "toolCallId": call.id, "content": text}
        for call, text in zip(calls, results, strict=True)
    ]
    run = f"run_{int(body['runId'].removeprefix('run_')) + 1}"
    messages = [*body["messages"], {**said, "toolCalls": made}, *told]
    return {**body, "runId": run, "messages": messages}


def _function(tool: ToolSpec) -> Json:
    return {"name": tool.name, "description": tool.description, "parameters": _schema(tool)}


def _schema(tool: ToolSpec) -> Json:
    return tool.parameters or {"type": "object", "properties": {}}


_KEY = {"authorization": "Bearer mock-key"}

ASKING: dict[str, Asking] = {
    "chat": Asking(_chat_first, _chat_tools, _chat_then, "/v1/chat/completions", _KEY),
    "responses": Asking(_responses_first, _responses_tools, _responses_then, "/v1/responses", _KEY),
    "anthropic": Asking(
        _anthropic_first,
        _anthropic_tools,
        _anthropic_then,
        "/v1/messages",
        {"x-api-key": "mock-key", "anthropic-version": "2023-06-01"},
    ),
    "gemini": Asking(
        _gemini_first,
        _gemini_tools,
        _gemini_then,
        "/v1beta/models/{model}:streamGenerateContent?alt=sse",
        {"x-goog-api-key": "mock-key"},
        {":": "streamGenerateContent", "?alt": "sse", "model": "{model}"},
    ),
    "agui": Asking(_agui_first, _agui_tools, _agui_then, "/agui"),
}


def asked(protocol: WireProtocol, scenario: Scenario, text: str, model: str) -> Request:
    """The request for a streamed answer that tells all it can, usage included."""
    asking = ASKING[protocol.name]
    body = first_body(asking, model, text, scenario.tools)
    if protocol.name == "chat":
        body["stream_options"] = {"include_usage": True}
    params = {key: value.format(model=model) for key, value in asking.params.items()}
    return replace(protocol.parse(body, params, False), stream=True)
