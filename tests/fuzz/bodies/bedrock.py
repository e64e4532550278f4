"""Bodies of requests of Amazon Bedrock Converse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fuzz.bodies.values import PNG, SCHEMA

__all__ = ["bodies"]


def bodies() -> Iterator[dict[str, Any]]:
    """Two bodies at least; the first one has most fields."""
    use = {"toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "Paris"}}
    image = {"image": {"format": "png", "source": {"bytes": PNG}}}
    result = {
        "toolUseId": "tooluse_1",
        "content": [{"text": "sunny"}, {"json": {"degrees": 21}}, image],
        "status": "error",
    }
    reasoning = {"reasoningText": {"text": "Hm", "signature": "c2ln"}}
    conversation = {
        "messages": [
            {"role": "user", "content": [{"text": "weather 🎉"}, image]},
            {"role": "assistant", "content": [{"reasoningContent": reasoning}, {"toolUse": use}]},
            {
                "role": "user",
                "content": [{"toolResult": result}, {"cachePoint": {"type": "default"}}],
            },
        ],
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "get_weather", "inputSchema": {"json": SCHEMA}}}],
            "toolChoice": {"tool": {"name": "get_weather"}},
        },
    }
    yield {
        **conversation,
        "inferenceConfig": {
            "maxTokens": 200,
            "temperature": 0.5,
            "topP": 1,
            "stopSequences": ["|"],
        },
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
        "outputConfig": {
            "textFormat": {
                "type": "json_schema",
                "structure": {"jsonSchema": {"schema": '{"type": "object"}', "name": "n"}},
            }
        },
        "performanceConfig": {"latency": "standard"},
        "requestMetadata": {"team": "a"},
    }
    yield {"input": {"converse": conversation}}
    yield {"input": {"invokeModel": {"body": "eyJtZXNzYWdlcyI6W119"}}}
