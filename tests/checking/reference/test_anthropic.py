"""The reference accumulator of the Messages API, on events of real servers, written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from examples.accumulators import AnthropicAccumulator
from mockllm.checking.outcome import Call, Outcome, Usage
from mockllm.checking.probes import Delta
from tests.cases import for_all
from tests.checking.reference.playing import basic, basic_delta, by_events

A1 = Call("get_weather", {"city": "Paris"}, "toolu_A1")
B2 = Call("get_time", {"tz": "CET"}, "toolu_B2")
Z0 = Call("list_issues", {}, "toolu_Z0")


def start(index: int, type: str = "text", **fields: Any) -> dict[str, Any]:
    return {
        "type": "content_block_start",
        "index": index,
        "content_block": {"type": type, **fields},
    }


def delta(index: int, type: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": type, **fields}}


def text(fragment: str, index: int = 0) -> dict[str, Any]:
    return delta(index, "text_delta", text=fragment)


def json(part: str, index: int = 0) -> dict[str, Any]:
    return delta(index, "input_json_delta", partial_json=part)


def stop(index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def tool(call: Call, index: int = 0, **fields: Any) -> dict[str, Any]:
    return start(index, "tool_use", **{"id": call.id, "name": call.name, "input": {}, **fields})


def end(reason: str | None = "tool_use", **fields: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, **fields}


BEGIN: dict[str, Any] = {"type": "message_start", "message": {"content": []}}
STOP = {"type": "message_stop"}
PING = {"type": "ping"}
CITY, TZ = ('{"city":', '"Paris"}'), ('{"tz":', '"CET"}')

CALLS: dict[str, tuple[list[Any], list[Call]]] = {
    "plain": ([tool(A1), json(""), *map(json, CITY), stop()], [A1]),
    "anth-ping": ([PING, tool(A1), PING, *map(json, CITY), PING, stop(), PING, {}], [A1]),
    "anth-zero-arg": ([tool(Z0), json(""), stop()], [Z0]),
    "anth-zero-arg, no delta": ([tool(Z0), stop()], [Z0]),
    "anth-input-in-start": ([tool(A1, input=A1.arguments), stop()], [A1]),
    "anth-input-in-start, and deltas": (
        [tool(A1, input=A1.arguments), *map(json, CITY), stop()],
        [A1],
    ),
    "anth-input-missing": ([start(0, "tool_use", id=Z0.id, name=Z0.name), stop()], [Z0]),
    "anth-input-missing, text": ([tool(A1, input=""), *map(json, CITY), stop()], [A1]),
    "anth-index-gap": (
        [
            tool(A1, 1),
            *(json(p, 1) for p in CITY),
            stop(1),
            tool(B2, 4),
            *(json(p, 4) for p in TZ),
            stop(4),
        ],
        [A1, B2],
    ),
    "anth-index-gap, reversed": (
        [
            tool(B2, 2),
            *(json(p, 2) for p in TZ),
            stop(2),
            tool(A1, 1),
            *(json(p, 1) for p in CITY),
            stop(1),
        ],
        [A1, B2],
    ),
    "anth-index-all-zero": (
        [tool(A1), *map(json, CITY), stop(), tool(B2), *map(json, TZ), stop()],
        [A1, B2],
    ),
    "anth-interleaved": (
        [tool(A1), tool(B2, 1)]
        + [json(part, i) for pair in zip(CITY, TZ, strict=True) for i, part in enumerate(pair)]
        + [stop(0), stop(1)],
        [A1, B2],
    ),
    "anth-unknown-types": (
        [
            start(0, "kit_block"),
            json('{"not":', 0),
            stop(0),
            {"type": "vertex_event"},
            tool(A1, 1),
            delta(1, "kit_delta"),
            *(json(p, 1) for p in CITY),
            stop(1),
        ],
        [A1],
    ),
    "no stop of its own": ([tool(A1), *map(json, CITY)], [A1]),
}


@for_all("name", CALLS)
def test_calls_are_kept_separate(name):
    """However a server sends its blocks, calls surface complete, in order, and each once."""
    events, calls = CALLS[name]
    run = by_events("anthropic", [BEGIN, *events, end(), STOP])
    assert run.outcome == Outcome(tool_calls=tuple(calls), finish="tool_use")
    assert sorted(map(repr, run.calls)) == sorted(map(repr, calls))
    assert run.pending == 0


HELLO: dict[str, list[Any]] = {
    "plain": [start(0, text=""), text("Hel"), text("lo"), stop()],
    "anth-text-in-start": [start(0, text="Hel"), text("lo"), stop()],
    "anth-index-all-zero": [start(0), text("Hel"), stop(), start(0), text("lo"), stop()],
    "anth-interleaved": [start(0), start(1), text("lo", 1), text("Hel", 0), stop(1), stop(0)],
    "anth-unknown-types": [start(0), delta(0, "citations_delta"), text("Hello"), stop()],
}


@pytest.mark.parametrize("name", HELLO)
def test_text_adds_up_in_the_order_of_blocks(name):
    """Text is joined in the order of blocks, whatever events surround it."""
    outcome = by_events("anthropic", [BEGIN, *HELLO[name], end("end_turn"), STOP]).outcome
    assert outcome == Outcome("Hello", finish="end_turn")


def test_the_event_line_stands_in_for_a_type():
    """An event without `type` is read by its event line, the reverse of `anth-no-event-lines`."""
    events = [BEGIN, start(0), text("Hi"), stop(), end("end_turn"), STOP]
    bare = [({k: v for k, v in each.items() if k != "type"}, each["type"]) for each in events]
    for fed in (events, bare):
        assert by_events("anthropic", fed).outcome == Outcome("Hi", finish="end_turn")


def test_thinking_is_reasoning_and_its_signature_is_not():
    """`anth-signature`: a signature adds no text, whether it is missing, whole or in fragments."""
    signed = [delta(0, "signature_delta", signature=part) for part in ("a", "b")]
    hmm = delta(0, "thinking_delta", thinking="Hmm")
    for events in ([hmm], [hmm, *signed]):
        block = [BEGIN, start(0, "thinking", thinking="", signature=""), *events, stop()]
        run = by_events("anthropic", [*block, end("end_turn"), STOP])
        assert run.outcome == Outcome(reasoning="Hmm", finish="end_turn")
        assert run.deltas == [Delta(reasoning="Hmm")]


def test_a_call_surfaces_when_its_block_stops():
    """A call surfaces at content_block_stop, not when it parses or another block begins."""
    probe = AnthropicAccumulator()
    for event in (BEGIN, tool(A1), *map(json, CITY), tool(B2, 1)):
        assert basic_delta(probe.feed(event)) is None
    assert (probe.pending(), basic(probe.outcome()).tool_calls) == (2, ())
    assert basic_delta(probe.feed(stop(0))) == Delta(tool_calls=(A1,))
    assert (probe.pending(), basic(probe.outcome()).tool_calls) == (1, (A1,))
    assert basic_delta(probe.feed(stop(0))) is None


@pytest.mark.parametrize("part", ["", "{", '{"city":"Pa'])
def test_a_call_that_the_limit_cut_is_an_error(part):
    """`anth-tool-cut-by-limit`: an open call is an error, even without arguments."""
    events = [BEGIN, tool(A1), json(""), json(part), end("max_tokens"), STOP]
    outcome = by_events("anthropic", events).outcome
    (trouble,) = outcome.errors
    assert outcome == Outcome(finish="max_tokens", errors=(trouble,))
    assert trouble.kind == "malformed_arguments"
    assert "get_weather" in trouble.message


@pytest.mark.parametrize("last", [[end(None), STOP], [STOP], []])
def test_the_last_stop_reason_that_is_not_null_counts(last):
    """`anth-two-message-delta`: a later null keeps the reason; `message_stop` may be missing."""
    events = [BEGIN, tool(Z0), stop(), end("tool_use"), *last]
    assert by_events("anthropic", events).outcome == Outcome(tool_calls=(Z0,), finish="tool_use")


@pytest.mark.parametrize("length", range(5))
def test_a_missing_message_delta_is_truncated(length):
    """`anth-cut`: the rest is reported as truncated; calls whose block stopped are kept."""
    events = [BEGIN, tool(A1), *map(json, CITY), stop()][: length + 1]
    outcome = by_events("anthropic", events).outcome
    assert [trouble.kind for trouble in outcome.errors] == ["truncated"]
    assert outcome.tool_calls == ((A1,) if length == 4 else ())


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "error": {"type": "overloaded_error", "message": "boom"}},
        {"error": {"type": "overloaded_error", "message": "boom"}},
        ({"message": "boom", "code": "overloaded_error"}, "error"),
    ],
)
def test_an_error_ends_the_answer(event):
    """`anth-error-event`: the text is kept, open calls are dropped."""
    before = [BEGIN, start(0), text("Hel"), tool(A1, 1), json(CITY[0], 1)]
    run = by_events("anthropic", [*before, event, stop(1), text("lo"), end(), STOP])
    (trouble,) = run.outcome.errors
    assert run.outcome == Outcome("Hel", errors=(trouble,))
    assert (trouble.kind, trouble.message) == ("stream_error", "boom (overloaded_error)")
    assert run.pending == 0


def test_a_second_message_start_is_an_error():
    """`anth-message-start-twice`: two attempts must not be joined to one answer."""
    events = [BEGIN, tool(A1), *map(json, CITY), BEGIN, stop(), end(), STOP]
    outcome = by_events("anthropic", events).outcome
    assert [trouble.kind for trouble in outcome.errors] == ["stream_error"]
    assert outcome.tool_calls == ()


INPUT = {"input_tokens": 5, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3}
OUTPUT = {"output_tokens": 7, "output_tokens_details": {"thinking_tokens": 2}}


@pytest.mark.parametrize(
    ("first", "last", "usage"),
    [
        ({**INPUT, "output_tokens": 1}, OUTPUT, Usage(12, 7, 2, 4)),
        ({"output_tokens": 1}, {**INPUT, **OUTPUT}, Usage(12, 7, 2, 4)),
        (INPUT, {"output_tokens": 7, "input_tokens": None}, Usage(12, 7, None, 4)),
        ({"output_tokens": 1}, None, None),
        (INPUT, None, Usage(12, None, None, 4)),
        (None, {"output_tokens": 7}, Usage(None, 7)),
        (None, None, None),
    ],
)
def test_usage_joins_start_and_delta(first, last, usage):
    """`anth-usage-missing`: a count that neither event has is None."""
    begin = {"type": "message_start", "message": {"usage": first}}
    assert by_events("anthropic", [begin, end("end_turn", usage=last), STOP]).outcome.usage == usage


def test_usage_is_not_added_up():
    """`anth-two-message-delta`: counts are cumulative, and the last one counts."""
    ends = [end("end_turn", usage={"output_tokens": n}) for n in (3, 7)]
    assert by_events("anthropic", [BEGIN, *ends, STOP]).outcome.usage == Usage(None, 7)


@pytest.mark.parametrize("value", [None, "x", [], {"type": 1}, stop(9)])
def test_a_malformed_event_is_ignored(value):
    """No value raises, and the answer around it is read."""
    events = [value, BEGIN, start(0), text("Hi"), value, end("end_turn"), STOP, value, text("x")]
    assert by_events("anthropic", events).outcome == Outcome("Hi", finish="end_turn")


def test_a_delta_of_a_block_that_never_began_is_reported():
    """`anth-start-missing`: without it the answer would lack text, and look complete."""
    events = [BEGIN, delta(9, "text_delta", text="Hi"), end("end_turn"), STOP]
    (error,) = by_events("anthropic", events).outcome.errors
    assert "block 9, which has not started" in error.message


RESULT = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {}}
USED = {"input_tokens": 5, "output_tokens": 3}


def begin(*content: Any, **fields: Any) -> dict[str, Any]:
    message = {"id": "msg_1", "model": "m", "content": list(content), "usage": USED, **fields}
    return {"type": "message_start", "message": message}


def block(call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}


def test_a_message_may_be_complete_in_its_start():
    """Calls, stop reason and usage in `message_start` count; results of hosted tools do not."""
    run = by_events("anthropic", [begin(RESULT, block(A1), stop_reason="tool_use"), STOP])
    assert run.outcome == Outcome(tool_calls=(A1,), finish="tool_use", usage=Usage(5, 3))
    assert (run.calls, run.pending) == ([A1], 0)


def test_blocks_may_follow_those_in_the_start():
    """Text and calls in `message_start` come before the blocks with events."""
    filled = begin({"type": "text", "text": "Oh. "}, block(A1))
    events = [start(2), text("Hi", 2), stop(2), tool(B2, 3), *(json(p, 3) for p in TZ), stop(3)]
    outcome = by_events("anthropic", [filled, *events, end(), STOP]).outcome
    assert (outcome.text, outcome.tool_calls) == ("Oh. Hi", (A1, B2))


@pytest.mark.parametrize("type", ["text", "thinking"])
def test_an_empty_block_in_the_start_is_a_placeholder(type):
    """The stop reason beside an empty block in `message_start` does not end the message."""
    placeholder = begin({"type": type, type: ""}, stop_reason="end_turn")
    outcome = by_events("anthropic", [placeholder, start(0), text("Hi")]).outcome
    assert (outcome.text, outcome.finish) == ("Hi", None)
    assert [trouble.kind for trouble in outcome.errors] == ["truncated"]


def test_opaque_values_are_kept():
    """Signatures, whole or in fragments, and redacted thinking are kept, those of a block without
    a stop, too."""
    events = [
        start(0, "thinking", thinking="", signature=""),
        *[delta(0, "signature_delta", signature=part) for part in ("a", "b")],
        stop(0),
        start(1, "redacted_thinking", data="hidden"),
        stop(1),
        start(2, "thinking", thinking="Hm", signature=""),
        delta(2, "signature_delta", signature="c"),
    ]
    full = by_events("anthropic", [BEGIN, *events, end("end_turn"), STOP]).full
    assert full.opaque == ("ab", "hidden", "c")
    assert full.reasoning == "Hm"


def test_the_input_of_a_server_tool_is_not_that_of_a_call():
    """Fragments for a `server_tool_use` block are in no call, also between those of one."""
    server = start(1, "server_tool_use", id="srvtoolu_1", name="web_search", input={})
    mixed = [tool(A1), server, json(CITY[0]), json('{"query":1}', 1), stop(1), json(CITY[1])]
    run = by_events("anthropic", [BEGIN, *mixed, stop(0), end(), STOP])
    assert run.outcome.tool_calls == (A1,)
    assert [(each.arguments, each.id) for each in run.tool] == [(part, A1.id) for part in CITY]


def test_id_model_and_role_are_those_of_the_start():
    """The start of the message has its id and its model."""
    full = by_events("anthropic", [begin(), end("end_turn"), STOP]).full
    assert (full.response_id, full.model, full.role) == ("msg_1", "m", "assistant")


@pytest.mark.parametrize(
    ("parts", "raw"), [((), ""), (("",), ""), (("{", "}"), "{}"), (CITY, "".join(CITY))]
)
def test_raw_arguments_are_the_joined_fragments(parts, raw):
    """A call without fragments has an empty text as raw arguments, not `{}`."""
    events = [BEGIN, tool(A1), *map(json, parts), stop(), end(), STOP]
    (call,) = by_events("anthropic", events).full.tool_calls
    assert call.raw_arguments == raw


MALFORMED = {
    "at its stop": [BEGIN, tool(A1), json("{"), stop(), start(1), text("x", 1), end(), STOP],
    "at the end": [BEGIN, tool(B2, 1), json("{}", 1), tool(A1), json("{"), end("max_tokens"), STOP],
    "in the start": [begin({**block(A1), "input": "{"}, block(B2), stop_reason="tool_use"), STOP],
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_call_may_make_the_answer_fail(name):
    """With `malformed="fail"` one error is reported, and nothing follows: no finish, call, text."""
    run = by_events("anthropic", MALFORMED[name], malformed="fail")
    assert [trouble.kind for trouble in run.outcome.errors] == ["malformed_arguments"]
    assert (run.outcome.finish, run.outcome.text, run.pending) == (None, "", 0)
    assert A1.name not in [call.name for call in run.outcome.tool_calls]
