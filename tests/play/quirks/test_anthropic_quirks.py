"""The bytes of the quirks of Anthropic Messages, on the samples that show them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import mockllm.play.quirks as table
from mockllm.core.events import Frame
from mockllm.core.turn import Reasoning
from mockllm.play.quirks.anthropic import QUIRKS
from mockllm.play.quirks.samples import (
    INTERLEAVED,
    REASONING,
    TEXT,
    TEXT_AND_CALL,
    TEXT_AND_TWO_CALLS,
    TWO_CALLS,
)
from mockllm.scenario.model import Scenario
from tests.play.quirks.meaning import expected_turn
from tests.play.quirks.playing import decoded_turn, frames, plain, play

Json = dict[str, Any]

USAGE = {
    "input_tokens": 12,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 7,
    "output_tokens_details": {"thinking_tokens": 0},
}
STOP: Json = {"type": "message_stop"}
ERROR: Json = {
    "type": "error",
    "error": {"type": "overloaded_error", "message": "Overloaded"},
    "request_id": "req_",
}


def sent(name: str, scenario: Scenario | None = None) -> list[Frame]:
    """The frames of a quirk's sample, or of a scenario, with a quirk named `NAME` or
    `NAME:VARIANT`."""
    quirk, variant = table.find(name)
    return frames(play(quirk, variant, "anthropic", scenario))


def short_events(name: str, scenario: Scenario | None = None) -> list[Any]:
    """The events without pings, with the message of the start left out."""
    return [
        _shortened(json.loads(frame.data or ""))
        for frame in sent(name, scenario)
        if frame.event != "ping"
    ]


def _shortened(value: Json) -> Json:
    if value.get("type") == "message_start":
        return {"type": "message_start"}
    if "request_id" in value:
        return {**value, "request_id": value["request_id"][:4]}
    return value


def start(index: int, **block: Any) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def tool(index: int, id: str, name: str, **input: Any) -> Json:
    caller = {"type": "direct"}
    return start(index, type="tool_use", id=id, name=name, caller=caller, **input)


def text(index: int, fragment: str) -> Json:
    delta = {"type": "text_delta", "text": fragment}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def args(index: int, fragment: str) -> Json:
    delta = {"type": "input_json_delta", "partial_json": fragment}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def stop(index: int) -> Json:
    return {"type": "content_block_stop", "index": index}


def end(reason: str | None, **usage: Any) -> Json:
    delta = {"stop_reason": reason, "stop_sequence": None, "stop_details": None}
    return {"type": "message_delta", "delta": delta, **usage}


BEGIN: Json = {"type": "message_start"}
HELLO = [start(0, type="text", text=""), text(0, "Hel"), text(0, "lo"), stop(0)]
PARIS = [args(0, ""), args(0, '{"city":'), args(0, '"Paris"}')]
A1: Json = {"index": 0, "id": "call_A1", "name": "get_weather"}
DONE = [end("end_turn", usage=USAGE), STOP]
CALLED = [end("tool_use", usage=USAGE), STOP]


# Events without content


def test_pings_come_anywhere() -> None:
    """A ping is between any two events, before the start, or has no type."""
    events = [(frame.event, frame.data) for frame in sent("anth-ping")]
    assert events[1] == ("ping", '{"type": "ping"}')
    assert [event for event, _ in events[::2]] == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert {event for event, _ in events[1::2]} == {"ping"}
    first = sent("anth-ping:first")
    assert (first[0].event, first[0].data) == ("ping", '{"type": "ping"}')
    assert first[1].event == "message_start"
    assert sent("anth-ping:untyped")[1] == Frame("{}", event="ping")
    assert sent("anth-ping:bare")[1] == Frame("{}")


def test_no_event_lines() -> None:
    """Only data lines are sent."""
    sample, _ = table.find("anth-no-event-lines")
    body = b"".join(play(sample, sample.variants[0], "anthropic").data).decode()
    assert body.startswith('data: {"type":"message_start","message":{')
    assert {line.partition(":")[0] for line in body.split("\n") if line} == {"data"}
    assert short_events("anth-no-event-lines")[-1] == STOP


def test_unknown_types() -> None:
    """A block, an event and a delta have unknown types; nothing else changes."""
    kit = [start(1, type="kit_block"), stop(1)]
    assert short_events("anth-unknown-types") == [BEGIN, *HELLO, *kit, *DONE]
    event = {"type": "vertex_event"}
    assert short_events("anth-unknown-types:event") == [BEGIN, event, *HELLO, *DONE]
    assert sent("anth-unknown-types:event")[1].event == "vertex_event"
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "kit_delta"}}
    assert short_events("anth-unknown-types:delta") == [BEGIN, HELLO[0], delta, *HELLO[1:], *DONE]


def test_padded_json() -> None:
    """Every event but pings has spaces before its last brace."""
    by_name = [(frame.event, frame.data or "") for frame in sent("anth-padded-json")]
    assert by_name[3][1].endswith('"text":"Hel"}      }')
    assert all(data.endswith("      }") for event, data in by_name if event != "ping")
    wide = sent("anth-padded-json:wide")
    assert (wide[-1].data or "") == '{"type":"message_stop"' + " " * 1000 + "}"


def test_done_sentinel() -> None:
    """`[DONE]`, the end mark of another API, follows the end."""
    assert sent("anth-done-sentinel")[-1] == Frame("[DONE]")
    assert sent("anth-done-sentinel")[-2].event == "message_stop"


# Calls


def test_zero_arguments() -> None:
    """A call without arguments has only empty deltas, or none."""
    z0 = tool(0, "call_Z0", "list_issues", input={})
    empty = args(0, "")
    assert short_events("anth-zero-arg") == [BEGIN, z0, empty, empty, stop(0), *CALLED]
    assert short_events("anth-zero-arg:no-delta") == [BEGIN, z0, stop(0), *CALLED]


def test_input_in_start() -> None:
    """The start has the whole input; deltas are missing, repeat it, or are empty."""
    filled = tool(**A1, input={"city": "Paris"})
    assert short_events("anth-input-in-start") == [BEGIN, filled, stop(0), *CALLED]
    both = [BEGIN, filled, *PARIS, stop(0), *CALLED]
    assert short_events("anth-input-in-start:with-deltas") == both
    one = [BEGIN, filled, args(0, ""), stop(0), *CALLED]
    assert short_events("anth-input-in-start:empty-delta") == one


@pytest.mark.parametrize(
    ("variant", "input"),
    [("absent", {}), ("empty-string", {"input": ""}), ("null", {"input": None})],
)
def test_input_missing(variant: str, input: Json) -> None:
    """The start of a call has no input, or another value in its place."""
    events = short_events(f"anth-input-missing:{variant}")
    assert events == [BEGIN, tool(**A1, **input), *PARIS, stop(0), *CALLED]


def test_call_cut_by_limit() -> None:
    """The input breaks off, the block never stops, and the reason is the limit."""
    assert short_events("anth-tool-cut-by-limit") == [
        BEGIN,
        tool(**A1, input={}),
        args(0, ""),
        args(0, '{"city":'),
        args(0, '"Pa'),
        end("max_tokens", usage=USAGE),
        STOP,
    ]


def test_limit_cuts_the_last_call() -> None:
    """Of several calls the last one is cut, those before it stay whole."""
    whole, broken = decoded_turn(
        play(*table.find("anth-tool-cut-by-limit"), "anthropic", TWO_CALLS), "anthropic"
    ).tool_calls
    assert (whole.arguments, broken.arguments) == ('{"city":"Paris"}', '{"tz":"C')


# Blocks


def _indexes(name: str, scenario: Scenario | None = None) -> list[tuple[str, int]]:
    return [
        (event["type"].removeprefix("content_block_"), event["index"])
        for event in short_events(name, scenario)
        if "index" in event
    ]


def test_index_gap() -> None:
    """The second block has the index 2, the first one 1, or a later one comes first."""
    text_block = [("start", 0), ("delta", 0), ("delta", 0), ("stop", 0)]
    call_block = [("start", 0), ("delta", 0), ("delta", 0), ("delta", 0), ("stop", 0)]

    def numbered(first: int, second: int) -> list[tuple[str, int]]:
        return [(what, first) for what, _ in text_block] + [(w, second) for w, _ in call_block]

    assert _indexes("anth-index-gap") == numbered(0, 2)
    assert _indexes("anth-index-gap:from-one") == numbered(1, 2)
    assert _indexes("anth-index-gap:out-of-order") == numbered(1, 0)
    assert _indexes("anth-index-all-zero") == numbered(0, 0)


def test_out_of_order_keeps_calls_in_order() -> None:
    """Calls keep the order of the answer, however the blocks are sorted."""
    order = [
        (event["content_block"].get("id"), event["index"])
        for event in short_events("anth-index-gap:out-of-order", TEXT_AND_TWO_CALLS)
        if "content_block" in event
    ]
    assert order == [(None, 2), ("call_A1", 0), ("call_B2", 1)]


def test_overlapping_blocks_keep_their_index() -> None:
    """Blocks that are open at once cannot share an index."""
    quirk, variant = table.find("anth-index-all-zero")
    answer = play(quirk, variant, "anthropic", INTERLEAVED)
    assert answer.data == plain(INTERLEAVED, "anthropic").data


def test_interleaved() -> None:
    """Both calls are open while their fragments alternate."""
    assert short_events("anth-interleaved") == [
        BEGIN,
        tool(0, "call_A1", "get_weather", input={}),
        tool(1, "call_B2", "get_time", input={}),
        args(0, ""),
        args(1, ""),
        args(0, '{"city":'),
        args(1, '{"tz":'),
        args(0, '"Paris"}'),
        args(1, '"CET"}'),
        stop(0),
        stop(1),
        *CALLED,
    ]


def test_interleaved_with_text() -> None:
    """Text and a call alternate, too."""
    deltas = [index for what, index in _indexes("anth-interleaved", TEXT_AND_CALL)[2:-2]]
    assert deltas == [0, 1, 0, 1, 1]


def test_signature() -> None:
    """Thinking has no signature, or one in two deltas."""
    plain_events = [
        json.loads(frame.data or "")
        for frame in frames(plain(REASONING, "anthropic"))
        if frame.event != "ping"
    ]
    signed = next(e for e in plain_events if e.get("delta", {}).get("type") == "signature_delta")
    rest = [_shortened(event) for event in plain_events if event != signed]
    assert short_events("anth-signature") == rest
    signature_parts = [
        event["delta"]["signature"]
        for event in short_events("anth-signature:split")
        if event.get("delta", {}).get("type") == "signature_delta"
    ]
    assert signature_parts == ["c2lnbm", "F0dXJl"]


def test_missing_signature_decodes_to_none() -> None:
    """The turn of a stream without signatures has none."""
    _, variant = table.find("anth-signature")
    turn = decoded_turn(plain(REASONING, "anthropic"), "anthropic")
    thought = expected_turn("anth-signature:missing", variant, turn).parts[0]
    assert isinstance(thought, Reasoning)
    assert (thought.text, thought.signature) == ("Let me think.", None)


def test_text_in_start() -> None:
    """The start of the text has its first fragment, or all of it."""
    first = [start(0, type="text", text="Hel"), text(0, "lo"), stop(0)]
    assert short_events("anth-text-in-start") == [BEGIN, *first, *DONE]
    whole = [start(0, type="text", text="Hello"), stop(0)]
    assert short_events("anth-text-in-start:whole") == [BEGIN, *whole, *DONE]


# The end


def test_error_event() -> None:
    """An error ends the stream: after a fragment, at once, or instead of its end."""
    assert short_events("anth-error-event") == [BEGIN, *HELLO[:2], ERROR]
    assert sent("anth-error-event")[-1].event == "error"
    assert short_events("anth-error-event:first") == [ERROR]
    assert short_events("anth-error-event:at-the-end") == [BEGIN, *HELLO, ERROR]


def test_cut() -> None:
    """The stream ends after a fragment, or only its last events are missing."""
    call = [tool(1, "call_A1", "get_weather", input={}), args(1, ""), args(1, '{"city":')]
    whole = [BEGIN, *HELLO, *call, args(1, '"Paris"}'), stop(1)]
    assert short_events("anth-cut") == [BEGIN, *HELLO[:2]]
    assert short_events("anth-cut:in-call") == [BEGIN, *HELLO, *call]
    assert short_events("anth-cut:before-end") == whole
    assert short_events("anth-cut:before-stop") == [*whole, end("tool_use", usage=USAGE)]


def test_usage_missing() -> None:
    """The start or the end of the message has no usage, or neither has."""
    assert short_events("anth-usage-missing") == [BEGIN, *HELLO, end("end_turn"), STOP]

    def counted(variant: str) -> list[bool]:
        values = [json.loads(frame.data or "") for frame in sent(f"anth-usage-missing:{variant}")]
        return ["usage" in values[0]["message"], "usage" in values[-2]]

    assert counted("message-delta") == [True, False]
    assert counted("message-start") == [False, True]
    assert counted("both") == [False, False]


def test_two_message_deltas() -> None:
    """A second `message_delta` has no reason; it follows or precedes the one with it."""
    call = [BEGIN, tool(**A1, input={}), *PARIS, stop(0)]
    with_reason, no_reason = end("tool_use", usage=USAGE), end(None, usage=USAGE)
    assert short_events("anth-two-message-delta") == [*call, with_reason, no_reason, STOP]
    other = short_events("anth-two-message-delta:null-before")
    assert other == [*call, no_reason, with_reason, STOP]


def test_message_starts_twice() -> None:
    """A first attempt breaks off, and a second message, with another id, is whole."""
    assert short_events("anth-message-start-twice") == [BEGIN, *HELLO[:2], BEGIN, *HELLO, *DONE]
    assert short_events("anth-message-start-twice:at-once") == [BEGIN, BEGIN, *HELLO, *DONE]
    ids = [
        json.loads(frame.data or "")["message"]["id"]
        for frame in sent("anth-message-start-twice")
        if frame.event == "message_start"
    ]
    assert len(set(ids)) == 2


def test_names_are_those_of_the_group() -> None:
    """The group is complete, and its names are unique."""
    assert sorted(quirk.name.removeprefix("anth-") for quirk in QUIRKS) == [
        "cut",
        "done-sentinel",
        "end-turn-with-tools",
        "error-event",
        "id-shared",
        "index-all-zero",
        "index-gap",
        "input-in-start",
        "input-missing",
        "interleaved",
        "message-start-twice",
        "no-event-lines",
        "padded-json",
        "ping",
        "signature",
        "start-missing",
        "text-in-start",
        "tool-cut-by-limit",
        "two-message-delta",
        "unknown-types",
        "usage-missing",
        "zero-arg",
    ]


def test_text_alone_has_no_calls_to_change() -> None:
    """Quirks of calls leave an answer of text alone as it is."""
    for name in ("anth-zero-arg", "anth-input-in-start", "anth-input-missing"):
        quirk, variant = table.find(name)
        assert play(quirk, variant, "anthropic", TEXT).data == plain(TEXT, "anthropic").data
