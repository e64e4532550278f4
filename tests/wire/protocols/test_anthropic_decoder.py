"""Anthropic Messages: streams of other servers, and malformed streams."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mockllm.core.events import (
    Cite,
    Finish,
    Frame,
    PartEnd,
    Passage,
    Start,
    StreamError,
    Timed,
    ToolArgs,
)
from mockllm.core.timeline import fold
from mockllm.core.turn import (
    Opaque,
    Reasoning,
    ServerTool,
    Text,
    TokenUsage,
    ToolCall,
    Turn,
)
from mockllm.wire.protocols.anthropic_messages.protocol import PROTOCOL
from tests.cases import for_all
from tests.wire.protocols.anthropic_turns import Json, event, read

CALL = {"type": "tool_use", "id": "toolu_A", "name": "f", "input": {}}
TEXT = {"type": "text", "text": ""}
THINKING = {"type": "thinking", "thinking": "", "signature": ""}
BEGIN = event(
    "message_start",
    message={"id": "msg_1", "model": "m", "usage": {"input_tokens": 11, "output_tokens": 1}},
)
STOP = event("message_stop")


def start(block: Json, index: int = 0) -> Frame:
    return event("content_block_start", index=index, content_block=block)


def text(text: str | None, index: int = 0) -> Frame:
    return event("content_block_delta", index=index, delta={"type": "text_delta", "text": text})


def arguments(text: str, index: int = 0) -> Frame:
    delta = {"type": "input_json_delta", "partial_json": text}
    return event("content_block_delta", index=index, delta=delta)


def other(index: int = 0, **delta: Any) -> Frame:
    return event("content_block_delta", index=index, delta=delta)


def stop(index: int = 0) -> Frame:
    return event("content_block_stop", index=index)


def end(reason: str | None = "end_turn", **fields: Any) -> Frame:
    return event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, **fields)


PLAIN = (BEGIN, start(TEXT), text("Hel"), text("lo"), stop(), end(), STOP)
HELLO = Turn((Text(("Hel", "lo")),), "stop")


def test_start_has_id_and_model() -> None:
    """The start event has the id and the model, also where another event comes before it."""
    assert PROTOCOL.decoder().decode(BEGIN) == [Start("msg_1", "m")]
    decoder = PROTOCOL.decoder()
    decoder.decode(event("vertex_event"))
    assert decoder.decode(BEGIN) == [Start("msg_1", "m")]


@for_all("position", range(len(PLAIN) + 1))
@for_all(
    "frame",
    [
        Frame('{"type": "ping"}', event="ping"),
        Frame("{}", event="ping"),
        Frame(event="ping"),
        Frame(""),
        Frame(comment="keep-alive"),
        Frame("[DONE]"),
    ],
)
def test_pings_comments_and_done_are_ignored(frame: Frame, position: int) -> None:
    """Pings in any form, comments and `[DONE]` may come anywhere."""
    assert read(*PLAIN[:position], frame, *PLAIN[position:]) == HELLO


def test_event_lines_may_be_missing() -> None:
    """The JSON's own type is enough."""
    assert read(*(Frame(frame.data) for frame in PLAIN)) == HELLO


def test_the_event_line_is_the_default_type() -> None:
    """JSON without a type has the type of its event line."""

    def untyped(frame: Frame) -> Frame:
        value = json.loads(frame.data or "")
        del value["type"]
        return Frame(json.dumps(value), event=frame.event)

    assert read(*map(untyped, PLAIN)) == HELLO


def test_padding_and_order_of_fields_do_not_matter() -> None:
    """Spaces anywhere in the JSON are ignored."""
    spaced = (Frame(json.dumps(json.loads(f.data or ""), indent=3)) for f in PLAIN)
    assert read(*spaced) == HELLO


