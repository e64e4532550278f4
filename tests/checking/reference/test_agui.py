"""The reference accumulator of AG-UI, on events of real agents that are written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from examples.accumulators import AGUIAccumulator
from mockllm.checking.outcome import Call, Outcome, Usage
from mockllm.checking.probes import Delta
from tests.cases import for_all
from tests.checking.reference.playing import basic, basic_delta, by_events

A1 = Call("get_weather", {"city": "Paris"}, "c1")
B2 = Call("get_time", {"tz": "CET"}, "c2")
Z0 = Call("list_issues", {}, "c0")


def event(type: str, **fields: Any) -> dict[str, Any]:
    return {"type": type, **fields}


def begin(call: Call, **fields: Any) -> dict[str, Any]:
    return event("TOOL_CALL_START", toolCallId=call.id, toolCallName=call.name, **fields)


def args(delta: Any, call: Call = A1) -> dict[str, Any]:
    return event("TOOL_CALL_ARGS", toolCallId=call.id, delta=delta)


def end(call: Call) -> dict[str, Any]:
    return event("TOOL_CALL_END", toolCallId=call.id)


def chunk(delta: str, call: Call, *, named: bool = False) -> dict[str, Any]:
    name = {"toolCallName": call.name} if named else {}
    return event("TOOL_CALL_CHUNK", toolCallId=call.id, delta=delta, **name)


def message(stage: str, id: str = "m1", kind: str = "TEXT", **fields: Any) -> dict[str, Any]:
    return event(f"{kind}_MESSAGE_{stage}", messageId=id, **fields)


RUN = event("RUN_STARTED", threadId="t", runId="r")
DONE = event("RUN_FINISHED", threadId="t", runId="r")
CITY, TZ = ('{"city":', '"Paris"}'), ('{"tz":', '"CET"}')

CALLS: dict[str, tuple[list[Any], list[Call]]] = {
    "plain": ([begin(A1), *map(args, CITY), end(A1)], [A1]),
    "agui-zero-arg": ([begin(Z0), end(Z0)], [Z0]),
    "agui-phantom-parent": ([begin(A1, parentMessageId="no"), *map(args, CITY), end(A1)], [A1]),
    "agui-parallel-calls": (
        [
            begin(A1),
            begin(B2),
            args(CITY[0]),
            args(TZ[0], B2),
            args(TZ[1], B2),
            end(B2),
            args(CITY[1]),
            end(A1),
        ],
        [A1, B2],
    ),
    "chunks": ([chunk(CITY[0], A1, named=True), chunk(CITY[1], A1)], [A1]),
    "chunks without ids": (
        [chunk(CITY[0], A1, named=True), event("TOOL_CALL_CHUNK", delta=CITY[1])],
        [A1],
    ),
    "agui-chunk-interleave": (
        [
            chunk(CITY[0], A1, named=True),
            chunk(TZ[0], B2, named=True),
            chunk(CITY[1], A1),
            chunk(TZ[1], B2),
        ],
        [A1, B2],
    ),
    "a result of the agent's own": (
        [
            begin(A1),
            *map(args, CITY),
            end(A1),
            event("TOOL_CALL_RESULT", messageId="t1", toolCallId="c1", content="21C"),
        ],
        [A1],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_kept_separate(name):
    """Calls are matched by id, and surface in the order in which they begin, each once."""
    events, calls = CALLS[name]
    run = by_events("agui", [RUN, *events, DONE])
    assert run.outcome == Outcome(tool_calls=tuple(calls), finish="RUN_FINISHED")
    assert run.pending == 0


@pytest.mark.parametrize("between", [(), tuple(map(args, CITY)), (*map(args, CITY), end(A1))])
def test_a_call_that_begins_again_is_an_error(between):
    """`agui-start-replayed`: it would run twice, or without its arguments."""
    run = by_events("agui", [RUN, begin(A1), *between, begin(A1), end(A1), DONE])
    assert "has begun already" in run.outcome.errors[0].message
    assert run.outcome.tool_calls == ((A1,) if len(between) > len(CITY) else ())


def test_a_call_surfaces_when_it_ends():
    """A call surfaces at its end, or in chunks at RUN_FINISHED, not when its arguments parse."""
    probe = AGUIAccumulator()
    for each in (RUN, begin(A1), *map(args, CITY), chunk("", Z0, named=True)):
        assert basic_delta(probe.feed(each)) is None
    assert (probe.pending(), basic(probe.outcome()).tool_calls) == (2, ())
    assert basic_delta(probe.feed(end(A1))) == Delta(tool_calls=(A1,))
    assert basic_delta(probe.feed(DONE)) == Delta(tool_calls=(Z0,))
    assert probe.pending() == 0


REFUSED = {
    "agui-args-wrong-id": [begin(A1), args("{}", B2)],
    "agui-open-call-at-finish": [begin(A1), begin(B2), end(B2)],
    "agui-open-call-at-finish, a message": [message("START")],
    "agui-open-call-at-finish, a step": [event("STEP_STARTED", stepName="plan")],
    "agui-open-call-at-finish, reasoning": [event("REASONING_START", messageId="r1")],
    "an end without a start": [end(A1)],
    "a second end": [begin(A1), end(A1), end(A1)],
    "a second start": [begin(A1), begin(A1)],
    "a chunk without a name": [chunk("{}", A1)],
    "an error of a proxy": [{"error": {"message": "boom"}}],
}


@for_all("name", REFUSED)
def test_what_the_protocol_forbids_is_an_error(name):
    """Each such stream has one error and no finish."""
    run = by_events("agui", [RUN, *REFUSED[name], DONE])
    assert [trouble.kind for trouble in run.outcome.errors] == ["stream_error"]
    assert run.outcome.finish is None
    assert run.pending == 0
    assert all(call.id != "c1" or "end" in name for call in run.outcome.tool_calls)


HELLO: dict[str, list[Any]] = {
    "plain": [
        message("START", role="assistant"),
        message("CONTENT", delta="Hel"),
        message("CONTENT", delta="lo"),
        message("END"),
    ],
    "agui-empty-delta": [
        message("START"),
        message("CONTENT", delta=""),
        message("CONTENT", delta="Hello"),
        message("CONTENT", delta=None),
        message("END"),
    ],
    "agui-unknown-event": [
        event("KIT_UNKNOWN"),
        event("THINKING_START"),
        message("START"),
        message("CONTENT", delta="Hello"),
        message("END"),
        event("THINKING_END"),
    ],
    "chunks": [message("CHUNK", delta="Hel"), event("TEXT_MESSAGE_CHUNK", delta="lo")],
    "two messages at once": [
        message("START"),
        message("START", "m2"),
        message("CONTENT", "m2", delta="lo"),
        message("CONTENT", delta="Hel"),
        message("END"),
        message("END", "m2"),
    ],
    "a message of the user": [
        message("START", "u", role="user"),
        message("CONTENT", "u", delta="Hi"),
        message("END", "u"),
        message("CHUNK", "v", role="user", delta="Hi"),
        message("START"),
        message("CONTENT", delta="Hello"),
        message("END"),
    ],
    "steps and state": [
        event("STEP_STARTED", stepName="plan"),
        event("STATE_SNAPSHOT", snapshot={}),
        message("CHUNK", delta="Hello"),
        event("STEP_FINISHED", stepName="plan"),
    ],
    "two runs": [message("CHUNK", delta="Hel"), DONE, RUN, message("CHUNK", "m2", delta="lo")],
}


@pytest.mark.parametrize("name", HELLO)
def test_text_adds_up(name):
    """The text is Hello, whatever events surround it."""
    outcome = by_events("agui", [RUN, *HELLO[name], DONE]).outcome
    assert outcome == Outcome("Hello", finish="RUN_FINISHED")


def test_reasoning_adds_up():
    """Reasoning messages add up, with or without REASONING_START around them."""
    hmm = [
        message("START", "r1", "REASONING", role="reasoning"),
        message("CONTENT", "r1", "REASONING", delta="Hmm"),
        message("END", "r1", "REASONING"),
    ]
    span = [event("REASONING_START", messageId="r1"), *hmm, event("REASONING_END", messageId="r1")]
    for events in (hmm, span, [message("CHUNK", "r1", "REASONING", delta="Hmm")]):
        run = by_events("agui", [RUN, *events, DONE])
        assert run.outcome == Outcome(reasoning="Hmm", finish="RUN_FINISHED")
        assert run.deltas == [Delta(reasoning="Hmm")]


def test_pending_calls_in_a_success_are_calls():
    """`agui-success-pending`: calls surface, whether RUN_FINISHED lists them or not."""
    for outcome in ({"type": "success"}, {"type": "success", "pendingToolCallIds": ["c1"]}):
        events = [RUN, begin(A1), *map(args, CITY), end(A1), {**DONE, "outcome": outcome}]
        assert by_events("agui", events).outcome.tool_calls == (A1,)


@pytest.mark.parametrize("length", range(6))
def test_a_missing_run_finished_is_truncated(length):
    """`agui-no-run-finished`: the rest is reported as truncated; calls that ended are kept."""
    events = [RUN, begin(A1), *map(args, CITY), end(A1)][:length]
    outcome = by_events("agui", events).outcome
    assert [trouble.kind for trouble in outcome.errors] == ["truncated"]
    assert outcome.tool_calls == ((A1,) if length == 5 else ())


def test_an_error_ends_the_answer():
    """The text is kept, open calls are dropped, and later events are ignored."""
    usage = [{"inputTokens": 3, "outputTokens": 1}]
    error = event("RUN_ERROR", message="boom", code="kit", usage=usage)
    before = [RUN, message("CHUNK", delta="Hel"), begin(A1), args(CITY[0])]
    run = by_events("agui", [*before, error, RUN, message("CHUNK", delta="lo"), DONE])
    (trouble,) = run.outcome.errors
    assert run.outcome == Outcome("Hel", usage=Usage(3, 1), errors=(trouble,))
    assert (trouble.kind, trouble.message) == ("stream_error", "boom (kit)")
    assert run.pending == 0


def test_usage_of_several_models_adds_up():
    """Entries of several models are added; a count that no entry has is None."""
    usage_entries = [
        {"inputTokens": 3, "outputTokens": 1, "reasoningTokens": 1},
        {"inputTokens": 4},
    ]
    assert by_events("agui", [RUN, {**DONE, "usage": usage_entries}]).outcome.usage == Usage(
        7, 1, 1, None
    )


@pytest.mark.parametrize("value", [None, "x", [], {"type": 1}, {"type": "TOOL_CALL_RESULT"}])
def test_a_malformed_event_is_ignored(value):
    """No value raises, and the answer around it is read."""
    events = [value, RUN, message("CHUNK", delta="Hi"), value, DONE, value]
    assert by_events("agui", events).outcome == Outcome("Hi", finish="RUN_FINISHED")


def test_thinking_of_earlier_versions_is_reasoning():
    """THINKING_TEXT_MESSAGE events, which have no id, are reasoning, one message after another."""
    thought = [
        event("THINKING_START"),
        *[event("THINKING_TEXT_MESSAGE_START"), event("THINKING_TEXT_MESSAGE_CONTENT", delta="Hm")],
        *[event("THINKING_TEXT_MESSAGE_END"), event("THINKING_END")],
    ]
    run = by_events("agui", [RUN, *thought, *thought, DONE])
    assert run.outcome == Outcome(reasoning="HmHm", finish="RUN_FINISHED")


def test_a_chunk_continues_the_latest_message_of_its_kind():
    """A chunk of text without an id does not continue the reasoning before it."""
    chunks = [
        message("CHUNK", "m1", delta="a"),
        message("CHUNK", "r1", "REASONING", delta="x"),
        event("TEXT_MESSAGE_CHUNK", delta="b"),
        event("REASONING_MESSAGE_CHUNK", delta="y"),
    ]
    outcome = by_events("agui", [RUN, *chunks, DONE]).outcome
    assert outcome == Outcome("ab", "xy", finish="RUN_FINISHED")


def test_encrypted_values_are_kept():
    """Encrypted values of a message and of a call are opaque values."""
    values = [
        event("REASONING_ENCRYPTED_VALUE", subtype=kind, entityId="e", encryptedValue=kind)
        for kind in ("message", "tool-call")
    ]
    full = by_events("agui", [RUN, *values, DONE]).full
    assert (full.opaque, full.role) == (("message", "tool-call"), "assistant")


@pytest.mark.parametrize("parts", [(), ("",), CITY])
def test_raw_arguments_are_the_joined_fragments(parts):
    """A call without TOOL_CALL_ARGS has an empty text as raw arguments, not `{}`."""
    run = by_events("agui", [RUN, begin(A1), *map(args, parts), end(A1), DONE])
    (call,) = run.full.tool_calls
    assert call.raw_arguments == "".join(parts)
    assert [(each.arguments, each.id, each.name) for each in run.tool] == [
        (part, A1.id, A1.name) for part in parts if part
    ]


@pytest.mark.parametrize("last", [[end(A1), begin(B2), end(B2), DONE], [DONE]])
def test_a_malformed_call_may_make_the_answer_fail(last):
    """With `malformed="fail"` nothing after the call counts: no finish, and no other call."""
    opened = [begin(A1), args("{")] if len(last) > 1 else [chunk("{", A1, named=True)]
    run = by_events("agui", [RUN, *opened, *last], malformed="fail")
    (trouble,) = run.outcome.errors
    assert run.outcome == Outcome(errors=(trouble,))
    assert (trouble.kind, run.pending) == ("malformed_arguments", 0)
