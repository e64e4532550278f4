"""Google Gemini: refusing requests with the service's errors."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import RequestError
from mockllm.core.request import Request
from mockllm.wire.protocols.gemini.protocol import PROTOCOL
from tests.cases import for_all
from tests.strategies import json_values, texts
from tests.wire.protocols.test_gemini_requests import HELLO, history, parsed, with_tools

Json = dict[str, Any]

ANSWERED = [{"name": "f", "response": {}}]


@for_all(
    ("body", "param", "message"),
    [
        ({}, "contents", "* GenerateContentRequest.contents: contents is not specified"),
        ({"contents": []}, "contents", "contents is not specified"),
        ({"contents": "Hello"}, "contents", "Invalid value at 'contents'"),
        ({"contents": ["Hello"]}, "contents[0]", "Invalid value at 'contents[0]'"),
        (
            {"contents": [{"role": "system", "parts": [{"text": "x"}]}]},
            "contents[0].role",
            "Please use a valid role: user, model.",
        ),
        ({"contents": [{"role": "user", "parts": []}]}, "contents[0].parts", "must not be empty"),
        (
            {"contents": [{"parts": [{}]}]},
            "contents[0].parts[0].data",
            "required oneof field 'data' must have one initialized field",
        ),
        ({"contents": [{"parts": [{"text": 5}]}]}, "contents[0].parts[0].text", "TYPE_STRING"),
        (
            {"contents": [{"parts": [{"text": "x", "inlineData": {}}]}]},
            "contents[0].parts[0]",
            "oneof field 'data' is already set",
        ),
        (
            {"contents": [{"parts": [{"functionCall": {"name": "f"}}]}]},
            "contents[0].parts[0].function_call",
            "only allowed with the role 'model'",
        ),
        (
            {"contents": [{"role": "model", "parts": [{"functionCall": {"name": ""}}]}]},
            "contents[0].parts[0].function_call.name",
            "Name cannot be empty",
        ),
        (
            {
                "contents": [
                    {"role": "model", "parts": [{"functionCall": {"name": "f", "args": ""}}]}
                ]
            },
            "contents[0].parts[0].function_call.args",
            "google.protobuf.Struct",
        ),
        (history("f", "g", results=ANSWERED), "contents", "number of function response parts"),
        (history("f", results=[]), "contents", "number of function response parts"),
        (
            {"contents": [{"parts": [{"functionResponse": ANSWERED[0]}]}]},
            "contents",
            "function response turn comes immediately after a function call turn",
        ),
        (history("g", results=ANSWERED), "contents", "function response 'f'"),
        ({"messages": []}, "messages", 'Unknown name "messages": Cannot find field.'),
        ({"contents": [HELLO], "tools": {}}, "tools", "Invalid value at 'tools'"),
        (
            {"contents": [HELLO], "tools": [{"functionDeclarations": [{"name": "1 f"}]}]},
            "tools[0].function_declarations[0].name",
            "Invalid function name.",
        ),
        (
            {"contents": [HELLO], "tools": [{"functionDeclarations": [{"name": "f"}] * 2}]},
            "tools[0].function_declarations[1].name",
            "Duplicate function declaration found: f",
        ),
        (
            {
                "contents": [HELLO],
                "tools": [
                    {"functionDeclarations": [{"name": "f", "parameters": {"type": "STRING"}}]}
                ],
            },
            "tools[0].function_declarations[0].parameters",
            "schema should be of type OBJECT",
        ),
        (
            {
                "contents": [HELLO],
                "tools": [
                    {"functionDeclarations": [{"name": "f", "parameters": {"required": ["a"]}}]}
                ],
            },
            "tools[0].function_declarations[0].parameters.required[0]",
            "property is not defined: a",
        ),
        (
            {
                "contents": [HELLO],
                "tools": [
                    {
                        "functionDeclarations": [
                            {"name": "f", "parameters": {}, "parametersJsonSchema": {}}
                        ]
                    }
                ],
            },
            "tools[0].function_declarations[0]",
            "only one of",
        ),
        (
            with_tools(toolConfig={"functionCallingConfig": {"mode": "MUST"}}),
            "tool_config.function_calling_config.mode",
            '"MUST"',
        ),
        (
            {"contents": [HELLO], "toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
            "tool_config.function_calling_config",
            "without function_declarations",
        ),
        (
            with_tools(
                toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["h"]}}
            ),
            "tool_config.function_calling_config.allowed_function_names[0]",
            "'h'",
        ),
        (
            with_tools(toolConfig={"functionCallingConfig": {"allowedFunctionNames": ["f"]}}),
            "tool_config.function_calling_config.allowed_function_names",
            "ANY or VALIDATED",
        ),
        (
            {"contents": [HELLO], "generationConfig": {"temperature": 3}},
            "generation_config.temperature",
            "must be in the range [0, 2]",
        ),
        (
            {"contents": [HELLO], "generationConfig": {"maxOutputTokens": "9"}},
            "generation_config.max_output_tokens",
            "Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), \"9\"",
        ),
        (
            {"contents": [HELLO], "systemInstruction": "Be brief."},
            "system_instruction",
            "Invalid value at 'system_instruction'",
        ),
    ],
)
def test_refusals(body: Json, param: str, message: str) -> None:
    """A request that the service refuses gets its message and the field with the mistake."""
    with pytest.raises(RequestError) as caught:
        parsed(body)
    assert (caught.value.param, caught.value.status) == (param, 400)
    assert message in caught.value.message
    assert isinstance(parsed(body, strict=False), Request)


loose = st.recursive(
    json_values,
    lambda inner: st.dictionaries(
        st.sampled_from(
            [
                "contents",
                "parts",
                "role",
                "text",
                "functionCall",
                "functionResponse",
                "response",
                "args",
                "name",
                "tools",
                "functionDeclarations",
                "parameters",
                "toolConfig",
                "functionCallingConfig",
                "allowedFunctionNames",
                "mode",
                "generationConfig",
                "responseSchema",
                "candidateCount",
            ]
        ),
        inner | st.lists(inner, max_size=2),
        max_size=3,
    ),
    max_leaves=8,
)


@given(st.dictionaries(texts, json_values, max_size=1), loose)
def test_nothing_makes_lenient_parsing_fail(extra: Json, body: Any) -> None:
    """Any JSON object is a request when lenient, and read or refused when strict."""
    given_body = {**extra, **(body if isinstance(body, dict) else {"contents": body})}
    assert PROTOCOL.options(parsed(given_body, strict=False)).candidates >= 1
    with contextlib.suppress(RequestError):
        parsed(given_body)