@for_all(
    ("given_frames", "expected"),
    [
        ([start(CALL), arguments(""), stop()], ToolCall("f", "toolu_A")),
        ([start(CALL), stop()], ToolCall("f", "toolu_A")),
        ([start({**CALL, "input": ""}), stop()], ToolCall("f", "toolu_A")),
        ([start({"type": "tool_use", "id": "toolu_A", "name": "f"})], ToolCall("f", "toolu_A")),
        ([start({**CALL, "input": {"a": 1}}), stop()], ToolCall("f", "toolu_A", ('{"a":1}',))),
        (
            [start({**CALL, "input": {"a": 1}}), arguments(""), arguments('{"b":2}'), stop()],
            ToolCall("f", "toolu_A", ('{"b":2}',)),
        ),
        (
            [start({**CALL, "input": {"a": 1}}), arguments(""), stop()],
            ToolCall("f", "toolu_A", ('{"a":1}',)),
        ),
        (
            [start(CALL), arguments('{"a"'), arguments(""), arguments(":1}"), stop()],
            ToolCall("f", "toolu_A", ('{"a"', "", ":1}")),
        ),
        ([start({**TEXT, "text": "Hel"}), text("lo"), stop()], Text(("Hel", "lo"))),
        ([start(TEXT), stop()], Text(("",))),
        ([start(TEXT), text(None), text("a"), stop()], Text(("a",))),
        ([text("lost its start"), stop()], Text(("lost its start",))),
        ([start(THINKING), other(type="thinking_delta", thinking="a")], Reasoning(("a",))),
        ([start(THINKING), other(type="signature_delta", signature="s")], Reasoning((), "s")),
        (
            [start({**THINKING, "thinking": "a", "signature": "s"}), stop()],
            Reasoning(("a",), "s"),
        ),
        (
            [
                start(THINKING),
                other(type="signature_delta", signature="1"),
                other(type="signature_delta", signature="2"),
            ],
            Reasoning((), "2"),
        ),
    ],
)
def test_forms_of_a_block(given_frames: list[Frame], expected: Any) -> None:
    """Blocks are read in every form that servers give them."""
    assert read(BEGIN, *given_frames, end()) == Turn((expected,), "stop")


@pytest.mark.parametrize("indexes", [(0, 1), (1, 2), (2, 7), (0, 0), (7, 2)])
def test_indexes_are_keys(indexes: tuple[int, int]) -> None:
    """Indexes may have gaps, begin anywhere and repeat: a new start is a new block."""
    a, b = indexes
    turn = read(
        *(BEGIN, start(TEXT, a), text("x", a), stop(a)),
        *(start(CALL, b), arguments('{"a":1}', b), stop(b), end("tool_use")),
    )
    assert turn == Turn((Text(("x",)), ToolCall("f", "toolu_A", ('{"a":1}',))), "tool_calls")


def test_a_start_ends_the_block_that_had_its_index() -> None:
    """A block that begins with the index of an open one ends that one."""
    turn = read(BEGIN, start({**CALL, "input": {"a": 1}}), start(TEXT), text("x"), end())
    assert turn.parts == (ToolCall("f", "toolu_A", ('{"a":1}',)), Text(("x",)))


def test_open_blocks_end_before_the_message_does() -> None:
    """The finish is the last event, also where blocks were left open."""
    decoder = PROTOCOL.decoder()
    decoder.decode(start({**CALL, "input": {"a": 1}}))
    assert decoder.decode(end()) == [ToolArgs(0, '{"a":1}'), PartEnd(0), Finish("stop")]
    assert decoder.close() == []


def test_interleaved_blocks_are_separated_by_index() -> None:
    """Deltas go to the block of their index, and their order is kept."""
    turn = read(
        *(BEGIN, start(CALL), start({**CALL, "id": "toolu_B"}, 1)),
        *(arguments("{", 0), arguments("[", 1), arguments("}", 0), arguments("]", 1)),
        *(stop(0), stop(1), end("tool_use")),
    )
    first, second = ToolCall("f", "toolu_A", ("{", "}")), ToolCall("f", "toolu_B", ("[", "]"))
    assert turn == Turn((first, second), "tool_calls", order=(0, 1, 0, 1, 0, 1))


