"""Anthropic Messages: the exact frames and bodies of small answers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from mockllm.core.events import Cite, Finish, Frame, StreamError
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
from mockllm.wire.protocols.anthropic_messages.protocol import PROTOCOL
from tests.wire.protocols.anthropic_turns import (
    REPLY,
    USAGE,
    Json,
    event,
    frames,
    hosted,
    read,
    values,
)

MESSAGE_USAGE = {"input_tokens": 11, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


def short(turn: Turn) -> list[Any]:
    """The events between the first and the last two, shortened: block starts and deltas."""
    out = []
    for value in values(turn)[1:-2]:
        index = value["index"]
        body = value.get("content_block") or value.get("delta")
        out.append((index, body) if body else (index, "stop"))
    return out


def ending(turn: Turn) -> Json:
    """The `message_delta` of a turn."""
    (found,) = [value for value in values(turn) if value["type"] == "message_delta"]
    return found


def test_text_with_ping() -> None:
    """A text answer has the service's events in the service's order, the ping included."""
    turn = Turn((Text(("Hel", "lo")),), "stop", USAGE)
    assert [frame.event for frame in frames(turn)] == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert frames(turn)[2] == Frame('{"type": "ping"}', event="ping")
    first, *between, last, end = values(turn)
    message = first["message"]
    assert first == {
        "type": "message_start",
        "message": {
            "model": "claude-9",
            "id": PROTOCOL.answer_id(REPLY),
            "type": "message",
            "role": "assistant",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "stop_details": None,
            "usage": {
                **MESSAGE_USAGE,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 0,
                    "ephemeral_1h_input_tokens": 0,
                },
                "output_tokens": 1,
                "service_tier": "standard",
                "inference_geo": "global",
            },
        },
    }
    assert list(message)[:3] == ["model", "id", "type"]
    assert between == [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": text},
            }
            for text in ("Hel", "lo")
        ),
        {"type": "content_block_stop", "index": 0},
    ]
    assert last == {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None, "stop_details": None},
        "usage": {
            **MESSAGE_USAGE,
            "output_tokens": 7,
            "output_tokens_details": {"thinking_tokens": 0},
        },
    }
    assert end == {"type": "message_stop"}


def test_json_is_compact_and_padded_before_its_last_brace() -> None:
    """Every event but the ping may have up to 15 spaces before the last brace, and nowhere else."""
    turn = Turn((Text(tuple("padding differs")),), "stop", USAGE)
    widths = set()
    for frame in frames(turn):
        if frame.event != "ping":
            found = re.fullmatch(r"(.*?)( *)}", frame.data or "")
            assert found is not None
            assert (
                json.dumps(json.loads(frame.data or ""), separators=(",", ":")) == f"{found[1]}}}"
            )
            widths.add(len(found[2]))
    assert max(widths) < 16
    assert len(widths) > 4


def test_tool_call_begins_with_an_empty_fragment() -> None:
    """A call opens with an empty input and an empty fragment, then come its own."""
    turn = Turn((ToolCall("get_weather", "toolu_A", ('{"ci', 'ty":1}')),), "tool_calls", USAGE)
    call = {"type": "tool_use", "id": "toolu_A", "name": "get_weather", "input": {}}
    assert short(turn) == [
        (0, {**call, "caller": {"type": "direct"}}),
        *((0, {"type": "input_json_delta", "partial_json": x}) for x in ("", '{"ci', 'ty":1}')),
        (0, "stop"),
    ]
    assert ending(turn)["delta"]["stop_reason"] == "tool_use"


def test_zero_argument_call_is_one_empty_fragment() -> None:
    """A call without arguments has the empty fragment and never `{}`."""
    turn = Turn((ToolCall("list_issues", "toolu_Z"),), "tool_calls", USAGE)
    assert short(turn)[1:] == [(0, {"type": "input_json_delta", "partial_json": ""}), (0, "stop")]
    assert PROTOCOL.encode_body(turn, REPLY)["content"][0]["input"] == {}


def test_interleaved_calls_are_interleaved_blocks() -> None:
    """Fragments of two calls alternate, each with the index of its block."""
    calls = (ToolCall("a", "toolu_A", ("{", "}")), ToolCall("b", "toolu_B", ("{", " }")))
    turn = Turn(calls, "tool_calls", USAGE, order=(0, 1, 0, 1, 0, 1))
    deltas = [
        (index, what if what == "stop" else what.get("partial_json", "start"))
        for index, what in short(turn)
    ]
    assert deltas == [
        (0, "start"),
        (0, ""),
        (1, "start"),
        (1, ""),
        (0, "{"),
        (1, "{"),
        (0, "}"),
        (0, "stop"),
        (1, " }"),
        (1, "stop"),
    ]


def test_blocks_open_in_the_order_of_the_parts() -> None:
    """A part that begins before the one in front of it lets that one open first."""
    turn = Turn((Text(("late",)), ToolCall("f", "toolu_F", ("{}x",))), "stop", order=(1, 1, 0))
    starts = [value for value in values(turn) if value["type"] == "content_block_start"]
    assert [(v["index"], v["content_block"]["type"]) for v in starts] == [
        (0, "text"),
        (1, "tool_use"),
    ]
    assert read(*frames(turn)) == PROTOCOL.project(turn)


def test_thinking_ends_in_its_signature() -> None:
    """Thinking streams as `thinking_delta`, and its signature comes just before the stop."""
    turn = Turn((Reasoning(("Hm", "m."), "EqQB"), Text(("Hi",))), "stop", USAGE)
    assert short(turn)[:5] == [
        (0, {"type": "thinking", "thinking": "", "signature": ""}),
        (0, {"type": "thinking_delta", "thinking": "Hm"}),
        (0, {"type": "thinking_delta", "thinking": "m."}),
        (0, {"type": "signature_delta", "signature": "EqQB"}),
        (0, "stop"),
    ]


def test_withheld_thinking_has_its_signature_alone() -> None:
    """Reasoning without text has no `thinking_delta`."""
    turn = Turn((Reasoning((), "EqQB"),), "stop", USAGE)
    assert short(turn)[1:] == [(0, {"type": "signature_delta", "signature": "EqQB"}), (0, "stop")]
    assert read(*frames(turn)) == turn


def test_a_missing_signature_is_derived() -> None:
    """Thinking without a signature gets one, always the same for the same text."""
    first, second = (values(Turn((Reasoning(("a",)),), "stop")) for _ in range(2))
    assert first == second
    assert first[3]["delta"]["signature"].startswith("Er")


def test_citation_is_a_search_result() -> None:
    """A citation comes as a result of a web search, in a text block that has citations, before the
    text."""
    cite = Cite(0, "https://example.com/", "", "cited")
    turn = Turn((Text(("claim",), (cite,)),), "stop", USAGE)
    start, delta, text, _ = short(turn)
    assert start == (0, {"citations": [], "type": "text", "text": ""})
    assert text == (0, {"type": "text_delta", "text": "claim"})
    location = delta[1]["citation"]
    assert location.pop("encrypted_index")
    assert location == {
        "type": "web_search_result_location",
        "cited_text": "cited",
        "url": "https://example.com/",
        "title": None,
    }
    (block,) = PROTOCOL.encode_body(turn, REPLY)["content"]
    assert block["citations"][0]["url"] == "https://example.com/"


def test_refusal_is_text_that_ends_in_refusal() -> None:
    """The text of a refusal is a text block; the stop reason is `refusal`."""
    turn = Turn((Refusal(("I can", "not.")),), "refusal", USAGE)
    assert short(turn)[0] == (0, {"type": "text", "text": ""})
    assert ending(turn)["delta"] == {
        "stop_reason": "refusal",
        "stop_sequence": None,
        "stop_details": {"type": "refusal", "category": None, "explanation": None},
    }
    assert read(*frames(turn)) == Turn((Text(("I can", "not.")),), "refusal", USAGE)


def test_refusal_without_text_has_no_block() -> None:
    """A refusal without text is a message without content, with the ping right after its start."""
    turn = Turn((Refusal(()),), "refusal", USAGE)
    expected = ["message_start", "ping", "message_delta", "message_stop"]
    assert [frame.event for frame in frames(turn)] == expected
    assert PROTOCOL.encode_body(turn, REPLY)["content"] == []


@pytest.mark.parametrize(
    ("finish", "word"),
    [
        (Finish("stop"), "end_turn"),
        (Finish("tool_calls"), "tool_use"),
        (Finish("length"), "max_tokens"),
        (Finish("content_filter"), "refusal"),
        (Finish("stop", "pause_turn"), "pause_turn"),
        (Finish("stop", "stop_sequence"), "stop_sequence"),
        (Finish("length", "model_context_window_exceeded"), "model_context_window_exceeded"),
        (Finish("stop", "eos"), "end_turn"),
        (Finish("tool_calls", "pause_turn"), "pause_turn"),
    ],
)
def test_stop_reasons(finish: Finish, word: str) -> None:
    """Every finish has its `stop_reason`; reasons of other services are translated."""
    turn = Turn((), finish.reason, USAGE, finish_raw=finish.raw)
    assert ending(turn)["delta"]["stop_reason"] == word


def test_a_stop_sequence() -> None:
    """The one that ended the answer is in the end of its stream, and in its body."""
    turn = Turn((), "stop", USAGE, stop_sequence="END")
    assert ending(turn)["delta"]["stop_reason"] == "stop_sequence"
    assert ending(turn)["delta"]["stop_sequence"] == "END"
    body = PROTOCOL.encode_body(turn, REPLY)
    assert (body["stop_reason"], body["stop_sequence"]) == ("stop_sequence", "END")
    for back in (read(*frames(turn)), PROTOCOL.decode_body(body)):
        assert (back.finish_raw, back.stop_sequence) == ("stop_sequence", "END")


def test_usage_excludes_cached_tokens() -> None:
    """`input_tokens` excludes tokens read from a cache or written into one; thinking is counted in
    the details."""
    turn = Turn((), "stop", TokenUsage(100, 20, reasoning=5, cached=60, cache_written=30))
    assert ending(turn)["usage"] == {
        "input_tokens": 10,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 60,
        "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 5},
    }
    assert read(*frames(turn)).usage == turn.usage


def test_error_ends_the_stream() -> None:
    """An error in the stream is one `error` event, and nothing comes after it."""
    turn = Turn((Text(("Par",)),), error=StreamError("Overloaded", "overloaded_error"))
    last = values(turn)[-1]
    assert re.fullmatch(r"req_01\w{22}", last.pop("request_id"))
    assert last == {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    assert PROTOCOL.encode_body(turn, REPLY)["error"]["message"] == "Overloaded"


def test_cut_answer_has_no_end() -> None:
    """A turn without finish ends after its last block."""
    assert frames(Turn((Text(("Par",)),)))[-1].event == "content_block_stop"


def test_frames_of_this_protocol_pass_and_count() -> None:
    """Opaque frames pass verbatim; blocks after them have the next index."""
    own = hosted(1)
    turn = Turn((Text(("a",)), *own, Opaque("chat", Frame("{}")), Text(("b",))), "stop", USAGE)
    assert [part.frame for part in own] == frames(turn)[5:8]
    assert short(turn)[-2] == (2, {"type": "text_delta", "text": "b"})
    assert PROTOCOL.encode_body(turn, REPLY)["content"][1] == {
        "type": "compaction",
        "content": "Earlier: x",
    }


def test_ping_comes_after_a_frame_that_opens_a_block() -> None:
    """The ping follows the first block that opens, also where that is an opaque frame."""
    turn = Turn((*hosted(0), Text(("a",))), "stop", USAGE)
    assert [frame.event for frame in frames(turn)].index("ping") == 2


def test_a_frame_may_end_the_message() -> None:
    """A frame with a `message_delta` replaces the encoder's own."""
    deltas = event(
        "message_delta",
        delta={"stop_reason": "stop_sequence", "stop_sequence": "END"},
        usage={"input_tokens": 1, "output_tokens": 2},
    )
    text = Turn(
        (Text(("a",)),),
        "stop",
        TokenUsage(1, 2),
        finish_raw="stop_sequence",
        stop_sequence="END",
    )
    turn = replace(text, parts=(*text.parts, Opaque("anthropic", deltas)))
    assert frames(turn)[-2:-1] == [deltas]
    assert read(*frames(turn)) == text
    assert PROTOCOL.encode_body(turn, REPLY)["stop_sequence"] == "END"


