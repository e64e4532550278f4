"""Bodies of requests of Chat Completions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fuzz.bodies.values import MODEL, PNG, SCHEMA


def bodies() -> Iterator[dict[str, Any]]:
    """Two bodies at least; the first one has most fields."""
    yield {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
            {
                "role": "user",
                "name": "ann",
                "content": [
                    {"type": "text", "text": "party 🎉"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
                    {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}},
                    {"type": "file", "file": {"file_id": "file-1"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
            {"role": "user", "content": "hello"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "get_weather",
                    "description": "d",
                    "parameters": SCHEMA,
                    "strict": True,
                },
            },
            {"type": "custom", "custom": {"name": "free", "format": {"type": "text"}}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
        "parallel_tool_calls": False,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "top_p": 1,
        "n": 1,
        "stop": ["END"],
        "max_tokens": 100,
        "logprobs": True,
        "top_logprobs": 2,
        "logit_bias": {"50256": -100},
        "seed": 1,
        "user": "u",
        "metadata": {"a": "b"},
        "store": False,
        "modalities": ["text"],
        "service_tier": "auto",
        "reasoning_effort": "low",
        "prediction": {"type": "content", "content": "x"},
    }
    yield {
        "model": MODEL,
        "messages": [{"role": "user", "content": "json please"}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "w", "schema": SCHEMA, "strict": True},
        },
        "functions": [{"name": "old", "parameters": SCHEMA}],
        "function_call": "auto",
    }
