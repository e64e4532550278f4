"""Requests as clients of all five APIs write them, put together from what is said in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from mockllm.core.turn import ToolCall

Json = dict[str, Any]
MODELS = {"gemini": "gemini-3-flash-preview"}


@dataclass(frozen=True)
class Said:
    """What the model said, as a client sends it back."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class Gave:
    """What a tool gave."""

    id: str
    name: str
    text: str
    error: bool = False


Item = str | Said | Gave


def called(*calls: ToolCall) -> Said:
    return Said(calls=calls)


def gave(call: ToolCall, text: str, *, error: bool = False) -> Gave:
    return Gave(call.id, call.name, text, error)


def call(name: str, id: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(name, id, (arguments,))


def body(api: str, *items: Item, tools: Sequence[str] = ()) -> Json:
    """The body of a request with the whole history; a string is what the user says."""
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
            case Said(text, calls):
                made = {"tool_calls": list(map(_function, calls))} if calls else {}
                messages.append({"role": "assistant", "content": text or None, **made})
            case Gave(id, _, text):
                messages.append({"role": "tool", "tool_call_id": id, "content": text})
    return {"model": "gpt-4o", "stream": True, "messages": messages}


def results_of_responses(items: Sequence[Item]) -> list[Json]:
    """Items of an `input`."""
    made: list[Json] = []
    for item in items:
        match item:
            case str():
                made.append({"role": "user", "content": item})
            case Said(text, calls):
                if text:
                    made.append({"role": "assistant", "content": text})
                for call in calls:
                    named = {"name": call.name, "arguments": call.arguments}
                    made.append({"type": "function_call", "call_id": call.id, **named})
            case Gave(id, _, text):
                made.append({"type": "function_call_output", "call_id": id, "output": text})
    return made


def _responses(items: Sequence[Item]) -> Json:
    return {"model": "gpt-4o", "stream": True, "input": results_of_responses(items)}


def _anthropic(items: Sequence[Item]) -> Json:
    messages: list[Json] = []
    for kind, group in groupby(items, type):
        if kind is Gave:
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
                {"type": "tool_use", "id": one.id, "name": one.name, "input": one.parsed()}
                for one in item.calls
            ]
            messages.append({"role": "assistant", "content": [*text, *uses]})
    return {"model": "claude-mock", "max_tokens": 99, "stream": True, "messages": messages}


def _gemini(items: Sequence[Item]) -> Json:
    contents: list[Json] = []
    for kind, group in groupby(items, type):
        if kind is Gave:
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
            made = [
                {"functionCall": {"id": one.id, "name": one.name, "args": one.parsed()}}
                for one in item.calls
            ]
            contents.append({"role": "model", "parts": [*text, *made]})
    return {"contents": contents}


def _agui(items: Sequence[Item]) -> Json:
    messages: list[Json] = []
    for number, item in enumerate(items):
        id = f"m{number}"
        match item:
            case str():
                messages.append({"id": id, "role": "user", "content": item})
            case Said(text, calls):
                made = {"toolCalls": list(map(_function, calls))} if calls else {}
                said = {"content": text} if text else {}
                messages.append({"id": id, "role": "assistant", **said, **made})
            case Gave(call_id, _, text, error):
                told = {"content": text, **({"error": text} if error else {})}
                messages.append({"id": id, "role": "tool", "toolCallId": call_id, **told})
    return {"threadId": "t", "runId": f"r{len(items)}", "messages": messages}


def _named(names: Sequence[str], field: str = "parameters") -> list[Json]:
    schema = {"type": "object", "properties": {}}
    return [{"name": name, "description": "A tool.", field: schema} for name in names]


_WRITE: dict[str, Callable[[Sequence[Item]], Json]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "agui": _agui,
}
_OFFER: dict[str, Callable[[Sequence[str]], Json]] = {
    "chat": lambda names: {
        "tools": [{"type": "function", "function": one} for one in _named(names)]
    },
    "responses": lambda names: {"tools": [{"type": "function", **one} for one in _named(names)]},
    "anthropic": lambda names: {"tools": _named(names, "input_schema")},
    "gemini": lambda names: {"tools": [{"functionDeclarations": _named(names)}]},
    "agui": lambda names: {"tools": _named(names)},
}
