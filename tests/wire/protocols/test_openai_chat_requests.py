"""Chat Completions: reading requests."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.errors import RequestError
from mockllm.core.http import NO_TARGET, Target
from mockllm.core.request import CallEcho, Message, OfferedTool, Request
from mockllm.wire.protocols.openai_chat.protocol import PROTOCOL
from mockllm.wire.protocols.openai_chat.request import Options
from tests.strategies import json_values

Json = dict[str, Any]

USER = {"role": "user", "content": "hi"}
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
TOOL = {
    "type": "function",
    "function": {"name": "find", "description": "Finds.", "parameters": SCHEMA},
}


def call(id: str = "c1", name: str = "find", arguments: object = "{}") -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: Json, **more: Any) -> Json:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def result(id: str = "c1", content: object = "42") -> Json:
    return {"role": "tool", "tool_call_id": id, "content": content}


def body(*messages: Any, **more: Any) -> Json:
    return {"model": "gpt-9", "messages": list(messages) or [USER], **more}


def parsed(value: Json, target: Target = NO_TARGET) -> Request:
    return PROTOCOL.parse(value, target, True)


def test_ordinary_request() -> None:
    """Model, history, system prompt and `stream` are read."""
    system = {"role": "system", "content": "Be brief."}
    more = {"role": "developer", "content": [{"type": "text", "text": "And kind."}]}
    value = body(system, more, USER, stream=True)
    got = parsed(value)
    assert got == Request(
        api="chat",
        model="gpt-9",
        body=value,
        stream=True,
        messages=(
            Message("system", "Be brief."),
            Message("system", "And kind."),
            Message("user", "hi"),
        ),
        system="Be brief.\nAnd kind.",
    )


def test_parts_of_content_join() -> None:
    """Text parts are joined; images and other parts give no text."""
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    parts = [{"type": "text", "text": "a"}, image, {"type": "text", "text": "b"}]
    assert parsed(body({"role": "user", "content": parts})).messages[0].text == "ab"
    refusal = [{"type": "refusal", "refusal": "No."}]
    history = body(USER, {"role": "assistant", "content": refusal}, USER)
    assert parsed(history).messages[1].text == "No."


def test_calls_and_results() -> None:
    """Calls are echoed with their arguments as text, results with the id of their call."""
    got = parsed(
        body(
            USER,
            asks(call(arguments='{"q":"x"}'), call("c2")),
            result("c2", [{"type": "text", "text": "7"}]),
            result("c1"),
        )
    )
    assert got.messages[1:] == (
        Message(
            "assistant", calls=(CallEcho("c1", "find", '{"q":"x"}'), CallEcho("c2", "find", "{}"))
        ),
        Message("tool", "7", call_id="c2"),
        Message("tool", "42", call_id="c1"),
    )


def test_an_id_may_be_repeated_in_a_later_round_trip() -> None:
    """Some clients number the calls of each round trip from 0."""
    rounds = [USER, asks(call()), result(), asks(call()), result(), USER]
    assert len(parsed(body(*rounds)).messages) == 6


def test_tools() -> None:
    """Tools are read with their schema; a custom tool has none; the old form counts too."""
    custom = {"type": "custom", "custom": {"name": "shell", "description": "Runs."}}
    got = parsed(body(tools=[TOOL, custom]))
    assert got.tools == (
        OfferedTool("find", "Finds.", SCHEMA),
        OfferedTool("shell", "Runs.", custom=True),
    )
    old = parsed(body(functions=[{"name": "find"}], function_call={"name": "find"}))
    assert (old.tools, old.tool_choice) == ((OfferedTool("find"),), "find")


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, "auto"),
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "function": {"name": "find"}}, "find"),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}, "required"),
    ],
)
def test_tool_choice(choice: Any, expected: str) -> None:
    """Every form of tool_choice becomes a neutral value or a name."""
    assert parsed(body(tools=[TOOL], tool_choice=choice)).tool_choice == expected


@pytest.mark.parametrize(
    ("format_", "expected"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, {}),
        ({"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}, SCHEMA),
        ({"type": "json_schema", "json_schema": {"name": "x"}}, {}),
    ],
)
def test_response_format(format_: Any, expected: Any) -> None:
    """The schema of the answer is read; any JSON object is the empty schema."""
    assert parsed(body(response_format=format_)).output_schema == expected


def test_reasoning_is_requested() -> None:
    """An effort requests reasoning, `none` does not."""
    assert parsed(body(reasoning_effort="low")).wants_reasoning
    assert not parsed(body(reasoning_effort="none")).wants_reasoning
    assert not parsed(body()).wants_reasoning


def test_deployment_of_the_path_is_the_model() -> None:
    """Azure's path names the model where the body does not."""
    target = Target({"deployment": "mine"})
    assert parsed({"messages": [USER]}, target).model == "mine"
    assert parsed(body(), target).model == "gpt-9"


def test_options() -> None:
    """The options that the bytes depend on are read and hashable; reading them never fails."""
    plain = PROTOCOL.options(parsed(body()))
    assert plain == Options(obfuscation=True)
    hash(plain)
    full = body(
        n=2,
        stream=True,
        stream_options={"include_usage": True, "include_obfuscation": True},
        service_tier="flex",
        tools=[TOOL],
        tool_choice={"type": "function", "function": {"name": "find"}},
    )
    assert PROTOCOL.options(parsed(full)) == Options(True, 2, True, "flex", True)
    odd = body(n="2", stream_options=3, service_tier=["x"], tool_choice=7)
    assert PROTOCOL.options(PROTOCOL.parse(odd, NO_TARGET, False)) == plain
    bare = body(stream_options={"include_obfuscation": False})
    assert PROTOCOL.options(parsed(bare)) == Options()
    assert PROTOCOL.options(PROTOCOL.parse(body(n=10**9), NO_TARGET, False)).n == 128


wild = st.fixed_dictionaries(
    {},
    optional={
        "model": json_values,
        "messages": json_values
        | st.lists(
            json_values
            | st.fixed_dictionaries(
                {"role": st.sampled_from(["user", "assistant", "tool", "function"]) | json_values},
                optional={
                    "content": json_values | st.lists(st.just({"type": "text", "text": 1})),
                    "tool_calls": json_values | st.lists(st.just(call()) | json_values),
                    "function_call": json_values,
                    "tool_call_id": st.just("c1") | json_values,
                },
            ),
            max_size=3,
        ),
        "tools": json_values | st.lists(st.just(TOOL) | json_values, max_size=2),
        "functions": json_values,
        "tool_choice": json_values,
        "response_format": json_values,
        "stream": json_values,
        "stream_options": json_values,
        "n": json_values,
    },
)


@given(wild, st.booleans())
def test_any_json_is_read_or_refused(value: Json, strict: bool) -> None:
    """Any JSON object is parsed or refused, never changed, and never crashes the parser."""
    before = copy.deepcopy(value)
    try:
        request = PROTOCOL.parse(value, NO_TARGET, strict)
    except RequestError:
        assert strict
    else:
        hash(PROTOCOL.options(request))
    assert value == before
