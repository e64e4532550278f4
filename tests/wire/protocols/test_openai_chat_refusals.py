"""Chat Completions requests that the service refuses, and the errors."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.core.errors import RequestError
from mockllm.core.http import NO_TARGET
from mockllm.wire.protocols.openai_chat.protocol import PROTOCOL
from tests.cases import for_all
from tests.wire.protocols.test_openai_chat_requests import (
    TOOL,
    USER,
    Json,
    asks,
    body,
    call,
    parsed,
    result,
)


def without(key: str) -> Json:
    value = body()
    del value[key]
    return value


def tool(**function: Any) -> Json:
    return body(tools=[{"type": "function", "function": function}])


REFUSED: list[tuple[str, Json, str, str | None]] = [
    ("no model", without("model"), "model", "missing_required_parameter"),
    ("model of a wrong kind", body(model=3), "model", "invalid_type"),
    ("no messages", without("messages"), "messages", "missing_required_parameter"),
    ("messages not a list", body() | {"messages": "hi"}, "messages", "invalid_type"),
    ("no message", body() | {"messages": []}, "messages", "empty_array"),
    ("message not an object", body("hi"), "messages[0]", "invalid_type"),
    ("no role", body({"content": "x"}), "messages[0].role", "missing_required_parameter"),
    ("unknown role", body(USER, {**USER, "role": "bot"}), "messages[1].role", "invalid_value"),
    ("role of a wrong kind", body({**USER, "role": 1}), "messages[0].role", "invalid_type"),
    ("no content", body({"role": "user"}), "messages[0].content", "invalid_type"),
    ("content a number", body({**USER, "content": 5}), "messages[0].content", "invalid_type"),
    ("content empty", body({**USER, "content": []}), "messages[0].content", "empty_array"),
    (
        "part of an unknown type",
        body({**USER, "content": [{"type": "txt", "text": "a"}]}),
        "messages[0].content[0].type",
        "invalid_value",
    ),
    (
        "part without type",
        body({**USER, "content": [{"text": "a"}]}),
        "messages[0].content[0].type",
        "missing_required_parameter",
    ),
    (
        "part without text",
        body({**USER, "content": [{"type": "text"}]}),
        "messages[0].content[0].text",
        "invalid_type",
    ),
    (
        "assistant with nothing",
        body(USER, {"role": "assistant"}),
        "messages[1].content",
        "invalid_type",
    ),
    ("result without a call", body(USER, result()), "messages[1].role", None),
    ("result of another call", body(USER, asks(call()), result("z")), "messages[2].role", None),
    (
        "result too late",
        body(USER, asks(call()), result(), USER, result()),
        "messages[4].role",
        None,
    ),
    (
        "result without id",
        body(USER, asks(call()), {"role": "tool", "content": "x"}),
        "messages[2].tool_call_id",
        "missing_required_parameter",
    ),
    ("call without result", body(USER, asks(call())), "messages[1].role", None),
    (
        "one of two results missing",
        body(USER, asks(call(), call("c2")), result(), USER),
        "messages[1].role",
        None,
    ),
    (
        "no call in tool_calls",
        body(USER, asks(content="x")),
        "messages[1].tool_calls",
        "empty_array",
    ),
    (
        "call not an object",
        body(USER, {"role": "assistant", "tool_calls": ["x"]}),
        "messages[1].tool_calls[0]",
        "invalid_type",
    ),
    (
        "call without id",
        body(USER, asks({"type": "function", "function": {}})),
        "messages[1].tool_calls[0].id",
        "missing_required_parameter",
    ),
    (
        "call with arguments as an object",
        body(USER, asks(call(arguments={}))),
        "messages[1].tool_calls[0].function.arguments",
        "invalid_type",
    ),
    (
        "call with a bad name",
        body(USER, asks(call(name="a b"))),
        "messages[1].tool_calls[0].function.name",
        "invalid_value",
    ),
    ("tools not a list", body(tools={}), "tools", "invalid_type"),
    ("no tool", body(tools=[]), "tools", "empty_array"),
    ("tool not an object", body(tools=["find"]), "tools[0]", "invalid_type"),
    (
        "tool without type",
        body(tools=[{"name": "x"}]),
        "tools[0].type",
        "missing_required_parameter",
    ),
    ("tool of another type", body(tools=[{"type": "web"}]), "tools[0].type", "invalid_value"),
    (
        "tool without function",
        body(tools=[{"type": "function"}]),
        "tools[0].function",
        "missing_required_parameter",
    ),
    ("tool without name", tool(), "tools[0].function.name", "missing_required_parameter"),
    ("tool with a bad name", tool(name="a.b"), "tools[0].function.name", "invalid_value"),
    ("tool with an empty name", tool(name=""), "tools[0].function.name", "empty_string"),
    (
        "tool with a long name",
        tool(name="x" * 65),
        "tools[0].function.name",
        "string_above_max_length",
    ),
    (
        "second tool with a bad name",
        body(tools=[TOOL, {"type": "function", "function": {"name": "é"}}]),
        "tools[1].function.name",
        "invalid_value",
    ),
    (
        "schema not an object",
        tool(name="x", parameters=[]),
        "tools[0].function.parameters",
        "invalid_type",
    ),
    (
        "schema of another type",
        tool(name="x", parameters={"type": "string"}),
        "tools[0].function.parameters",
        "invalid_function_parameters",
    ),
    (
        "property of an unknown type",
        tool(name="x", parameters={"type": "object", "properties": {"a": {"type": "text"}}}),
        "tools[0].function.parameters",
        "invalid_function_parameters",
    ),
    (
        "choice of Responses",
        body(tools=[TOOL], tool_choice={"type": "function", "name": "find"}),
        "tool_choice.function.name",
        "missing_required_parameter",
    ),
    (
        "choice of Anthropic",
        body(tools=[TOOL], tool_choice={"type": "tool", "name": "find"}),
        "tool_choice.type",
        "invalid_value",
    ),
    (
        "mode of Anthropic",
        body(tools=[TOOL], tool_choice={"type": "auto"}),
        "tool_choice.type",
        "invalid_value",
    ),
    (
        "choice without type",
        body(tools=[TOOL], tool_choice={"function": {"name": "find"}}),
        "tool_choice.type",
        "missing_required_parameter",
    ),
    (
        "choice of a text",
        body(tools=[TOOL], tool_choice={"type": "function", "function": "find"}),
        "tool_choice.function",
        "invalid_type",
    ),
    ("choice without tools", body(tool_choice="auto"), "tool_choice", None),
    ("unknown choice", body(tools=[TOOL], tool_choice="find"), "tool_choice", "invalid_value"),
    (
        "choice of an absent tool",
        body(tools=[TOOL], tool_choice={"type": "function", "function": {"name": "lose"}}),
        "tool_choice",
        None,
    ),
    ("choice of a wrong kind", body(tools=[TOOL], tool_choice=[]), "tool_choice", "invalid_type"),
    (
        "choice without a name",
        body(tools=[TOOL], tool_choice={"type": "function"}),
        "tool_choice.function.name",
        "missing_required_parameter",
    ),
    ("stream a string", body(stream="yes"), "stream", "invalid_type"),
    ("n a string", body(n="2"), "n", "invalid_type"),
    ("n a boolean", body(n=True), "n", "invalid_type"),
    ("n too small", body(n=0), "n", "integer_below_min_value"),
    ("n too big", body(n=129), "n", "integer_above_max_value"),
    ("temperature a string", body(temperature="hot"), "temperature", "invalid_type"),
    ("temperature too high", body(temperature=2.5), "temperature", "decimal_above_max_value"),
    ("max_tokens a decimal", body(max_tokens=1.5), "max_tokens", "invalid_type"),
    ("stop a number", body(stop=1), "stop", "invalid_type"),
    ("stream_options a list", body(stream_options=[]), "stream_options", "invalid_type"),
    ("format a string", body(response_format="json"), "response_format", "invalid_type"),
    (
        "unknown format",
        body(response_format={"type": "xml"}),
        "response_format.type",
        "invalid_value",
    ),
    (
        "schema without a name",
        body(response_format={"type": "json_schema", "json_schema": {}}),
        "response_format.json_schema.name",
        "missing_required_parameter",
    ),
]


@for_all(
    ("value", "param", "code"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_refused(value: Json, param: str, code: str | None) -> None:
    """What the service refuses is refused with status 400 and the name of the field."""
    with pytest.raises(RequestError) as caught:
        parsed(value)
    error = caught.value
    assert (error.status, error.param, error.code) == (400, param, code)
    assert PROTOCOL.error_body(error)["error"]["type"] == "invalid_request_error"


@for_all("value", [case[1] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_lenient_parsing_accepts_all_of_them(value: Json) -> None:
    """Without strictness none of these is refused."""
    assert PROTOCOL.parse(value, NO_TARGET, False).api == "chat"


def test_missing_results_are_named() -> None:
    """The refusal of an unanswered call names the ids that have no result."""
    with pytest.raises(RequestError, match=r"did not have response messages: c1, c3$"):
        parsed(body(USER, asks(call(), call("c2"), call("c3")), result("c2"), USER))


@pytest.mark.parametrize("value", [None, [], "x", 3])
@pytest.mark.parametrize("strict", [True, False])
def test_a_body_that_is_no_object_is_refused(value: Any, strict: bool) -> None:
    """A body that is no object is refused, lenient or not."""
    with pytest.raises(RequestError):
        PROTOCOL.parse(value, NO_TARGET, strict)


def test_null_means_absent() -> None:
    """Optional fields may be null."""
    keys = ("stream", "n", "temperature", "tools", "tool_choice", "response_format", "stop")
    assert parsed(body(**dict.fromkeys(keys))).tools == ()
