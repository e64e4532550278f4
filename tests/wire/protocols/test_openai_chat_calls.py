"""Chat Completions tool calls, in every form that servers send."""

from __future__ import annotations

import json

import pytest

from mockllm.core.turn import Text, ToolCall, Turn
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.openai_chat.protocol import PROTOCOL
from mockllm.wire.protocols.openai_chat.request import Options
from tests.cases import for_all
from tests.wire.protocols.streams import encoded
from tests.wire.protocols.test_openai_chat_decoder import Json, calls, chunk, entry, turn


def called(*items: Json) -> list[tuple[str, str, str]]:
    """(id, name, arguments) of the calls of a turn that has nothing else."""
    got = turn(*items)
    assert got.tool_calls == got.parts
    return [(call.id, call.name, call.arguments) for call in got.tool_calls]


A = ("a", "f", '{"x":1}')
B = ("b", "g", '{"y":2}')

ONE_CALL: dict[str, list[Json]] = {
    "whole in one fragment": [calls(entry('{"x":1}', "f", "a", 0))],
    "no index": [calls(entry('{"x":1}', "f", "a"))],
    "no index, more fragments without anything": [
        calls(entry("", "f", "a")),
        calls(entry('{"x"')),
        calls(entry(":1}")),
    ],
    "index only first, then id": [
        calls(entry("", "f", "a", 0)),
        calls(entry('{"x"', id="a")),
        calls(entry(":1}", id="a")),
    ],
    "two fragments in one chunk": [
        calls(entry('{"x"', "f", "a", 0), entry(":1}", index=0)),
    ],
    "index from one": [calls(entry("", "f", "a", 1)), calls(entry('{"x":1}', index=1))],
    "id repeated": [calls(entry("", "f", "a", 0)), calls(entry('{"x":1}', id="a", index=0))],
    "new id each time, without name": [
        calls(entry("", "f", "a", 0)),
        calls(entry('{"x"', id="z", index=0)),
        calls(entry(":1}", id="y", index=0)),
    ],
    "id and name empty later": [
        calls(entry("", "f", "a", 0)),
        calls(entry('{"x":1}', "", "", 0)),
    ],
    "id, type and name null later": [
        calls(entry("", "f", "a", 0)),
        calls(entry('{"x":1}', None, None, 0, type=None)),
    ],
    "name repeated": [
        calls(entry('{"x"', "f", "a", 0)),
        calls(entry(":1}", "f", index=0)),
    ],
    "id late": [calls(entry("", "f", index=0)), calls(entry('{"x":1}', id="a", index=0))],
    "name empty first": [
        calls(entry("", "", "a", 0)),
        calls(entry("", "f", index=0)),
        calls(entry('{"x":1}', index=0)),
    ],
    "name in pieces": [
        calls(entry(name="", id="a", index=0)),
        calls(entry(name="f", index=0)),
        calls(entry('{"x":1}', index=0)),
    ],
    "arguments before the name": [
        calls(entry('{"x"', id="a", index=0)),
        calls(entry(":1}", "f", index=0)),
    ],
    "arguments null first": [
        calls(entry(None, "f", "a", 0)),
        calls(entry('{"x":1}', index=0)),
    ],
    "arguments as an object": [calls(entry({"x": 1}, "f", "a", 0))],
    "finish in the same chunk": [calls(entry('{"x":1}', "f", "a", 0), finish="tool_calls")],
    "null in place of calls elsewhere": [
        chunk({"role": "assistant", "content": None, "tool_calls": None}),
        calls(entry('{"x":1}', "f", "a", 0)),
        chunk({"tool_calls": [], "role": "assistant"}),
    ],
}


@for_all("name", ONE_CALL)
def test_every_form_of_one_call(name: str) -> None:
    """Every form decodes to the same call."""
    assert called(*ONE_CALL[name]) == [A]


TWO_CALLS: dict[str, list[Json]] = {
    "index always zero": [
        calls(entry('{"x":1}', "f", "a", 0)),
        calls(entry('{"y":2}', "g", "b", 0)),
    ],
    "index always zero, in fragments": [
        calls(entry("", "f", "a", 0)),
        calls(entry('{"x":1}', index=0)),
        calls(entry("", "g", "b", 0)),
        calls(entry('{"y":2}', index=0)),
    ],
    "index always zero, joined by id": [
        calls(entry("", "f", "a", 0)),
        calls(entry("", "g", "b", 0)),
        calls(entry('{"x":1}', id="a", index=0)),
        calls(entry('{"y":2}', id="b", index=0)),
    ],
    "same index in one chunk": [
        calls(entry('{"x":1}', "f", "a", 0), entry('{"y":2}', "g", "b", 0)),
    ],
    "no index": [calls(entry('{"x":1}', "f", "a"), entry('{"y":2}', "g", "b"))],
    "reversed": [calls(entry('{"y":2}', "g", "b", 1)), calls(entry('{"x":1}', "f", "a", 0))],
    "a gap": [calls(entry('{"x":1}', "f", "a", 0)), calls(entry('{"y":2}', "g", "b", 2))],
    "interleaved": [
        calls(entry("", "f", "a", 0)),
        calls(entry("", "g", "b", 1)),
        calls(entry('{"x"', index=0)),
        calls(entry('{"y"', index=1)),
        calls(entry(":1}", index=0)),
        calls(entry(":2}", index=1)),
    ],
    "no index, after a call whose name has to come": [
        calls(entry(name="f", id="a")),
        calls(entry('{"x":1}')),
        calls(entry('{"y":2}', "g", "b")),
    ],
}