def test_a_call_cut_by_the_limit_keeps_its_fragments() -> None:
    """A call without its stop keeps the arguments that were received, and the finish is
    `length`."""
    turn = read(BEGIN, start(CALL), arguments(""), arguments('{"a":"b'), end("max_tokens"), STOP)
    assert turn == Turn((ToolCall("f", "toolu_A", ('{"a":"b',)),), "length")


UNKNOWN = [
    start({"type": "redacted_thinking", "data": "secret"}),
    start({"type": "kit_block"}),
    other(type="kit_delta", x=1),
    other(type="citations_delta", citation={"cited_text": "x"}),
    other(type="input_json_delta", partial_json="{}"),
    other(type="text_delta", text=["no", "string"]),
    event("vertex_event"),
    Frame("not JSON", event="odd"),
    Frame("[1]"),
]


@pytest.mark.parametrize("frame", UNKNOWN)
def test_unknown_frames_are_kept(frame: Frame) -> None:
    """Unknown events, blocks and deltas are kept as frames, and the rest is read."""
    turn = read(BEGIN, start(TEXT, 0), frame, start(TEXT, 5), text("x", 5), end())
    assert Opaque("anthropic", frame) in turn.parts
    assert (turn.text, turn.finish) == ("x", "stop")


def test_all_frames_of_an_unknown_block_are_kept() -> None:
    """Start, deltas and stop of a block without a neutral form are frames, each a part."""
    block = start({"type": "kit_block"}, 1)
    own = [block, arguments("", 1), arguments("{}", 1), stop(1)]
    turn = read(BEGIN, start(TEXT), text("a"), stop(), *own, start(TEXT, 2), text("b", 2), end())
    kept = tuple(Opaque("anthropic", frame) for frame in own)
    assert turn == Turn((Text(("a",)), *kept, Text(("b",))), "stop")


def search(index: int, id: str = "srvtoolu_1") -> list[Frame]:
    """The events of a call of the service's own search."""
    block = {"type": "server_tool_use", "id": id, "name": "web_search", "input": {}}
    return [
        start(block, index),
        arguments("", index),
        arguments('{"query":"x"}', index),
        stop(index),
    ]


def found(index: int, id: str = "srvtoolu_1") -> list[Frame]:
    """The events of its result."""
    block = {"type": "web_search_tool_result", "tool_use_id": id, "content": []}
    return [start(block, index), stop(index)]


QUERY = ('{"query":"x"}',)


def test_a_result_directly_after_its_call_is_part_of_it() -> None:
    """A call of a tool of the service and its result are one part."""
    turn = read(BEGIN, *search(0), *found(1), start(TEXT, 2), text("b", 2), stop(2), end())
    tool = ServerTool("web_search", "srvtoolu_1", "", QUERY, "[]")
    assert turn == Turn((tool, Text(("b",))), "stop")


def test_results_elsewhere_are_parts_of_their_own() -> None:
    """Results after several calls, and without any call, keep their positions."""
    turn = read(BEGIN, *search(0), *search(1, "srvtoolu_2"), *found(2), *found(3, "other"), end())
    assert turn.parts == (
        ServerTool("web_search", "srvtoolu_1", "", QUERY),
        ServerTool("web_search", "srvtoolu_2", "", QUERY),
        ServerTool("web_search", "srvtoolu_1", "web_search_tool_result", (), "[]"),
        ServerTool("web_search", "other", "web_search_tool_result", (), "[]"),
    )
    code = {"type": "code_execution_tool_result", "tool_use_id": "s", "content": {"type": "x"}}
    (only,) = read(BEGIN, start(code), stop(), end()).parts
    name = "code_execution_tool_result"
    assert only == ServerTool("code_interpreter", "s", name, (), '{"type":"x"}')


