"""Bodies of requests with as many fields as possible, by API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["MODEL", "RICH", "SCHEMA"]

MODEL = "fuzz-1"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Paris", "Rome"]},
        "days": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 2},
    },
    "required": ["city"],
    "additionalProperties": False,
}
_PNG = "iVBORw0KGgo="


def _chat() -> Iterator[dict[str, Any]]:
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
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PNG}"}},
                    {"type": "input_audio", "input_audio": {"data": _PNG, "format": "wav"}},
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


def _responses() -> Iterator[dict[str, Any]]:
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
                    {"type": "input_image", "image_url": f"data:image/png;base64,{_PNG}"},
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


def _anthropic() -> Iterator[dict[str, Any]]:
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
                        "source": {"type": "base64", "media_type": "image/png", "data": _PNG},
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


def _gemini() -> Iterator[dict[str, Any]]:
    yield {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "party 🎉"},
                    {"inlineData": {"mimeType": "image/png", "data": _PNG}},
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


def _agui() -> Iterator[dict[str, Any]]:
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
                    {"type": "binary", "mimeType": "image/png", "data": _PNG},
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


RICH = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "agui": _agui,
}
