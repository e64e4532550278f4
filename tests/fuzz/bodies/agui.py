"""Bodies of requests of AG-UI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fuzz.bodies.values import PNG, SCHEMA


def bodies() -> Iterator[dict[str, Any]]:
    """Two bodies at least; the first one has most fields."""
    yield {
        "threadId": "t1",
        "runId": "r1",
        "parentRunId": "r0",
        "state": {"a": [1, {"b": 2}]},
        "messages": [
            {"id": "m0", "role": "system", "content": "Be brief."},
            {
                "id": "m1",
                "role": "user",
                "content": [
                    {"type": "text", "text": "party 🎉"},
                    {"type": "binary", "mimeType": "image/png", "data": PNG},
                ],
            },
            {
                "id": "m2",
                "role": "assistant",
                "content": "",
                "toolCalls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
                    }
                ],
            },
            {"id": "m3", "role": "tool", "toolCallId": "c1", "content": "sunny"},
            {"id": "m4", "role": "activity", "activityType": "x", "content": {"a": 1}},
            {"id": "m5", "role": "user", "content": "hello"},
        ],
        "tools": [{"name": "get_weather", "description": "d", "parameters": SCHEMA}],
        "context": [{"description": "d", "value": "v"}],
        "forwardedProps": {"a": 1},
        "resume": [{"interruptId": "i", "status": "resolved", "payload": {}}],
    }
