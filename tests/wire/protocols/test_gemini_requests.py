"""Google Gemini: reading the path and the body of a request."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.core.http import Target
from mockllm.core.request import CallEcho, Message, OfferedTool, Request
from mockllm.wire.protocols.gemini.fields import Options
from mockllm.wire.protocols.gemini.protocol import PROTOCOL

Json = dict[str, Any]
STREAM = "streamGenerateContent"
HELLO = {"role": "user", "parts": [{"text": "Hello"}]}


def parsed(
    body: Json,
    *,
    strict: bool = True,
    method: str = STREAM,
    alt: str = "sse",
    **segments: str,
) -> Request:
    """The parsed request of a body."""
    target = Target({"model": "gemini-2.5-flash", **segments}, method, {"alt": alt})
    return PROTOCOL.parse(body, target, strict)


def with_tools(**fields: Any) -> Json:
    declared = [{"name": "f", "parameters": {"type": "OBJECT"}}, {"name": "g"}]
    return {"contents": [HELLO], "tools": [{"functionDeclarations": declared}], **fields}


def history(*calls: str, results: list[Json]) -> Json:
    """A body whose model called these functions and got these results."""
    calls_of_model = [{"functionCall": {"name": name, "args": {"n": 1}}} for name in calls]
    responses = [{"functionResponse": result} for result in results]
    return {
        "contents": [
            HELLO,
            {"role": "model", "parts": [{"text": "Hm"}, *calls_of_model]},
            *([{"role": "user", "parts": responses}] if responses else []),
        ]
    }


# The path


def test_the_path_has_model_and_method() -> None:
    """The model and whether the answer is streamed are in the path."""
    request = parsed({"contents": [HELLO]})
    assert (request.model, request.stream) == ("gemini-2.5-flash", True)
    assert not parsed({"contents": [HELLO]}, method="generateContent").stream


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ({"owner": "mock", "model": "greet"}, "mock/greet"),
        ({"publisher": "google", "model": "gemini-3-pro"}, "gemini-3-pro"),
        ({"publisher": "mock", "model": "greet"}, "mock/greet"),
    ],
)
def test_owner_of_the_model(path: dict[str, str], model: str) -> None:
    """An owner other than Google is part of the model's name."""
    assert parsed({"contents": [HELLO]}, **path).model == model


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ({}, {}, Options()),
        ({"alt": "json"}, {}, Options(array=True)),
        ({"alt": "", "method": "generateContent"}, {}, Options()),
        ({"model": "gemini-3-pro-preview"}, {}, Options(ids=True)),
        ({"publisher": "google"}, {}, Options(vertex=True)),
        ({"publisher": "google", "model": "gemini-3-pro"}, {}, Options(vertex=True)),
        ({}, {"generationConfig": {"candidateCount": 3}}, Options(candidates=3)),
        ({}, {"generation_config": {"candidate_count": 3}}, Options(candidates=3)),
        (
            {},
            {"toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}}},
            Options(partial=True),
        ),
    ],
)
def test_options(path: dict[str, str], body: Json, expected: Options) -> None:
    """The options that the bytes depend on are read from path, query and body."""
    assert PROTOCOL.options(parsed({"contents": [HELLO], **body}, **path)) == expected


# The history


def test_messages() -> None:
    """Model turns keep their calls; every result is a message of its own."""
    results = [
        {"name": "f", "response": {"result": "42"}},
        {"id": "c2", "name": "g", "response": {"error": "no such city"}},
    ]
    body = history("f", "g", results=results)
    body["systemInstruction"] = {"parts": [{"text": "Be "}, {"text": "brief."}]}
    request = parsed(body)
    assert request.system == "Be brief."
    assert request.messages == (
        Message("system", "Be brief."),
        Message("user", "Hello"),
        Message("assistant", "Hm", (CallEcho("", "f", '{"n":1}'), CallEcho("", "g", '{"n":1}'))),
        Message("tool", "42", name="f"),
        Message("tool", "no such city", call_id="c2", name="g", error=True),
    )


@pytest.mark.parametrize(
    ("response", "text"),
    [
        ({"output": "x"}, "x"),
        ({"result": 42}, "42"),
        ({"return_value": {"a": [1]}}, '{"a":[1]}'),
        ({"a": 1, "b": "é"}, '{"a":1,"b":"é"}'),
        ({"city": "Paris"}, '{"city":"Paris"}'),
        ({}, "{}"),
    ],
)
def test_text_of_a_result(response: Json, text: str) -> None:
    """The text of a result is its only field if that is a conventional one, else the JSON of all
    fields."""
    request = parsed(history("f", results=[{"name": "f", "response": response}]))
    assert request.messages[-1].text == text


def test_results_with_text_and_the_old_role() -> None:
    """Text beside results is a user message; the role `function` is read like `user`."""
    body = history("f", results=[{"name": "f", "response": {"result": "1"}}])
    body["contents"][-1] = {
        "role": "function",
        "parts": [*body["contents"][-1]["parts"], {"text": "Well?"}],
    }
    assert [m.role for m in parsed(body).messages] == ["user", "assistant", "tool", "user"]