def test_the_input_of_a_call_may_be_in_its_start() -> None:
    """A complete call of a tool of the service, as in a body, has its input."""
    block = {
        "type": "mcp_tool_use",
        "id": "m",
        "name": "echo",
        "server_name": "s",
        "input": {"a": 1},
    }
    result = {"type": "mcp_tool_result", "tool_use_id": "m", "is_error": True, "content": "no"}
    turn = read(BEGIN, start(block), stop(), start(result, 1), stop(1), end())
    output = '{"content":"no","is_error":true}'
    assert turn.parts == (ServerTool("mcp", "m", "echo", ('{"a":1}',), output),)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ({"type": "char_location", "document_title": "T"}, Cite(0, "", "T", "c")),
        ({"type": "page_location", "document_title": None}, Cite(0, "", "", "c")),
        (
            {"type": "search_result_location", "source": "https://a.example/", "title": "A"},
            Cite(0, "https://a.example/", "A", "c"),
        ),
        (
            {
                "type": "search_result_location",
                "source": "https://a.example/",
                "title": "A",
                "search_result_index": 2,
                "start_block_index": 0,
                "end_block_index": 1,
            },
            Cite(0, "https://a.example/", "A", "c", Passage(2, "blocks", 0, 1, of_search=True)),
        ),
        (
            {
                "type": "char_location",
                "document_title": "T",
                "document_index": 1,
                "start_char_index": 3,
                "end_char_index": 9,
                "file_id": None,
            },
            Cite(0, "", "T", "c", Passage(1, "characters", 3, 9)),
        ),
        (
            {
                "type": "page_location",
                "document_title": None,
                "document_index": 0,
                "start_page_number": 1,
                "end_page_number": 3,
            },
            Cite(0, "", "", "c", Passage(0, "pages", 1, 3)),
        ),
        (
            {
                "type": "content_block_location",
                "document_title": "T",
                "document_index": 0,
                "start_block_index": 5,
                "end_block_index": 2,
            },
            Cite(0, "", "T", "c"),
        ),
    ],
)
def test_citations_of_documents_and_search_results(location: Json, expected: Cite) -> None:
    """Citations of every kind are neutral; those of documents have a title and no URL."""
    cite = other(type="citations_delta", citation={**location, "cited_text": "c"})
    assert read(BEGIN, start(TEXT), text("a"), cite, stop()).parts == (Text(("a",), (expected,)),)


def test_citations_before_their_text_are_kept() -> None:
    """The service sends a citation before its text; the citation belongs to that text."""
    cite = {
        "type": "web_search_result_location",
        "url": "https://example.com/",
        "title": None,
        "cited_text": "c",
        "encrypted_index": "x",
    }
    turn = read(BEGIN, start(TEXT), other(type="citations_delta", citation=cite), text("a"), stop())
    assert turn == Turn((Text(("a",), (Cite(0, "https://example.com/", "", "c"),)),))


