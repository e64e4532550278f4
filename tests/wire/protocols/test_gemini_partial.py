"""Google Gemini: arguments in fragments, encoded and decoded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.events import Frame
from mockllm.core.turn import Opaque, ToolCall
from mockllm.wire.protocols.gemini.partial import ArgumentsWriter, cut, parse_path
from tests.cases import for_all
from tests.strategies import json_values, texts
from tests.wire.protocols.test_gemini_decoder import STOP, call, chunk, read

Json = dict[str, Any]


def partial(path: str, more: bool = True, **value: Any) -> Json:
    return chunk(call(partialArgs=[{"jsonPath": path, **value}], willContinue=more))


def test_fragments_become_json_text() -> None:
    """Partial values become the fragments of one JSON text."""
    turn = read(
        chunk(call("f", id="c1", willContinue=True)),
        partial("$.a.b[0]", stringValue="Pa", willContinue=True),
        partial("$.a.b[0]", stringValue='r"is'),
        partial("$.a.b[1]['odd key'].c", nullValue="NULL_VALUE"),
        partial("$.n", numberValue=1.5),
        partial("$.t", boolValue=True),
        chunk(call()),
        STOP,
    )
    assert turn.parts == (
        ToolCall(
            "f",
            "c1",
            (
                '{"a":{"b":["Pa',
                'r\\"is',
                '",{"odd key":{"c":null',
                '}}]},"n":1.5',
                ',"t":true',
                "}",
            ),
        ),
    )
    assert turn.finish == "tool_calls"


def test_call_in_fragments_ends_with_the_next_or_the_answer() -> None:
    """A call whose end marker is missing is ended by the next call and by the finish."""
    turn = read(
        chunk(call("f", willContinue=True)),
        partial("$.a", stringValue="x"),
        chunk(call("g", willContinue=True)),
        partial("$.b", numberValue=2),
        STOP,
    )
    assert [c.parse_arguments() for c in turn.tool_calls] == [{"a": "x"}, {"b": 2}]


@pytest.mark.parametrize("fragments", [[], [partial("$.a", stringValue="x")]])
def test_a_call_that_the_limit_cut_is_not_completed(fragments: list[Json]) -> None:
    """Arguments that were still to come at `MAX_TOKENS` leave the call malformed."""
    limit = chunk(finish="MAX_TOKENS")
    turn = read(chunk(call("f", willContinue=True)), *fragments, limit)
    assert turn.finish == "length"
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        turn.tool_calls[0].parse_arguments()


def test_an_out_of_order_fragment_is_kept() -> None:
    """A fragment for a value that is closed is kept as a frame."""
    back = partial("$.a.y", numberValue=3)
    turn = read(
        chunk(call("f", willContinue=True)),
        partial("$.a.x", numberValue=1),
        partial("$.b", numberValue=2),
        back,
        STOP,
    )
    assert turn.tool_calls[0].parse_arguments() == {"a": {"x": 1}, "b": 2}
    assert turn.parts[1] == Opaque("gemini", Frame(json.dumps(back)))


@for_all(
    ("path", "steps"),
    [
        ("$.a.b[0]", ("a", "b", 0)),
        ("""$['a b']["c\\"d"]""", ("a b", 'c"d')),
        ("$['it\\'s']", ("it's",)),
        ("$['say \"x\"']", ('say "x"',)),
        ("$.größe", ("größe",)),
        ("$[0]", (0,)),
        ("$", ()),
        ("a.b", ()),
        ("$..a", ()),
        ("$.*[*]", ()),
        (7, ()),
    ],
)
def test_paths(path: object, steps: tuple[str | int, ...]) -> None:
    """Paths of single values are read in both notations; others are not."""
    assert parse_path(path) == steps


@given(st.dictionaries(texts, json_values, max_size=4), st.integers(1, 9))
def test_cut_and_writer_are_inverse(arguments: Json, count: int) -> None:
    """Arguments that were cut are written again, in at most as many groups as requested."""
    groups = cut(arguments, count)
    assert len(groups) <= count
    writer = ArgumentsWriter()
    text = "".join(writer.add(part) or "" for group in groups for part in group) + writer.end()
    if groups:
        assert json.loads(text) == arguments
        assert all(groups)
    else:
        assert text == ""
        assert not arguments or "{}" in json.dumps(arguments) or "[]" in json.dumps(arguments)
