"""OpenAI Responses: decoding the streams of real servers, exact or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.core.events import Raw, StreamError, TextDelta, Timed
from mockllm.core.timeline import fold
from mockllm.core.turn import (
    Opaque,
    Reasoning,
    Refusal,
    ServerTool,
    Text,
    TokenUsage,
    ToolCall,
    Turn,
)
from mockllm.wire.framing import sse
from mockllm.wire.protocols.decoding import decode_turn
from mockllm.wire.protocols.openai_responses.decoder import Decoder
from mockllm.wire.protocols.openai_responses.protocol import PROTOCOL
from tests import strategies
from tests.cases import for_all
from tests.corpus import needs_corpus, recorded_streams

RECORDED = recorded_streams("responses")


def decoded_turn(*events: dict[str, Any] | str) -> Turn:
    """The turn of events that are written by hand; a type may leave out `response.`."""
    frames = []
    for event in events:
        if isinstance(event, dict) and event.get("type", "error") != "error":
            event = {**event, "type": "response." + event["type"]}
        data = event if isinstance(event, str) else json.dumps(event)
        frames.append(sse.Frame(data))
    return decode_turn(PROTOCOL, frames)[0]


def added(index: int | None, **item: Any) -> dict[str, Any]:
    return {"type": "output_item.added", "output_index": index, "item": item}


def done(index: int | None, **item: Any) -> dict[str, Any]:
    return {"type": "output_item.done", "output_index": index, "item": item}


def call(index: int, **fields: Any) -> dict[str, Any]:
    return added(index, type="function_call", **fields)


def arguments(index: int | None, delta: str, id: str | None = None) -> dict[str, Any]:
    type = "function_call_arguments.delta"
    return {"type": type, "output_index": index, "item_id": id, "delta": delta}


def text(delta: str, index: int | None = 0, **fields: Any) -> dict[str, Any]:
    return {"type": "output_text.delta", "output_index": index, "delta": delta, **fields}


def completed(*output: dict[str, Any]) -> dict[str, Any]:
    return {"type": "completed", "response": {"status": "completed", "output": list(output)}}


A = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"a":1}'}
A_DONE = {"type": "output_item.done", "output_index": 0, "item": A}
MESSAGE = {"type": "message", "content": [{"type": "output_text", "text": "Hello"}]}
CALL_A = ToolCall("f", "c1", ('{"a":1}',))


# Recorded streams


def test_parts_without_an_index() -> None:
    """Two contents of one message whose events have no index are two: none of them comes twice."""
    events: list[dict[str, Any]] = [added(0, type="message", id="msg_1")]
    for text in ("One", "Two"):
        part = {"type": "output_text", "text": text}
        events += [
            {"type": "content_part.added", "output_index": 0, "part": {**part, "text": ""}},
            {"type": "output_text.delta", "output_index": 0, "delta": text},
            {"type": "output_text.done", "output_index": 0, "text": text},
            {"type": "content_part.done", "output_index": 0, "part": part},
        ]
    contents = [{"type": "output_text", "text": text} for text in ("One", "Two")]
    turn = decoded_turn(*events, done(0, type="message", id="msg_1", content=contents))
    assert [part.text for part in turn.parts if isinstance(part, Text)] == ["One", "Two"]


def recorded(path: Path) -> tuple[Turn, dict[str, Any], list[sse.Frame]]:
    frames = sse.decode(path.read_bytes())
    decoder = Decoder()
    events = [Timed(0, event) for frame in frames for event in decoder.decode(frame)]
    assert decoder.complete
    return fold(events), json.loads(frames[-1].data or "")["response"], frames


@needs_corpus
@for_all("path", RECORDED, ids=lambda path: path.parent.name)
def test_a_recorded_stream_equals_its_response(path: Path) -> None:
    """Text, reasoning, calls, usage and finish equal those of the response in the last event."""
    turn, response, _ = recorded(path)
    body = PROTOCOL.decode_body(response)
    calls = [(call.id, call.name, call.arguments) for call in turn.tool_calls]
    assert turn.text == body.text
    assert calls == [(call.id, call.name, call.arguments) for call in body.tool_calls]
    assert (turn.usage, turn.finish, turn.error) == (body.usage, body.finish, None)
    assert turn.usage is not None
    # One of the servers streams reasoning that its final response leaves out.
    assert turn.reasoning == body.reasoning or not body.reasoning


@needs_corpus
@for_all("path", RECORDED, ids=lambda path: path.parent.name)
def test_recorded_hosted_frames_are_kept(path: Path) -> None:
    """Frames of hosted tools are all kept, verbatim and in their order."""
    turn, response, frames = recorded(path)
    all_kept = [part.frame for part in turn.parts if isinstance(part, Opaque)]
    kept = [frame for frame in all_kept if frame in frames]
    assert all(
        json.loads(frame.data or "")["item"] in response["output"]
        for frame in all_kept
        if frame not in kept
    )
    assert sorted(kept, key=frames.index) == [frame for frame in frames if frame in kept]
    tools = ("_call", "mcp_", "tool_search", "file_citation")
    assert all(any(tool in (frame.data or "") for tool in tools) for frame in kept)


# Compatible servers


PLAIN = Turn((CALL_A,), "tool_calls")


@for_all(
    "events",
    [
        pytest.param([A_DONE, completed()], id="item done alone"),
        pytest.param([completed(A)], id="final output alone"),
        pytest.param(
            [
                call(0, id="fc_1", call_id="c1", name="f", arguments=""),
                {"type": "function_call_arguments.done", "output_index": 0, "arguments": '{"a":1}'},
                A_DONE,
                completed(A),
            ],
            id="arguments in done only",
        ),
        pytest.param([added(0, **A), completed()], id="arguments in added"),
        pytest.param(
            [
                call(0, call_id="c1", name="f", arguments='{"a":1}'),
                arguments(0, '{"a":1}'),
                completed(),
            ],
            id="arguments in added and again",
        ),
        pytest.param([arguments(0, '{"a":1}'), A_DONE, completed()], id="no added"),
        pytest.param([A_DONE, A_DONE, completed(A)], id="done twice"),
        pytest.param(
            [
                call(0, id="fc_1", call_id="c1", name="f"),
                arguments(0, '{"a":1}', "fc_2"),
                done(0, **{**A, "id": "fc_3"}),
                completed({**A, "id": "fc_4"}),
            ],
            id="ids that rotate",
        ),
        pytest.param(
            [call(0, id=None, call_id="c1", name="f"), arguments(0, '{"a":1}'), completed()],
            id="id null",
        ),
        pytest.param(
            [added(None, **{**A, "arguments": ""}), arguments(None, '{"a":1}'), completed()],
            id="no output_index",
        ),
        pytest.param([done(0, **{**A, "arguments": {"a": 1}}), completed()], id="arguments parsed"),
        pytest.param(
            [A_DONE, {"type": "completed", "response": {"output": None}}], id="output null"
        ),
        pytest.param(["[DONE]", A_DONE, completed(), "[DONE]"], id="sentinel"),
        pytest.param([A_DONE, completed(), text("late", 1)], id="after the end"),
    ],
)
def test_every_form_of_a_call(events: list[Any]) -> None:
    """The call is decoded once, whichever events carry its parts."""
    assert decoded_turn(*events) == PLAIN


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([text("Hel"), text("lo"), completed()], id="no openers"),
        pytest.param([text("Hel", None), text("lo", None), completed()], id="no index"),
        pytest.param([text("Hel"), completed(MESSAGE)], id="rest in the final output"),
        pytest.param([text("Hel"), done(0, **MESSAGE), completed()], id="rest in done"),
        pytest.param(
            [text("Hello"), {"type": "output_text.done", "text": "Hello"}, text("!"), completed()],
            id="delta after done",
        ),
        pytest.param(
            [text("Hel", item_id="a"), text("lo", item_id="b"), completed({**MESSAGE, "id": "c"})],
            id="ids that rotate",
        ),
        pytest.param([done(3, **MESSAGE), completed(MESSAGE)], id="index with a gap"),
    ],
)
def test_every_form_of_a_text(events: list[Any]) -> None:
    """The text is decoded once, whichever events carry its parts."""
    turn = decoded_turn(*events)
    assert (turn.text, len(turn.parts), turn.finish) == ("Hello", 1, "stop")


def test_items_that_share_an_index_are_separated_by_id() -> None:
    """Where every item has index 0, the id decides which item a fragment belongs to."""
    turn = decoded_turn(
        call(0, id="a", call_id="c1", name="f"),
        call(0, id="b", call_id="c2", name="g"),
        arguments(0, "[1]", "a"),
        arguments(0, "[2]", "b"),
        completed(),
    )
    assert [(c.id, c.arguments) for c in turn.tool_calls] == [("c1", "[1]"), ("c2", "[2]")]


def test_items_in_any_order_are_sorted_by_index() -> None:
    """Parts have the order of the output, even if the stream opens them in another."""
    turn = decoded_turn(
        call(1, call_id="c2", name="g"), call(0, call_id="c1", name="f"), completed()
    )
    assert [c.id for c in turn.tool_calls] == ["c1", "c2"]


def test_reasoning_is_joined_by_index_not_by_id() -> None:
    """A reasoning id that changes with every delta does not split the summary."""
    type = "reasoning_summary_text.delta"
    deltas = [
        {"type": type, "item_id": f"rs_{i}", "output_index": 0, "summary_index": 0, "delta": t}
        for i, t in enumerate("abc")
    ]
    assert decoded_turn(*deltas, completed()).parts == (Reasoning(("a", "b", "c"), summary=True),)


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (
            {"type": "error", "error": {"type": "t", "code": "c", "message": "m", "param": None}},
            StreamError("m", "t", "c"),
        ),
        ({"type": "error", "code": "c", "message": "m"}, StreamError("m", None, "c")),
        ({"error": {"message": "m", "type": "t"}}, StreamError("m", "t")),
        ({"error": "m"}, StreamError("m")),
        (
            {"type": "failed", "response": {"error": {"code": "c", "message": "m"}}},
            StreamError("m", None, "c"),
        ),
        ({"type": "failed", "response": {"error": None}}, StreamError("the response failed")),
    ],
)
def test_errors_in_every_form(event: dict[str, Any], error: StreamError) -> None:
    """A nested, flat or bare error, or a failed response, ends the answer."""
    turn = decoded_turn(text("a"), event)
    assert (turn.text, turn.error, turn.finish) == ("a", error, None)


def test_usage_after_an_error() -> None:
    """The failed response after an error gives usage and no second error."""
    usage = {"input_tokens": 5, "output_tokens": 1}
    failed = {"type": "failed", "response": {"usage": usage, "error": {"message": "other"}}}
    turn = decoded_turn({"type": "error", "error": {"message": "m"}}, failed)
    assert (turn.error, turn.usage) == (StreamError("m"), TokenUsage(5, 1))


@pytest.mark.parametrize(
    ("details", "finish", "raw"),
    [
        ({"reason": "max_output_tokens"}, "length", None),
        ({"reason": "content_filter"}, "content_filter", None),
        ({"reason": "steered"}, "length", "steered"),
        (None, "length", None),
    ],
)
def test_incomplete_reasons(details: Any, finish: str, raw: str | None) -> None:
    """An incomplete response ends with `length` unless it has another reason."""
    turn = decoded_turn({"type": "incomplete", "response": {"incomplete_details": details}})
    assert (turn.finish, turn.finish_raw) == (finish, raw)


def test_a_stream_that_is_cut_is_not_complete() -> None:
    """Without its last event a stream has no finish, and keeps what came."""
    turn = decoded_turn(call(0, call_id="c1", name="f"), arguments(0, '{"a'))
    assert (turn.finish, turn.tool_calls) == (None, (ToolCall("f", "c1", ('{"a',)),))
    decoder = Decoder()
    decoder.decode(sse.Frame(json.dumps({"type": "response.created", "response": {}})))
    assert not decoder.complete


def test_refusal_ends_in_refusal() -> None:
    """A completed response with a refusal and no calls was refused."""
    part = {"type": "refusal", "refusal": "No."}
    turn = decoded_turn(done(0, type="message", content=[part]), completed())
    assert (turn.parts, turn.finish) == ((Refusal(("No.",)),), "refusal")


def test_a_citation_inside_its_text() -> None:
    """A citation that is sent in the middle of a text belongs to the whole text."""
    mark = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 5}
    event = {"type": "output_text.annotation.added", "output_index": 0, "annotation": mark}
    turn = decoded_turn(text("Hel"), event, text("lo!"), completed())
    (part,) = turn.parts
    assert isinstance(part, Text)
    assert [(c.url, c.title, c.cited_text) for c in part.citations] == [("u", "t", "Hello")]


def test_unknown_events_are_kept_in_order() -> None:
    """Keep-alives and new events are frames of their own, at their position."""
    decoder = Decoder()
    keepalive = sse.Frame('{"type":"keepalive","sequence_number":1}')
    events = [
        event
        for frame in (
            sse.Frame(json.dumps({"type": "response.output_text.delta", "delta": "a"})),
            keepalive,
            sse.Frame(json.dumps({"type": "response.output_text.delta", "delta": "b"})),
        )
        for event in decoder.decode(frame)
    ]
    assert [type(event) for event in events] == [TextDelta, Raw, TextDelta]
    turn = fold(Timed(0, event) for event in events)
    assert turn.parts == (Text(("a", "b")), Opaque("responses", keepalive))


def test_a_hosted_item_that_only_the_end_finishes_is_read() -> None:
    """A hosted item without its `done` event is read from the final output, once."""
    listing = {"type": "mcp_list_tools", "id": "l1", "server_label": "s"}
    finished = {**listing, "tools": [{"name": "t"}]}
    for events in ([added(0, **listing)], [added(0, **listing), done(0, **finished)]):
        turn = decoded_turn(*events, completed(finished))
        assert turn.parts == (ServerTool("mcp_list_tools", "l1", "s", (), '[{"name":"t"}]'),)


def test_similar_events_of_another_api_are_kept() -> None:
    """Events that only look like ours are frames and give no text."""
    turn = decoded_turn({"type": "text.delta", "delta": "a"}, {"type": "done", "response": {}})
    assert (turn.text, len(turn.parts), turn.finish) == ("", 2, None)


TYPES = [
    *("created", "completed", "incomplete", "failed", "output_item.added", "output_item.done"),
    *("content_part.added", "content_part.done", "reasoning_summary_part.done"),
    *("output_text.delta", "output_text.done", "refusal.delta", "reasoning_text.delta"),
    *("reasoning_summary_text.done", "function_call_arguments.delta", "unknown.thing"),
    *("function_call_arguments.done", "output_text.annotation.added"),
]
odd = st.one_of(
    strategies.json_values,
    st.integers(-1, 2),
    st.sampled_from(["a", "message", "reasoning", "function_call", "output_text", "refusal"]),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["message", "reasoning", "function_call", "web", 1, []])},
        optional={
            name: strategies.json_values | st.sampled_from(["a", "b"])
            for name in ("id", "call_id", "name", "arguments", "content", "summary", "status")
        },
    ),
)
FIELDS = [
    *("item_id", "output_index", "content_index", "summary_index", "delta", "text", "logprobs"),
    *("arguments", "item", "part", "response", "error", "annotation", "name"),
]
types = st.sampled_from([f"response.{name}" for name in TYPES] + ["error"])
odd_events = st.fixed_dictionaries({"type": types | odd}, optional=dict.fromkeys(FIELDS, odd))


@settings(deadline=None)
@given(st.lists(odd_events, max_size=6))
def test_nothing_makes_the_decoder_fail(events: list[dict[str, Any]]) -> None:
    """Events with any field values decode to something that folds to a turn."""
    assert isinstance(decoded_turn(*map(json.dumps, events)), Turn)


def test_a_final_value_replaces_deltas_that_it_contradicts() -> None:
    """The value of a `done` counts for texts and arguments, also if it comes with the item, and
    later deltas do not; an empty one replaces nothing."""
    arguments_done = {"type": "function_call_arguments.done", "output_index": 1}
    turn = decoded_turn(
        text("Helo"),
        {"type": "output_text.done", "output_index": 0, "text": "Hello"},
        text(" again"),
        call(1, call_id="a", name="f"),
        arguments(1, '{"x":'),
        {**arguments_done, "arguments": '{"y":2}'},
        call(2, call_id="b", name="g"),
        arguments(2, '{"x":1}'),
        done(2, type="function_call", call_id="b", name="g", arguments='{"z":3}'),
        call(3, call_id="c", name="h"),
        arguments(3, '{"x":1}'),
        done(3, type="function_call", call_id="c", name="h", arguments=""),
        completed(),
    )
    assert turn.text == "Hello"
    assert [one.arguments for one in turn.tool_calls] == ['{"y":2}', '{"z":3}', '{"x":1}']


def test_a_final_value_replaces_arguments_before_the_name_is_known() -> None:
    """A call that is not announced yet begins with the final arguments."""
    turn = decoded_turn(
        arguments(0, '{"x":'),
        {"type": "function_call_arguments.done", "output_index": 0, "arguments": '{"y":2}'},
        done(0, type="function_call", call_id="a", name="f", arguments='{"y":2}'),
        completed(),
    )
    assert turn.parts == (ToolCall("f", "a", ('{"y":2}',)),)
