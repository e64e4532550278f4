"""Google Gemini: what a path and a body ask for."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.core.request import CallEcho, Message, OfferedTool, Request
from mockllm.protocols.gemini import PROTOCOL, Options

Json = dict[str, Any]
PATH = {"model": "gemini-2.5-flash", ":": "streamGenerateContent", "?alt": "sse"}
HELLO = {"role": "user", "parts": [{"text": "Hello"}]}


def asked(body: Json, *, strict: bool = True, **path: str) -> Request:
    """The request that a body makes."""
    return PROTOCOL.parse(body, {**PATH, **path}, strict)


def with_tools(**fields: Any) -> Json:
    declared = [{"name": "f", "parameters": {"type": "OBJECT"}}, {"name": "g"}]
    return {"contents": [HELLO], "tools": [{"functionDeclarations": declared}], **fields}


def history(*calls: str, results: list[Json]) -> Json:
    """A body whose model called these functions and got these results."""
    made = [{"functionCall": {"name": name, "args": {"n": 1}}} for name in calls]
    told = [{"functionResponse": result} for result in results]
    return {
        "contents": [
            HELLO,
            {"role": "model", "parts": [{"text": "Hm"}, *made]},
            *([{"role": "user", "parts": told}] if told else []),
        ]
    }


# The path


def test_path_says_model_and_whether_it_streams() -> None:
    """The model and the method are the path's."""
    request = asked({"contents": [HELLO]})
    assert (request.model, request.stream) == ("gemini-2.5-flash", True)
    assert not asked({"contents": [HELLO]}, **{":": "generateContent"}).stream


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
    assert asked({"contents": [HELLO]}, **path).model == model


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ({}, {}, Options()),
        ({"?alt": "json"}, {}, Options(array=True)),
        ({"?alt": "", ":": "generateContent"}, {}, Options()),
        ({"model": "gemini-3-pro-preview"}, {}, Options(ids=True)),
        ({"publisher": "google"}, {}, Options(ids=True, vertex=True)),
        (
            {"publisher": "google", "model": "gemini-3-pro"},
            {},
            Options(ids=True, vertex=True, bare=True),
        ),
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
    """What the bytes depend on is taken from path, query and body."""
    assert PROTOCOL.options(asked({"contents": [HELLO], **body}, **path)) == expected


# The history


def test_messages() -> None:
    """Turns of the model keep their calls; every result is a message of its own."""
    results = [
        {"name": "f", "response": {"result": "42"}},
        {"id": "c2", "name": "g", "response": {"error": "no such city"}},
    ]
    body = history("f", "g", results=results)
    body["systemInstruction"] = {"parts": [{"text": "Be "}, {"text": "brief."}]}
    request = asked(body)
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
    """A result is its only field if that means nothing, else the JSON of all."""
    request = asked(history("f", results=[{"name": "f", "response": response}]))
    assert request.messages[-1].text == text


def test_results_with_words_and_the_old_role() -> None:
    """Words beside results are the user's; the role `function` is read like `user`."""
    body = history("f", results=[{"name": "f", "response": {"result": "1"}}])
    body["contents"][-1] = {
        "role": "function",
        "parts": [*body["contents"][-1]["parts"], {"text": "Well?"}],
    }
    assert [m.role for m in asked(body).messages] == ["user", "assistant", "tool", "user"]


def test_results_without_ids_take_those_of_their_calls() -> None:
    """Without an id a result is of the first call of its name that has no result yet."""
    body = history("f", "g", "f", results=[{"name": "f"}, {"name": "f"}, {"name": "g", "id": "b"}])
    for part, id in zip(body["contents"][1]["parts"][1:], "abc", strict=True):
        part["functionCall"]["id"] = id
    request = asked(body, model="gemini-3-pro-preview")
    assert [message.call_id for message in request.messages[2:]] == ["a", "c", "b"]


def test_ids_that_the_client_made_up() -> None:
    """Where calls have no ids, those of a client only tell which result is of which call."""
    results = [
        {"name": "f", "id": "b", "response": {"result": "2"}},
        {"name": "f", "id": "a", "response": {"result": "1"}},
    ]
    body = history("f", "f", results=results)
    for part, id in zip(body["contents"][1]["parts"][1:], "ab", strict=True):
        part["functionCall"]["id"] = id
    assert asked(body).messages[1:] == (
        Message("assistant", "Hm", (CallEcho("", "f", '{"n":1}'),) * 2),
        Message("tool", "1", name="f"),
        Message("tool", "2", name="f"),
    )


def test_result_beside_the_name_of_its_function() -> None:
    """A result is also found where the client repeats the name of the function beside it."""
    results = [{"name": "f", "response": {"name": "f", "content": "42"}}]
    assert asked(history("f", results=results)).messages[-1].text == "42"


def test_thoughts_are_not_what_the_model_said() -> None:
    """Thoughts that are echoed are left out of the text."""
    parts = [{"text": "Hm", "thought": True}, {"text": "Hi"}]
    assert asked({"contents": [{"role": "model", "parts": parts}]}).messages[0].text == "Hi"


def test_snake_case_is_read_alike() -> None:
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
    request = asked(body)
    assert [m.role for m in request.messages] == ["system", "user", "assistant", "tool"]
    assert (request.tools[0].name, request.tool_choice) == ("f", "required")
    assert (request.output_schema, request.wants_reasoning) == ({}, True)


# Tools and the form of the answer


def test_declared_schemas_become_json_schema() -> None:
    """Upper-case types, `nullable` and counts as strings are JSON Schema afterwards."""
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
    assert asked(body).tools == (
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
    """The calling mode is the neutral choice."""
    body = with_tools(toolConfig={"functionCallingConfig": config} if config else {})
    assert asked(body).tool_choice == choice


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
    """Either kind of schema, or the mime type alone, asks for JSON."""
    assert asked({"contents": [HELLO], "generationConfig": config}).output_schema == schema
