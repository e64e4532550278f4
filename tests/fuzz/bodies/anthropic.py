"""Bodies of requests of Messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fuzz.bodies.values import MODEL, PNG, SCHEMA


def bodies() -> Iterator[dict[str, Any]]:
    """Two bodies at least; the first one has most fields."""
    yield {
        "model": MODEL,
        "max_tokens": 2000,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "party 🎉"},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                    },
                    {
                        "type": "document",
                        "source": {"type": "text", "media_type": "text/plain", "data": "x"},
                        "citations": {"enabled": True},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "redacted_thinking", "data": "d"},
                    {"type": "text", "text": "calling"},
                    {
                        "type": "tool_use",
                        "id": "toolu_1",
                        "name": "get_weather",
                        "input": {"city": "Paris"},
                    },
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "is_error": False,
                        "content": [{"type": "text", "text": "sunny"}],
                    },
                    {"type": "text", "text": "hello"},
                ],
            },
        ],
        "tools": [
            {"name": "get_weather", "description": "d", "input_schema": SCHEMA},
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 1},
            {"type": "bash_20250124", "name": "bash"},
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "stream": True,
        "stop_sequences": ["END"],
        "temperature": 1,
        "top_k": 5,
        "top_p": 0.9,
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "mcp_servers": [{"type": "url", "url": "https://a.example", "name": "m"}],
        "container": {"id": "c", "skills": []},
        "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
    }
    yield {
        "model": MODEL,
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "json please"}],
        "output_format": {"type": "json_schema", "schema": SCHEMA},
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    }
