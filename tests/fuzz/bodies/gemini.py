"""Bodies of requests of generateContent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fuzz.bodies.values import PNG, SCHEMA


def bodies() -> Iterator[dict[str, Any]]:
    """Two bodies at least; the first one has most fields."""
    yield {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "party 🎉"},
                    {"inlineData": {"mimeType": "image/png", "data": PNG}},
                    {"fileData": {"mimeType": "image/png", "fileUri": "gs://a/b"}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "t", "thought": True, "thoughtSignature": "c2ln"},
                    {"functionCall": {"id": "1", "name": "get_weather", "args": {"city": "x"}}},
                    {"executableCode": {"language": "PYTHON", "code": "1"}},
                    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "1",
                            "name": "get_weather",
                            "response": {"result": "sunny"},
                        }
                    }
                ],
            },
            {"role": "user", "parts": [{"text": "hello"}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "get_weather", "description": "d", "parameters": SCHEMA},
                    {"name": "other", "parametersJsonSchema": SCHEMA},
                ]
            },
            {"googleSearch": {}},
            {"codeExecution": {}},
            {"urlContext": {}},
        ],
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get_weather"]}
        },
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        "generationConfig": {
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 5,
            "candidateCount": 1,
            "maxOutputTokens": 100,
            "stopSequences": ["END"],
            "seed": 1,
            "responseLogprobs": True,
            "logprobs": 2,
            "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 10},
            "responseModalities": ["TEXT"],
        },
        "cachedContent": "cachedContents/a",
        "labels": {"a": "b"},
    }
    yield {
        "contents": {"parts": {"text": "json please"}},
        "generation_config": {
            "response_mime_type": "application/json",
            "response_schema": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
        },
    }
    yield {
        "contents": [{"parts": [{"text": "json please"}]}],
        "generationConfig": {
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
        },
    }
