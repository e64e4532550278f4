"""Bodies of requests of Cohere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fuzz.bodies.values import MODEL, PNG, SCHEMA

__all__ = ["bodies"]


def bodies() -> Iterator[dict[str, Any]]:
    """Two bodies; the first one has most fields."""
    function = {"name": "get_weather", "arguments": '{"city":"Paris"}'}
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    document = {"type": "document", "document": {"id": "1", "data": {"text": "sunny"}}}
    yield {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "party 🎉"}, picture]},
            {
                "role": "assistant",
                "tool_plan": "I will look.",
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
                "citations": [{"start": 0, "end": 1, "text": "I", "sources": []}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": [document]},
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "x"}],
            },
            {"role": "user", "content": "hello"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "get_weather", "description": "d", "parameters": SCHEMA},
            }
        ],
        "tool_choice": "REQUIRED",
        "strict_tools": True,
        "documents": ["a", {"data": {"text": "b"}}],
        "citation_options": {"mode": "accurate"},
        "response_format": {"type": "json_object", "json_schema": SCHEMA},
        "safety_mode": "NONE",
        "max_tokens": 9,
        "stop_sequences": ["x"],
        "temperature": 0.3,
        "seed": 1,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.1,
        "k": 5,
        "p": 0.9,
        "logprobs": True,
        "thinking": {"type": "enabled", "token_budget": 99},
        "stream": True,
    }
    yield {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}
