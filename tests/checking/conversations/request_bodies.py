"""Request bodies of all APIs with tools, written from a list of messages, calls and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from mockllm.core.turn import ToolCall

Json = dict[str, Any]
MODELS = {"gemini": "gemini-3-flash-preview"}


@dataclass(frozen=True)
class AssistantMessage:
    """A message of the model, as a client sends it back: its text and its tool calls."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool call, as a client sends it."""

    id: str
    name: str
    text: str
    error: bool = False


Item = str | AssistantMessage | ToolResult


def called(*calls: ToolCall) -> AssistantMessage:
    return AssistantMessage(calls=calls)


def result(call: ToolCall, text: str, *, error: bool = False) -> ToolResult:
    return ToolResult(call.id, call.name, text, error)


def call(name: str, id: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(name, id, (arguments,))


def body(api: str, *items: Item, tools: Sequence[str] = ()) -> Json:
    """The body of a request with the whole history; a string is a message of the user.

    Args:
        tools: names of the tools that the request offers.
    """
    written = _WRITE[api](items)
    return {**written, **(_OFFER[api](tools) if tools else {})}


def _function(call: ToolCall) -> Json:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _chat(items: Sequence[Item]) -> Json:
    messages: list[Json] = []
    for item in items:
        match item:
            case str():
                messages.append({"role": "user", "content": item})
            case AssistantMessage(text, calls):
                tool_calls = {"tool_calls": list(map(_function, calls))} if calls else {}
                messages.append({"role": "assistant", "content": text or None, **tool_calls})
            case ToolResult(id, _, text):
                messages.append({"role": "tool", "tool_call_id": id, "content": text})
    return {"model": "gpt-4o", "stream": True, "messages": messages}


def results_of_responses(items: Sequence[Item]) -> list[Json]:
    """The items of a Responses `input`."""
    written: list[Json] = []
    for item in items:
        match item:
            case str():
                written.append({"role": "user", "content": item})
            case AssistantMessage(text, calls):
                if text:
                    written.append({"role": "assistant", "content": text})
                for call in calls:
                    named = {"name": call.name, "arguments": call.arguments}
                    written.append({"type": "function_call", "call_id": call.id, **named})
            case ToolResult(id, _, text):
                written.append({"type": "function_call_output", "call_id": id, "output": text})
    return written


def _responses(items: Sequence[Item]) -> Json:
    return {"model": "gpt-4o", "stream": True, "input": results_of_responses(items)}


def _anthropic(items: Sequence[Item]) -> Json:
    messages: list[Json] = []
    for kind, group in groupby(items, type):
        if kind is ToolResult:
            blocks = [
                {
                    "type": "tool_result",
                    "tool_use_id": one.id,
                    "content": one.text,
                    **({"is_error": True} if one.error else {}),
                }
                for one in group
            ]
            messages.append({"role": "user", "content": blocks})
            continue
        for item in group:
            if isinstance(item, str):
                messages.append({"role": "user", "content": item})
                continue
            text = [{"type": "text", "text": item.text}] if item.text else []
            uses = [
                {"type": "tool_use", "id": one.id, "name": one.name, "input": one.parse_arguments()}
                for one in item.calls
            ]
            messages.append({"role": "assistant", "content": [*text, *uses]})
    return {"model": "claude-mock", "max_tokens": 99, "stream": True, "messages": messages}


def _gemini(items: Sequence[Item]) -> Json:
    contents: list[Json] = []
    for kind, group in groupby(items, type):
        if kind is ToolResult:
            parts = [
                {
                    "functionResponse": {
                        "id": one.id,
                        "name": one.name,
                        "response": {"error" if one.error else "result": one.text},
                    }
                }
                for one in group
            ]
            contents.append({"role": "user", "parts": parts})
            continue
        for item in group:
            if isinstance(item, str):
                contents.append({"role": "user", "parts": [{"text": item}]})
                continue
            text = [{"text": item.text}] if item.text else []
            function_calls = [
                {"functionCall": {"id": one.id, "name": one.name, "args": one.parse_arguments()}}
                for one in item.calls
            ]
            contents.append({"role": "model", "parts": [*text, *function_calls]})
    return {"contents": contents}


def _interactions(items: Sequence[Item]) -> Json:
    steps: list[Json] = []
    for item in items:
        match item:
            case str():
                steps.append({"type": "user_input", "content": [{"type": "text", "text": item}]})
            case AssistantMessage(text, calls):
                if text:
                    content = [{"type": "text", "text": text}]
                    steps.append({"type": "model_output", "content": content})
                for call in calls:
                    named = {"id": call.id, "name": call.name}
                    arguments = call.parse_arguments()
                    steps.append({"type": "function_call", **named, "arguments": arguments})
            case ToolResult(id, name, text, error):
                result = {"call_id": id, "name": name, "result": text, "is_error": error}
                steps.append({"type": "function_result", **result})
    return {"model": "gemini-3.5-flash", "stream": True, "input": steps}


def _agui(items: Sequence[Item]) -> Json:
    messages: list[Json] = []
    for number, item in enumerate(items):
        id = f"m{number}"
        match item:
            case str():
                messages.append({"id": id, "role": "user", "content": item})
            case AssistantMessage(text, calls):
                tool_calls = {"toolCalls": list(map(_function, calls))} if calls else {}
                content = {"content": text} if text else {}
                messages.append({"id": id, "role": "assistant", **content, **tool_calls})
            case ToolResult(call_id, _, text, error):
                content = {"content": text, **({"error": text} if error else {})}
                messages.append({"id": id, "role": "tool", "toolCallId": call_id, **content})
    return {"threadId": "t", "runId": f"r{len(items)}", "messages": messages}


def _ollama(items: Sequence[Item]) -> Json:
    messages: list[Json] = []
    for item in items:
        match item:
            case str():
                messages.append({"role": "user", "content": item})
            case AssistantMessage(text, calls):
                function_calls = [
                    {
                        "id": one.id,
                        "function": {"name": one.name, "arguments": one.parse_arguments()},
                    }
                    for one in calls
                ]
                tool_calls = {"tool_calls": function_calls} if calls else {}
                messages.append({"role": "assistant", "content": text, **tool_calls})
            case ToolResult(id, name, text):
                messages.append(
                    {"role": "tool", "tool_name": name, "tool_call_id": id, "content": text}
                )
    return {"model": "qwen3:8b", "stream": True, "messages": messages}


def _bedrock(items: Sequence[Item]) -> Json:
    messages: list[Json] = []
    for kind, group in groupby(items, type):
        if kind is ToolResult:
            results = [
                {
                    "toolResult": {
                        "toolUseId": result.id,
                        "content": [{"text": result.text}],
                        "status": "error" if result.error else "success",
                    }
                }
                for result in group
            ]
            messages.append({"role": "user", "content": results})
            continue
        for item in group:
            if isinstance(item, str):
                messages.append({"role": "user", "content": [{"text": item}]})
                continue
            text = [{"text": item.text}] if item.text else []
            uses = [
                {
                    "toolUse": {
                        "toolUseId": call.id,
                        "name": call.name,
                        "input": call.parse_arguments(),
                    }
                }
                for call in item.calls
            ]
            messages.append({"role": "assistant", "content": [*text, *uses]})
    return {"messages": messages}


def _realtime(items: Sequence[Item]) -> Json:
    written: list[Json] = []
    for item in results_of_responses(items):
        if "role" in item:
            kind = "output_text" if item["role"] == "assistant" else "input_text"
            item = {**item, "content": [{"type": kind, "text": item["content"]}]}
        written.append({"type": "message", **item})
    return {"model": "gpt-realtime", "session": _SESSION, "items": written}


def _live(items: Sequence[Item]) -> Json:
    config = {"responseModalities": ["TEXT"]}
    return {
        "model": "models/gemini-live",
        "generationConfig": config,
        "turns": _gemini(items)["contents"],
    }


_SESSION = {"type": "realtime", "output_modalities": ["text"]}


def _tool_definitions(names: Sequence[str], field: str = "parameters") -> list[Json]:
    schema = {"type": "object", "properties": {}}
    return [{"name": name, "description": "A tool.", field: schema} for name in names]


_WRITE: dict[str, Callable[[Sequence[Item]], Json]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "interactions": _interactions,
    "agui": _agui,
    "ollama": _ollama,
    "cohere": _chat,
    "bedrock": _bedrock,
    "realtime": _realtime,
    "live": _live,
}


def _functions(names: Sequence[str]) -> Json:
    definitions = _tool_definitions(names)
    return {"tools": [{"type": "function", "function": definition} for definition in definitions]}


_OFFER: dict[str, Callable[[Sequence[str]], Json]] = {
    "chat": _functions,
    "responses": lambda names: {
        "tools": [{"type": "function", **definition} for definition in _tool_definitions(names)]
    },
    "interactions": lambda names: {
        "tools": [{"type": "function", **definition} for definition in _tool_definitions(names)]
    },
    "anthropic": lambda names: {"tools": _tool_definitions(names, "input_schema")},
    "gemini": lambda names: {"tools": [{"functionDeclarations": _tool_definitions(names)}]},
    "live": lambda names: {"tools": [{"functionDeclarations": _tool_definitions(names)}]},
    "agui": lambda names: {"tools": _tool_definitions(names)},
    "ollama": _functions,
    "cohere": _functions,
    "realtime": lambda names: {
        "session": {
            **_SESSION,
            "tools": [
                {"type": "function", **definition} for definition in _tool_definitions(names)
            ],
        }
    },
    "bedrock": lambda names: {
        "toolConfig": {
            "tools": [
                {"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}}
                for name in names
            ]
        }
    },
}
