"""Bodies of requests of Responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fuzz.bodies.values import MODEL, PNG, SCHEMA


def bodies() -> Iterator[dict[str, Any]]:
    """Two bodies at least; the first one has most fields."""
    yield {
        "model": MODEL,
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "hello"},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "party 🎉"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
                    {"type": "input_file", "file_id": "file-1"},
                ],
            },
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "t"}],
                "encrypted_content": "abc",
            },
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "get_weather",
                "arguments": '{"city":"Paris"}',
            },
            {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
            },
            {"role": "user", "content": "weather"},
        ],
        "tools": [
            {
                "type": "function",
                "name": "get_weather",
                "description": "d",
                "parameters": SCHEMA,
                "strict": True,
            },
            {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}},
            {"type": "code_interpreter", "container": {"type": "auto"}},
            {"type": "custom", "name": "free", "format": {"type": "text"}},
        ],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []},
        "stream": True,
        "stream_options": {"include_obfuscation": False},
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "metadata": {"a": "b"},
        "max_output_tokens": 100,
        "max_tool_calls": 2,
        "parallel_tool_calls": True,
        "store": True,
        "temperature": 1,
        "top_logprobs": 2,
        "truncation": "disabled",
        "user": "u",
        "conversation": {"id": "conv_1"},
        "prompt": {"id": "pmpt_1", "variables": {"a": "b"}},
    }
    yield {
        "model": MODEL,
        "input": "json please",
        "previous_response_id": "resp_1",
        "text": {"format": {"type": "json_schema", "name": "w", "schema": SCHEMA}},
    }
