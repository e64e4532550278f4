"""Requests of each API: their fields, user messages and tool results.

They are arguments of the official client. That is the JSON of the API, except for Gemini, whose
client has its own names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """A tool result: the id and name of its call, and its text."""

    id: str
    name: str
    text: str


@dataclass(frozen=True)
class Dialect:
    """How a client writes the requests of one API.

    Args:
        model: the model of a request.
        history: the name of the field with the messages.
        fields: further fields of every request.
        offer: writes the fields that offer tools (name, description, parameters).
        user_message: writes a message of the user.
        results: writes tool results as messages.
    """

    model: str
    history: str
    fields: Json
    offer: Callable[[list[Json]], Json]
    user_message: Callable[[str], Json]
    results: Callable[[Sequence[Result]], list[Json]]

    def request(self, text: str, tools: list[Json]) -> Json:
        """The first request of a conversation."""
        offered = self.offer(tools) if tools else {}
        return {
            "model": self.model,
            self.history: [self.user_message(text)],
            **self.fields,
            **offered,
        }


def _user_message(text: str) -> Json:
    return {"role": "user", "content": text}


def _chat_results(results: Sequence[Result]) -> list[Json]:
    return [{"role": "tool", "tool_call_id": each.id, "content": each.text} for each in results]


def _responses_results(results: Sequence[Result]) -> list[Json]:
    return [
        {"type": "function_call_output", "call_id": each.id, "output": each.text}
        for each in results
    ]


def _anthropic_tool(tool: Json) -> Json:
    schema = {"input_schema": tool["parameters"]}
    return {"name": tool["name"], "description": tool["description"], **schema}


def _anthropic_results(results: Sequence[Result]) -> list[Json]:
    blocks = [
        {"type": "tool_result", "tool_use_id": each.id, "content": each.text} for each in results
    ]
    return [{"role": "user", "content": blocks}]


def _gemini_offer(tools: list[Json]) -> Json:
    declarations = [
        {
            "name": tool["name"],
            "description": tool["description"],
            "parameters_json_schema": tool["parameters"],
        }
        for tool in tools
    ]
    return {"config": {"tools": [{"function_declarations": declarations}]}}


def _gemini_results(results: Sequence[Result]) -> list[Json]:
    parts = [
        {
            "function_response": {
                "name": each.name,
                "response": {"result": each.text},
                **({"id": each.id} if each.id else {}),
            }
        }
        for each in results
    ]
    return [{"role": "user", "parts": parts}]


def _ollama_results(results: Sequence[Result]) -> list[Json]:
    return [{"role": "tool", "tool_name": each.name, "content": each.text} for each in results]


def _agui_results(results: Sequence[Result]) -> list[Json]:
    return [{"role": "tool", "toolCallId": each.id, "content": each.text} for each in results]


def _bedrock_tool(tool: Json) -> Json:
    schema = {"inputSchema": {"json": tool["parameters"]}}
    return {"toolSpec": {"name": tool["name"], "description": tool["description"], **schema}}


def _bedrock_results(results: Sequence[Result]) -> list[Json]:
    blocks = [
        {"toolResult": {"toolUseId": each.id, "content": [{"text": each.text}]}} for each in results
    ]
    return [{"role": "user", "content": blocks}]


DIALECTS = {
    "chat": Dialect(
        "gpt-4o",
        "messages",
        {},
        lambda tools: {"tools": [{"type": "function", "function": tool} for tool in tools]},
        _user_message,
        _chat_results,
    ),
    "responses": Dialect(
        "gpt-4o",
        "input",
        {},
        lambda tools: {"tools": [{"type": "function", "strict": False, **tool} for tool in tools]},
        _user_message,
        _responses_results,
    ),
    # The client warns of models that will be retired, so this model does not exist.
    "anthropic": Dialect(
        "claude-mock",
        "messages",
        {"max_tokens": 1024},
        lambda tools: {"tools": list(map(_anthropic_tool, tools))},
        _user_message,
        _anthropic_results,
    ),
    # Models of the third generation have ids for their calls, as all other APIs do.
    "gemini": Dialect(
        "gemini-3-flash-preview",
        "contents",
        {},
        _gemini_offer,
        lambda text: {"role": "user", "parts": [{"text": text}]},
        _gemini_results,
    ),
    "agui": Dialect(
        "ag-ui",
        "messages",
        {},
        lambda tools: {"tools": tools},
        _user_message,
        _agui_results,
    ),
    "ollama": Dialect(
        "qwen3:8b",
        "messages",
        {},
        lambda tools: {"tools": [{"type": "function", "function": tool} for tool in tools]},
        _user_message,
        _ollama_results,
    ),
    "bedrock": Dialect(
        "us.anthropic.claude-mock-v1:0",
        "messages",
        {},
        lambda tools: {"toolConfig": {"tools": list(map(_bedrock_tool, tools))}},
        lambda text: {"role": "user", "content": [{"text": text}]},
        _bedrock_results,
    ),
}
