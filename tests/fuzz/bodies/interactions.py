"""Bodies of requests of Gemini Interactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fuzz.bodies.values import MODEL, PNG, SCHEMA

__all__ = ["bodies"]


def bodies() -> Iterator[dict[str, Any]]:
    """Three bodies; the first one has most fields."""
    picture = {"type": "image", "data": PNG, "mime_type": "image/png", "resolution": "low"}
    document = {"type": "document", "uri": "gs://a/b.pdf", "mime_type": "application/pdf"}
    call = {"id": "c1", "name": "get_weather", "arguments": {"city": "Paris"}}
    result = {"call_id": "c1", "name": "get_weather", "is_error": False}
    yield {
        "model": MODEL,
        "input": [
            {"type": "user_input", "content": [{"type": "text", "text": "party 🎉"}, picture]},
            {
                "type": "thought",
                "signature": "c2ln",
                "summary": [{"type": "text", "text": "Hm"}],
            },
            {"type": "model_output", "content": [{"type": "text", "text": "I will look."}]},
            {"type": "function_call", **call},
            {"type": "function_result", **result, "result": [{"type": "text", "text": "22"}]},
            {"type": "google_search_call", "id": "s1", "arguments": {"queries": ["a"]}},
            {"type": "google_search_result", "call_id": "s1", "result": []},
            {"type": "user_input", "content": [{"type": "text", "text": "hello"}, document]},
        ],
        "system_instruction": "Be brief.",
        "tools": [
            {"type": "function", "name": "get_weather", "description": "d", "parameters": SCHEMA},
            {"type": "google_search"},
        ],
        "generation_config": {
            "temperature": 0.7,
            "top_p": 0.9,
            "seed": 1,
            "stop_sequences": ["x"],
            "max_output_tokens": 500,
            "thinking_level": "low",
            "thinking_summaries": "auto",
            "tool_choice": {"allowed_tools": {"mode": "any", "tools": ["get_weather"]}},
        },
        "response_format": {"type": "text", "mime_type": "application/json", "schema": SCHEMA},
        "service_tier": "standard",
        "labels": {"team": "a"},
        "store": True,
        "background": False,
        "stream": True,
    }
    yield {"model": MODEL, "input": "hello"}
    yield {"agent": "deep-research", "input": {"type": "text", "text": "hello"}, "background": True}
