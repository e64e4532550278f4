"""How each API is asked: its request, what the user says in it, and the results of tools.

The form is that of the arguments of the official client, which is JSON but for Gemini, whose
client has names of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """What a tool gave: the id and name of its call, and its words."""

    id: str
    name: str
    text: str


@dataclass(frozen=True)
class Dialect:
    """One API as a client speaks it.

    Args:
        model: that is asked.
        history: the field with the conversation.
        fields: of every request, besides model and history.
        offer: the fields that offer tools (name, description, parameters).
        said: what the user says, as an item of the history.
        results: what tools gave, as items of the history.
    """

    model: str
    history: str
    fields: Json
    offer: Callable[[list[Json]], Json]
    said: Callable[[str], Json]
    results: Callable[[Sequence[Result]], list[Json]]

    def request(self, text: str, tools: list[Json]) -> Json:
        """The request that begins a conversation."""
        offered = self.offer(tools) if tools else {}
        return {"model": self.model, self.history: [self.said(text)], **self.fields, **offered}


def _said(text: str) -> Json:
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
    declared = [
        {
            "name": tool["name"],
            "description": tool["description"],
            "parameters_json_schema": tool["parameters"],
        }
        for tool in tools
    ]
    return {"config": {"tools": [{"function_declarations": declared}]}}


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


def _agui_results(results: Sequence[Result]) -> list[Json]:
    return [{"role": "tool", "toolCallId": each.id, "content": each.text} for each in results]


DIALECTS = {
    "chat": Dialect(
        "gpt-4o",
        "messages",
        {},
        lambda tools: {"tools": [{"type": "function", "function": tool} for tool in tools]},
        _said,
        _chat_results,
    ),
    "responses": Dialect(
        "gpt-4o",
        "input",
        {},
        lambda tools: {"tools": [{"type": "function", "strict": False, **tool} for tool in tools]},
        _said,
        _responses_results,
    ),
    # The client warns of models that are to be retired, so this is none that there is.
    "anthropic": Dialect(
        "claude-mock",
        "messages",
        {"max_tokens": 1024},
        lambda tools: {"tools": list(map(_anthropic_tool, tools))},
        _said,
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
        _said,
        _agui_results,
    ),
}