def test_results_without_ids_get_those_of_their_calls() -> None:
    """A result without an id belongs to the first call of its name without a result."""
    body = history("f", "g", "f", results=[{"name": "f"}, {"name": "f"}, {"name": "g", "id": "b"}])
    for part, id in zip(body["contents"][1]["parts"][1:], "abc", strict=True):
        part["functionCall"]["id"] = id
    request = parsed(body, model="gemini-3-pro-preview")
    assert [message.call_id for message in request.messages[2:]] == ["a", "c", "b"]


def test_ids_that_the_client_made_up() -> None:
    """Where calls have no ids, a client's own ids only pair results with calls."""
    results = [
        {"name": "f", "id": "b", "response": {"result": "2"}},
        {"name": "f", "id": "a", "response": {"result": "1"}},
    ]
    body = history("f", "f", results=results)
    for part, id in zip(body["contents"][1]["parts"][1:], "ab", strict=True):
        part["functionCall"]["id"] = id
    assert parsed(body).messages[1:] == (
        Message("assistant", "Hm", (CallEcho("", "f", '{"n":1}'),) * 2),
        Message("tool", "1", name="f"),
        Message("tool", "2", name="f"),
    )


def test_result_beside_the_name_of_its_function() -> None:
    """A result is also found where the client repeats the name of the function beside it."""
    results = [{"name": "f", "response": {"name": "f", "content": "42"}}]
    assert parsed(history("f", results=results)).messages[-1].text == "42"


def test_thoughts_are_not_part_of_the_text() -> None:
    """Echoed thoughts are left out of the text."""
    parts = [{"text": "Hm", "thought": True}, {"text": "Hi"}]
    assert parsed({"contents": [{"role": "model", "parts": parts}]}).messages[0].text == "Hi"


def test_snake_case_is_accepted() -> None:
    """Every field may be written in snake_case."""
    body = {
        "contents": [
            HELLO,
            {"role": "model", "parts": [{"function_call": {"name": "f", "args": {}}}]},
            {"parts": [{"function_response": {"name": "f", "response": {"result": "1"}}}]},
        ],
        "system_instruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"function_declarations": [{"name": "f", "parameters_json_schema": {}}]}],
        "tool_config": {"function_calling_config": {"mode": "ANY"}},
        "generation_config": {
            "response_mime_type": "application/json",
            "thinking_config": {"include_thoughts": True},
        },
    }
    request = parsed(body)
    assert [m.role for m in request.messages] == ["system", "user", "assistant", "tool"]
    assert (request.tools[0].name, request.tool_choice) == ("f", "required")
    assert (request.output_schema, request.wants_reasoning) == ({}, True)


# Tools and the form of the answer


def test_declared_schemas_become_json_schema() -> None:
    """Upper-case types, `nullable` and counts as strings are converted to JSON Schema."""
    parameters = {
        "type": "OBJECT",
        "properties": {
            "city": {"type": "STRING", "nullable": True, "enum": ["Paris"], "example": "x"},
            "tags": {"type": "ARRAY", "minItems": "1", "items": {"type": "INTEGER"}},
            "any": {"anyOf": [{"type": "STRING"}], "nullable": True},
        },
        "required": ["city"],
        "propertyOrdering": ["tags", "city"],
    }
    body = {"contents": [HELLO], "tools": [{"functionDeclarations": [{"name": "f"}]}]}
    body["tools"][0]["functionDeclarations"][0]["parameters"] = parameters  # type: ignore[index]
    assert parsed(body).tools == (
        OfferedTool(
            "f",
            "",
            {
                "required": ["city"],
                "properties": {
                    "city": {"type": ["string", "null"], "enum": ["Paris", None]},
                    "tags": {"minItems": 1, "items": {"type": "integer"}, "type": "array"},
                    "any": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
                "type": "object",
            },
        ),
    )


@pytest.mark.parametrize(
    ("config", "choice"),
    [
        (None, "auto"),
        ({"mode": "AUTO"}, "auto"),
        ({"mode": "NONE"}, "none"),
        ({"mode": "ANY"}, "required"),
        ({"mode": "ANY", "allowedFunctionNames": ["g", "f"]}, "g"),
        ({"mode": "VALIDATED", "allowedFunctionNames": ["g"]}, "auto"),
    ],
)
def test_tool_choice(config: Json | None, choice: str) -> None:
    """The calling mode becomes the neutral choice."""
    body = with_tools(toolConfig={"functionCallingConfig": config} if config else {})
    assert parsed(body).tool_choice == choice


@pytest.mark.parametrize(
    ("config", "schema"),
    [
        ({}, None),
        ({"responseMimeType": "text/plain"}, None),
        ({"responseMimeType": "application/json"}, {}),
        ({"responseSchema": {"type": "OBJECT"}}, {"type": "object"}),
        ({"responseJsonSchema": {"type": "object", "$defs": {}}}, {"type": "object", "$defs": {}}),
    ],
)
def test_output_schema(config: Json, schema: Json | None) -> None:
    """Either kind of schema, or the mime type alone, requests JSON."""
    assert parsed({"contents": [HELLO], "generationConfig": config}).output_schema == schema
