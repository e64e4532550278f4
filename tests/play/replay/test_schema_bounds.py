"""Samples of schemas that ask for too much: bounded, and the reason is reported."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mockllm.core.errors import RequestError
from mockllm.core.http import NO_TARGET
from mockllm.core.later import NotDoneError, deferring, later
from mockllm.core.request import Message, OfferedTool, Request
from mockllm.play.replay.auto.autoreply import auto_parts, sample_notes
from mockllm.play.replay.auto.schema_sample import MAX_BYTES, UnsatisfiableError, bounded_sample
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.loading import loads
from mockllm.play.replay.player import Player
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.part_model import ToolPart
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.play.replay.hostile_schemas import GIVES_UP, HAS_NO_VALUE, MANY_STEPS
from tests.play.replay.sampling import sample


def _request(schema: dict[str, Any]) -> Request:
    tools = (OfferedTool("f", parameters=schema),)
    return Request(
        "chat", "m", {}, messages=(Message("user", "a"),), tools=tools, tool_choice="required"
    )


@pytest.mark.slow
@for_all("name", GIVES_UP)
def test_what_asks_for_too_much_gets_an_empty_value(name: str) -> None:
    """And a reason."""
    made = bounded_sample(GIVES_UP[name])
    assert made.gave_up
    assert made.value == {}


@for_all("name", HAS_NO_VALUE)
def test_what_has_no_value_says_why(name: str) -> None:
    """Nothing is fetched, and no error of a library is raised."""
    schema, message = HAS_NO_VALUE[name]
    with pytest.raises(UnsatisfiableError, match=message):
        bounded_sample(schema)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (
            {
                "properties": {
                    "a": {"properties": {"b": {"$ref": "#/properties/c"}}, "required": ["b"]},
                    "c": {"type": "integer"},
                },
                "required": ["a"],
            },
            {"a": {"b": 1}},
        ),
        (
            {
                "$defs": {"x": {"$anchor": "here", "type": "integer"}},
                "properties": {"a": {"$ref": "#here"}},
                "required": ["a"],
            },
            {"a": 1},
        ),
        (
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "definitions": {"x y": {"type": "boolean"}},
                "properties": {"a": {"$ref": "#/definitions/x%20y"}},
                "required": ["a"],
            },
            {"a": True},
        ),
        ({"type": "object", "minProperties": 2.0}, {"key0": "text", "key1": "text"}),
        ({"$ref": "#/$defs/any", "$defs": {"any": True}}, "text"),
    ],
)
def test_references_lead_anywhere_inside(schema: Any, value: Any) -> None:
    """Not only into `$defs`; this raised an error of `jsonschema`."""
    assert sample(schema) == value


def test_a_tool_call_that_gave_up_is_answered() -> None:
    """The call has no arguments, and the note for the log names the tool."""
    request = _request(GIVES_UP["minLength"])
    (part,) = auto_parts(request)
    assert isinstance(part, ToolPart)
    assert part.arguments is None
    (note,) = sample_notes(request)
    assert note.startswith("mockllm gave up a value for the JSON Schema of tool 'f': ")
    assert sample_notes(_request({"type": "object"})) == ()
    assert sample_notes(_request(HAS_NO_VALUE["endless"][0])) == ()


@pytest.mark.slow
def test_long_work_is_left_to_a_thread() -> None:
    """On the event loop a small schema is sampled at once, and a hard one is handed back."""
    hard = {**MANY_STEPS, "title": "Samples are kept: this one is for this test."}
    with deferring({}):
        assert len(auto_parts(_request({"type": "object"}))) == 1
        with pytest.raises(NotDoneError) as missing:
            auto_parts(_request(hard))
    found = missing.value.read()
    with deferring({missing.value.key: lambda: found}):
        assert len(auto_parts(_request(hard))) == 1
        assert sample_notes(_request(hard))


def test_an_error_of_long_work_is_raised_again() -> None:
    """What failed in the thread fails in the call."""

    def fail() -> int:
        raise RequestError("no")

    with deferring({"key": fail}), pytest.raises(RequestError):
        later("key", lambda: 1)
    assert later("key", lambda: 1) == 1


_LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 50_000},
        {"type": "string", "pattern": "^(a+)+$"},
        {"type": "integer", "minimum": 3},
        {"enum": [1, "b", None]},
        {"const": {"a": 1}},
        {"$ref": "#"},
        {"$ref": "#/$defs/a"},
        {"$ref": "#/properties/a"},
        True,
        False,
        {},
    ]
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    counts = st.sampled_from([0, 1, 3, 300, 1e9])
    some = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.fixed_dictionaries({"a": inner})},
            optional={"required": st.just(["a"]), "minProperties": counts},
        ),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={"minItems": counts, "uniqueItems": st.booleans(), "maxItems": counts},
        ),
        *(st.fixed_dictionaries({key: some}) for key in ("allOf", "anyOf", "oneOf")),
    )


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.recursive(_LEAVES, _containers, max_leaves=12))
def test_any_schema_has_a_bounded_sample(schema: Any) -> None:
    """It satisfies the schema, or is empty, or there is none."""
    whole = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    whole["$defs"] = {"a": {"type": "array", "items": schema}}
    try:
        found = bounded_sample(whole)
    except UnsatisfiableError:
        return
    assert len(json.dumps(found.value, separators=(",", ":"))) <= MAX_BYTES
    if not found.gave_up:
        assert Draft202012Validator(whole).is_valid(found.value)


@pytest.mark.slow
def test_a_try_is_counted_once_though_its_reply_takes_long() -> None:
    """The call is played again when the sample of the schema is there: nothing was counted."""
    (scenario,) = loads(
        "scenario: a\nmatch: any\nturns: [{attempts: [{http: {status: 500}}], reply: {auto: true}}]"
    )
    schema = {**MANY_STEPS, "title": "This one is for the test of tries."}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    messages = [{"role": "user", "content": "a"}]
    body = {"model": "m", "messages": messages, "tools": [tool], "tool_choice": "required"}
    call = ApiCall(PROTOCOLS["chat"], NO_TARGET, {}, json.dumps(body).encode(), Session("s"))
    player = Player([scenario])
    with deferring({}), pytest.raises(NotDoneError) as missing:
        player.play(call)
    found = missing.value.read()
    with deferring({missing.value.key: lambda: found}):
        statuses = [player.play(call).answer.status for _ in range(2)]
    assert statuses == [500, 200]