SEARCH = ServerTool("web_search", "srvtoolu_1", "", ('{"query":', '"x"}'))
FOUND = [{"type": "web_search_result", "url": "https://a.example/", "title": "A"}]


def test_a_tool_of_the_service_is_a_call_and_its_result() -> None:
    """The call streams its input; its result follows complete, in the next block; usage counts
    the request."""
    turn = Turn((replace(SEARCH, output=json.dumps(FOUND)), Text(("a",))), "stop", USAGE)
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": FOUND}
    inputs = ("", '{"query":', '"x"}')
    assert short(turn)[:7] == [
        (0, use),
        *((0, {"type": "input_json_delta", "partial_json": text}) for text in inputs),
        (0, "stop"),
        (1, {**result, "caller": {"type": "direct"}}),
        (1, "stop"),
    ]
    counts = {"web_search_requests": 1, "web_fetch_requests": 0}
    assert ending(turn)["usage"]["server_tool_use"] == counts
    body = PROTOCOL.encode_body(turn, REPLY)
    assert body["content"][0] == {**use, "input": {"query": "x"}}
    assert PROTOCOL.decode_body(body) == PROTOCOL.project(turn).whole()


def test_tools_of_other_services() -> None:
    """A tool that this API has is sent under its own name, with a derived id if there is none; a
    tool that it does not have, and a result in the form of another API, are not sent."""
    code = ServerTool("code_interpreter", "", "", ('{"code":"1"}',), '{"outcome":"OUTCOME_OK"}')
    drawing = ServerTool("image_generation", "ig_1", output='"iVBORw0="')
    turn = Turn((code, drawing, Text(("a",))), "stop", USAGE)
    (_, block), *_ = short(turn)
    assert (block["type"], block["name"]) == ("server_tool_use", "code_execution")
    assert block["id"].startswith("srvtoolu_01")
    sent = ServerTool("code_interpreter", block["id"], "code_execution", ('{"code":"1"}',))
    assert PROTOCOL.project(turn).parts == (sent, Text(("a",)))
    assert read(*frames(turn)).parts == (sent, Text(("a",)))