@pytest.mark.parametrize(
    "fields",
    [
        {"delta": {"stop_reason": "end_turn", "container": {"id": "c"}}},
        {"delta": {"stop_reason": "end_turn", "stop_sequence": "END"}},
        {"delta": {"stop_reason": "end_turn", "stop_details": {"explanation": "Blocked."}}},
        {"usage": {"server_tool_use": {"web_search_requests": 1}}},
        {"usage": {"cache_creation_input_tokens": 3}},
        {"context_management": {"applied_edits": [{"type": "clear"}]}},
    ],
)
def test_an_end_with_other_fields_is_the_end(fields: Json) -> None:
    """A `message_delta` with more than finish and usage is read, and is no frame."""
    usual: Json = {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
    turn = read(BEGIN, event("message_delta", **{**usual, **fields}))
    assert (turn.parts, turn.finish) == ((), "stop")
    assert turn.usage is not None


def test_usage_is_cumulative() -> None:
    """Later counts replace earlier ones; missing and null counts stay as they are."""
    counts = {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}
    begin = event("message_start", message={"usage": counts})
    later = {"output_tokens": 9, "input_tokens": None}
    details = {"output_tokens_details": {"thinking_tokens": 4}, "output_tokens": 12}
    turn = read(begin, end(None, usage=later), end(usage=details))
    assert turn.usage == TokenUsage(15, 12, reasoning=4, cached=5)


def test_usage_that_is_missing_is_unknown() -> None:
    """A stream without usage gives None."""
    assert read(event("message_start", message={}), end()) == Turn((), "stop")
    assert read(end()) == Turn((), "stop")


def test_the_last_stop_reason_counts() -> None:
    """A second `message_delta` without a reason keeps the first one's."""
    assert read(BEGIN, end("tool_use"), end(None), STOP).finish == "tool_calls"


@pytest.mark.parametrize(
    ("reason", "finish", "raw"),
    [
        ("refusal", "refusal", None),
        ("stop_sequence", "stop", "stop_sequence"),
        ("pause_turn", "stop", "pause_turn"),
        ("model_context_window_exceeded", "length", "model_context_window_exceeded"),
        ("eos", "stop", "eos"),
    ],
)
def test_stop_reasons(reason: str, finish: str, raw: str | None) -> None:
    """Unusual stop reasons are kept verbatim as `finish_raw`."""
    turn = read(BEGIN, end(reason), STOP)
    assert (turn.finish, turn.finish_raw) == (finish, raw)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (
            event("error", error={"type": "overloaded_error", "message": "Overloaded"}),
            StreamError("Overloaded", "overloaded_error"),
        ),
        (Frame('{"error":{"message":"Boom"}}'), StreamError("Boom", "api_error")),
        (Frame('{"error":"Boom"}'), StreamError("Boom", "api_error")),
        (Frame("{}", event="error"), StreamError("the stream reports an error", "api_error")),
        (BEGIN, StreamError("message_start came twice in one stream", "api_error")),
    ],
)
def test_errors_end_the_stream(frame: Frame, expected: StreamError) -> None:
    """An error in any form ends the answer, and so does a second answer spliced in."""
    decoder = PROTOCOL.decoder()
    events = [
        e for f in (BEGIN, start(TEXT), text("a"), frame, text("b")) for e in decoder.decode(f)
    ]
    assert decoder.complete
    assert fold(Timed(0, e) for e in events) == Turn((Text(("a",)),), error=expected)


def test_complete_only_with_message_stop() -> None:
    """A stream that is cut is not complete, and nothing after the end counts."""
    decoder = PROTOCOL.decoder()
    for frame in PLAIN[:-1]:
        decoder.decode(frame)
        assert not decoder.complete
    decoder.decode(STOP)
    assert decoder.complete
    assert decoder.decode(text("more")) == []
    assert read(*PLAIN[:4]) == Turn((Text(("Hel", "lo")),))


RESULT = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {}}
FILLED = {**CALL, "input": {"city": "Oslo"}}


def begin(*content: Json, **fields: Any) -> Frame:
    usage = {"input_tokens": 11, "output_tokens": 3}
    message = {"id": "msg_1", "model": "m", "content": content, "usage": usage, **fields}
    return event("message_start", message=message)


def test_a_message_may_be_complete_in_its_start() -> None:
    """Blocks, stop reason and usage in `message_start` count, results of hosted tools included."""
    turn = read(begin(RESULT, FILLED, stop_reason="tool_use"), STOP)
    (tool,) = [part for part in turn.parts if isinstance(part, ServerTool)]
    assert (tool.id, tool.output) == ("srvtoolu_1", "{}")
    assert turn.tool_calls == (ToolCall("f", "toolu_A", ('{"city":"Oslo"}',)),)
    assert (turn.finish, turn.usage) == ("tool_calls", TokenUsage(11, 3))


def test_blocks_may_follow_those_in_the_start() -> None:
    """Blocks with events follow the blocks in `message_start`, also with an index used there."""
    for index in (0, 2):
        opened = start(TEXT, index), text("Hi", index), stop(index)
        turn = read(begin({**TEXT, "text": "Oh. "}, FILLED), *opened, end("tool_use"), STOP)
        assert (turn.text, len(turn.tool_calls), turn.finish) == ("Oh. Hi", 1, "tool_calls")


@pytest.mark.parametrize("placeholder", [TEXT, THINKING])
def test_an_empty_block_in_the_start_is_a_placeholder(placeholder: Json) -> None:
    """An empty block in `message_start` adds no part, and the stop reason there does not count."""
    placeholders = begin(placeholder, stop_reason="end_turn")
    assert read(placeholders, *PLAIN[1:]).parts == HELLO.parts
    assert read(placeholders).finish is None