@pytest.mark.parametrize("name", TWO_CALLS)
def test_every_form_of_two_calls(name: str) -> None:
    """Every form decodes to two calls, by index."""
    assert called(*TWO_CALLS[name]) == [A, B]


@pytest.mark.parametrize("arguments", [None, ..., "", {}, "{}"])
def test_zero_arguments(arguments: object) -> None:
    """Null, no key, an empty string and an empty object all mean no arguments."""
    got = turn(calls(entry(arguments, "f", "a", 0)), chunk({}, "tool_calls"))
    assert got == Turn((ToolCall("f", "a"),), "tool_calls")


def test_fragments_of_a_name_are_joined() -> None:
    """A name is joined until an `arguments` key shows that it is complete."""
    got = called(
        calls(entry(name="get_", id="a", index=0)),
        calls(entry(name="time", index=0)),
        calls(entry("{}", index=0)),
    )
    assert got == [("a", "get_time", "{}")]


def test_missing_ids_are_derived() -> None:
    """Each call without an id gets its own, always the same for the same stream."""
    stream = [calls(entry('{"x":1}', "f", index=0)), calls(entry('{"y":2}', "g", index=0))]
    got = called(*stream)
    assert [call[1:] for call in got] == [A[1:], B[1:]]
    assert len({call[0] for call in got}) == 2
    assert all(call[0].startswith("call_") for call in got)
    assert called(*stream) == got


def test_nameless_call_is_not_lost() -> None:
    """A call without a name is in the turn, with an empty one."""
    assert called(calls(entry('{"x":1}', id="a", index=0))) == [("a", "", '{"x":1}')]


def test_legacy_function_call() -> None:
    """The old `function_call` is a call with a made-up id."""
    got = turn(
        chunk({"function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"x":1}'}}),
        chunk({}, "function_call"),
    )
    assert [(c.name, c.arguments) for c in got.tool_calls] == [("f", '{"x":1}')]
    assert (got.finish, got.finish_raw) == ("tool_calls", "function_call")


def test_a_call_in_both_forms_counts_once() -> None:
    """A delta with both `function_call` and `tool_calls` gives one call."""
    parts = [{"name": "f", "arguments": '{"x"'}, {"name": None, "arguments": ":1}"}]
    got = turn(
        *(
            chunk(
                {"function_call": part, "tool_calls": [{"index": 0, "id": "c", "function": part}]}
            )
            for part in parts
        ),
        chunk({}, "tool_calls"),
    )
    assert [(call.id, call.name, call.arguments) for call in got.tool_calls] == [
        ("c", "f", '{"x":1}')
    ]


def test_indexes_that_clash_keep_all_calls() -> None:
    """Two calls with index 0 and then one with index 1 are three calls."""
    got = called(
        calls(entry("{}", "f", "a", 0)),
        calls(entry("{}", "g", "b", 0)),
        calls(entry("", "h", "c", 1)),
        calls(entry('{"z":3}', index=1)),
    )
    assert got == [("a", "f", "{}"), ("b", "g", "{}"), ("c", "h", '{"z":3}')]


def test_a_custom_call_has_free_text() -> None:
    """A call of a custom tool has `type: custom` and its text in `input`, streamed and not."""
    turn = Turn((ToolCall("run", "call_1", ("print(", "1)"), custom=True),), "tool_calls")
    reply = Reply("seed", "0" * 40, "m", Options())
    frames = encoded(PROTOCOL, turn, reply)
    deltas = [json.loads(frame.data or "")["choices"][0]["delta"] for frame in frames[:3]]
    entries = [delta["tool_calls"][0] for delta in deltas]
    assert entries == [
        {"index": 0, "id": "call_1", "type": "custom", "custom": {"name": "run", "input": ""}},
        {"index": 0, "custom": {"input": "print("}},
        {"index": 0, "custom": {"input": "1)"}},
    ]
    message = PROTOCOL.encode_body(turn, reply)["choices"][0]["message"]
    assert message["tool_calls"] == [
        {"id": "call_1", "type": "custom", "custom": {"name": "run", "input": "print(1)"}}
    ]


def test_empty_fields_are_no_call() -> None:
    """Snowflake sends a `function_call`, and beside each function a `custom`, of empty strings."""
    empty = {"name": "", "arguments": ""}
    function = {"name": "f", "arguments": "{}"}
    custom = {"name": "", "input": ""}
    entry = {"id": "a", "type": "function", "function": function, "custom": custom}
    message: Json = {"role": "assistant", "content": "4", "function_call": empty}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    assert PROTOCOL.decode_body(body) == Turn((Text(("4",)),), "stop")
    message["tool_calls"] = [entry]
    assert PROTOCOL.decode_body(body).tool_calls == (ToolCall("f", "a"),)