def test_tools_of_mcp_servers() -> None:
    """A call of a tool of an MCP server has blocks of its own, and its result may be an error."""
    call = ServerTool("mcp", "mcptoolu_1", "echo", ('{"a":1}',), '[{"type":"text","text":"1"}]')
    failed = replace(call, id="mcptoolu_2", output='{"content":"no","is_error":true}')
    turn = Turn((call, failed), "stop", USAGE)
    blocks = PROTOCOL.encode_body(turn, REPLY)["content"]
    kinds = [(block["type"], block.get("name"), block.get("is_error")) for block in blocks]
    use = ("mcp_tool_use", "echo", None)
    results = [("mcp_tool_result", None, error) for error in (False, True)]
    assert kinds == [use, results[0], use, results[1]]
    assert read(*frames(turn)) == turn


def test_a_frame_may_start_the_message() -> None:
    """A `message_start` that is the first part replaces the usual one, in stream and body; blocks
    are counted after those in it, and its stop reason ends the message."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}}
    message = {"id": "msg_1", "role": "assistant", "content": [block], "usage": {}}
    start = Opaque("anthropic", event("message_start", message=message))
    more = Turn((start, Text(("Hi",))), "stop", USAGE)
    assert [v.get("index") for v in values(more) if v["type"] == "content_block_start"] == [1]
    assert [v["type"] for v in values(more)].count("message_start") == 1
    body = PROTOCOL.encode_body(more, REPLY)
    text = {"type": "text", "text": "Hi"}
    assert (body["id"], body["content"]) == ("msg_1", [block, text])
    complete = {**message, "stop_reason": "tool_use"}
    whole = Turn((Opaque("anthropic", event("message_start", message=complete)),), "tool_calls")
    assert [v["type"] for v in values(whole)] == ["message_start", "message_stop"]


def test_a_later_start_of_a_message_is_a_second_one() -> None:
    """A `message_start` after another part does not replace the usual one."""
    start = Opaque("anthropic", event("message_start", message={"content": []}))
    turn = Turn((Text(("Hi",)), start), "stop", USAGE)
    assert [v["type"] for v in values(turn)].count("message_start") == 2


def test_body_of_a_call() -> None:
    """A body has the blocks whole, arguments as a value, and all of the usage."""
    call = ToolCall("get_weather", "toolu_A", ('{"city":', '"Paris"}'))
    assert PROTOCOL.encode_body(Turn((call,), "tool_calls", USAGE), REPLY) == {
        "model": "claude-9",
        "id": PROTOCOL.answer_id(REPLY),
        "type": "message",
        "role": "assistant",
        "content": [
            {
                "type": "tool_use",
                "id": "toolu_A",
                "name": "get_weather",
                "input": {"city": "Paris"},
                "caller": {"type": "direct"},
            }
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "stop_details": None,
        "usage": {
            **MESSAGE_USAGE,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 7,
            "output_tokens_details": {"thinking_tokens": 0},
            "service_tier": "standard",
            "inference_geo": "global",
        },
    }


@pytest.mark.parametrize("text", ['{"a":', '"a"', '{"a":NaN}', "[1]"])
def test_arguments_that_a_body_cannot_say_are_text(text: str) -> None:
    """Arguments that are no sound JSON object stay the text that they are, there and back."""
    turn = Turn((ToolCall("f", "toolu_A", (text,)),), "tool_calls", USAGE)
    body = PROTOCOL.encode_body(turn, REPLY)
    assert body["content"][0]["input"] == text
    assert PROTOCOL.decode_body(body) == turn


def test_a_custom_call_is_a_call_with_its_text() -> None:
    """The free text of a custom tool becomes the argument `input`, fragment by fragment."""
    call = ToolCall("shell", "toolu_C", ("ls", ' "a"'), custom=True)
    body = PROTOCOL.encode_body(Turn((call,), "tool_calls", USAGE), REPLY)
    assert body["content"][0]["input"] == {"input": 'ls "a"'}
