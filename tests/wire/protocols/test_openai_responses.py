"""OpenAI Responses: encoding and decoding the stream and the body of an answer."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent

from mockllm.core.errors import RequestError, WireError
from mockllm.core.events import Cite, StreamError
from mockllm.core.timeline import normal
from mockllm.core.turn import Opaque, Reasoning, Refusal, Text, TokenUsage, ToolCall, Turn
from mockllm.wire.framing import sse
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.openai_responses.objects import Options, item_of, token_of
from mockllm.wire.protocols.openai_responses.protocol import PROTOCOL
from tests import strategies
from tests.wire.protocols import streams
from tests.wire.protocols.strict import problems

TOKEN = "0123456789abcdef0123456789abcdef01234567"
REPLY = Reply("seed", TOKEN, "gpt-test", Options())
USAGE = TokenUsage(11, 7, 2, 3)
read = partial(streams.read, PROTOCOL)


def played(turn: Turn, reply: Reply = REPLY) -> list[streams.TimedFrame]:
    """The frames of a turn, each with its time."""
    return streams.played(PROTOCOL, turn, reply)


def values(turn: Turn, reply: Reply = REPLY) -> list[dict[str, Any]]:
    """The JSON of the events of a turn."""
    return [json.loads(frame.data or "") for _, frame in played(turn, reply)]


def kinds(turn: Turn) -> list[str]:
    """The types of the events, without their common prefix."""
    return [value["type"].removeprefix("response.") for value in values(turn)]


HOSTED = [
    {"type": "response.new_call.searching", "item_id": "new_1"},
    {"type": "keepalive"},
    {"type": "response.output_item.done", "item": {"id": "new_1", "type": "new_call"}},
]
hosted_frames = st.builds(
    Opaque,
    st.sampled_from(["responses", "responses", "chat"]),
    st.sampled_from([sse.Frame(json.dumps(value), event=value["type"]) for value in HOSTED])
    | st.sampled_from(
        [
            sse.Frame(comment="waiting"),
            sse.Frame("[DONE]"),
            sse.Frame("not JSON", id="7"),
            sse.Frame("[1]", retry=5),
        ]
    ),
)


# Round trips


@settings(deadline=None)
@given(strategies.turns(strategies.every_part | hosted_frames, interleaved=False))
def test_opaque_frames_keep_their_position(turn: Turn) -> None:
    """Frames without a neutral form come back at their position; those of other APIs are left
    out."""
    assert read(played(turn)) == PROTOCOL.project(turn)


@settings(deadline=None)
@given(strategies.turns(strategies.tool_calls(well_formed=False)))
def test_malformed_arguments_survive(turn: Turn) -> None:
    """Arguments survive verbatim, even where they are no JSON or incomplete."""
    assert read(played(turn)) == PROTOCOL.project(turn)


def in_a_body(turn: Turn) -> Turn:
    """The turn as a body has it: no fragments, and no type of an error."""
    whole = normal(PROTOCOL.project(turn).whole())
    return replace(whole, error=whole.error and replace(whole.error, type=None))


@settings(deadline=None)
@given(strategies.turns(strategies.every_part))
def test_the_body_decodes_to_the_turn(turn: Turn) -> None:
    """The answer that is not streamed has the same turn, up to its fragments."""
    assert PROTOCOL.decode_body(PROTOCOL.encode_body(turn, REPLY)) == in_a_body(turn)


@settings(deadline=None)
@given(strategies.turns(strategies.every_part))
def test_stream_ends_in_the_body(turn: Turn) -> None:
    """The response in the last event equals the body, which has the payer besides."""
    if turn.finish is None and turn.error is None:
        assert "completed" not in kinds(turn)
    else:
        body = PROTOCOL.encode_body(turn, REPLY)
        assert body.pop("billing") == {"payer": "developer"}
        assert json.dumps(values(turn)[-1]["response"]) == json.dumps(body)


# The stream itself


@pytest.mark.slow
@settings(deadline=None)
@given(
    strategies.turns(strategies.parts | strategies.custom_calls, interleaved=False), st.booleans()
)
def test_events_are_of_the_official_types(turn: Turn, encrypted: bool) -> None:
    """Every event has the fields of the official package's types, and no others."""
    turn = replace(turn, error=turn.error and StreamError("boom", None, None), finish_raw=None)
    reply = replace(REPLY, options=Options(encrypted=encrypted))
    for value in values(turn, reply):
        if value["type"] != "error":  # the service nests it, unlike its types
            assert problems(ResponseStreamEvent, value) == []
    assert problems(Response, PROTOCOL.encode_body(turn, reply)) == []


@settings(deadline=None)
# Server tools keep the ids of the service that ran them.
@given(strategies.turns(strategies.parts | strategies.custom_calls))
def test_events_are_numbered_and_items_keep_their_identity(turn: Turn) -> None:
    """Numbers count up from 0, `event` repeats the type, ids and indexes belong together."""
    frames = [frame for _, frame in played(turn)]
    ids: dict[int, str] = {}
    for number, frame in enumerate(frames):
        value = json.loads(frame.data or "")
        assert (value["sequence_number"], frame.event) == (number, value["type"])
        if "output_index" in value:
            id = value["item"]["id"] if "item" in value else value["item_id"]
            assert ids.setdefault(value["output_index"], id) == id
            assert item_of(id) == (TOKEN, value["output_index"])
    assert sorted(ids) == list(range(len(ids)))


def test_text_frame_by_frame() -> None:
    """A text is streamed as by the service, with the fields in the same order."""
    turn = Turn((Text(("Grüß", " dich")),), "stop", USAGE)
    data = [frame.data or "" for _, frame in played(turn)]
    id = f"msg_{TOKEN}0000"
    where = f'"item_id":"{id}","output_index":0,"content_index":0'
    empty = '{"type":"output_text","annotations":[],"logprobs":[],"text":""}'
    full = empty.replace('""', '"Grüß dich"')
    item = f'"item":{{"id":"{id}","type":"message","status":"in_progress",'
    item += '"content":[],"role":"assistant"}'
    done = item.replace("in_progress", "completed").replace("[]", f"[{full}]")
    named = [
        ("output_item.added", f'"output_index":0,{item}'),
        ("content_part.added", f'{where},"part":{empty}'),
        ("output_text.delta", f'{where},"delta":"Grüß","logprobs":[]'),
        ("output_text.delta", f'{where},"delta":" dich","logprobs":[]'),
        ("output_text.done", f'{where},"text":"Grüß dich","logprobs":[]'),
        ("content_part.done", f'{where},"part":{full}'),
        ("output_item.done", f'"output_index":0,{done}'),
    ]
    assert data[2:-1] == [
        f'{{"type":"response.{name}","sequence_number":{n},{rest}}}'
        for n, (name, rest) in enumerate(named, start=2)
    ]
    assert data[-1].startswith('{"type":"response.completed","sequence_number":9,"response":{"id"')


def test_response_object() -> None:
    """The response object has the service's fields, defaults and order."""
    created, *_, completed = values(Turn((), "stop", USAGE))
    images = {"image_tokens": 0, "text_tokens": 0}
    details = {"input_tokens_details": images, "output_tokens_details": images}
    counts = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
    tool_usage = {"image_gen": counts | details, "web_search": {"num_requests": 0}}
    assert list(created["response"].items()) == [
        ("id", f"resp_{TOKEN}"),
        ("object", "response"),
        ("created_at", REPLY.created),
        ("status", "in_progress"),
        ("background", False),
        ("completed_at", None),
        ("error", None),
        ("frequency_penalty", 0.0),
        ("incomplete_details", None),
        ("instructions", None),
        ("max_output_tokens", None),
        ("max_tool_calls", None),
        ("model", "gpt-test"),
        ("moderation", None),
        ("output", []),
        ("parallel_tool_calls", True),
        ("presence_penalty", 0.0),
        ("previous_response_id", None),
        ("prompt_cache_key", None),
        ("prompt_cache_retention", "in_memory"),
        (
            "reasoning",
            {"context": "current_turn", "effort": None, "mode": "standard", "summary": None},
        ),
        ("safety_identifier", None),
        ("service_tier", "auto"),
        ("store", True),
        ("temperature", 1.0),
        ("text", {"format": {"type": "text"}, "verbosity": "medium"}),
        ("tool_choice", "auto"),
        ("tool_usage", tool_usage),
        ("tools", []),
        ("top_logprobs", 0),
        ("top_p", 1.0),
        ("truncation", "disabled"),
        ("usage", None),
        ("user", None),
        ("metadata", {}),
    ]
    over = completed["response"]
    assert over["service_tier"] == "default"
    assert REPLY.created < over["completed_at"] < REPLY.created + 9
    assert over["usage"] == {
        "input_tokens": 11,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 18,
    }


def test_zero_argument_call() -> None:
    """A call without arguments sends `{}`, once as a delta and once as the whole."""
    added, delta, done, item = values(Turn((ToolCall("ping", "call_1"),), "tool_calls"))[2:-1]
    assert added["item"] == {
        "id": f"fc_{TOKEN}0000",
        "type": "function_call",
        "status": "in_progress",
        "arguments": "",
        "call_id": "call_1",
        "name": "ping",
    }
    assert (delta["delta"], done["arguments"], item["item"]["arguments"]) == ("{}", "{}", "{}")
    assert list(done) == ["type", "sequence_number", "item_id", "output_index", "arguments"]


def test_interleaved_calls() -> None:
    """Items may be open at the same time; each closes as soon as it is whole."""
    calls = (ToolCall("a", "c1", ("{", "}")), ToolCall("b", "c2", ("[", "]")))
    turn = Turn(calls, "tool_calls", order=(0, 1, 0, 1, 0, 1))
    name = "function_call_arguments"
    assert kinds(turn)[2:-1] == [
        *["output_item.added"] * 2,
        *[f"{name}.delta"] * 3,
        f"{name}.done",
        "output_item.done",
        f"{name}.delta",
        f"{name}.done",
        "output_item.done",
    ]


def test_parts_that_share_an_item() -> None:
    """Text and refusals that follow each other are one message, summaries and reasoning
    one reasoning item up to a signature, and each call is an item of its own."""
    turn = Turn(
        (
            Reasoning(("a",), summary=True),
            Reasoning(("b",), "sig", summary=True),
            Reasoning(("c",), summary=True),
            Reasoning(("d",)),
            Reasoning(("",), "only"),
            Text(("e",)),
            Refusal(("f",)),
            ToolCall("g", "c1"),
            ToolCall("h", "c2"),
            Text(("i",)),
        ),
        "tool_calls",
    )
    output = PROTOCOL.encode_body(turn, REPLY)["output"]
    shape = [(item["type"], len(item.get("content") or item.get("summary", ()))) for item in output]
    assert shape == [
        ("reasoning", 2),
        ("reasoning", 1),
        ("reasoning", 0),
        ("message", 2),
        ("function_call", 0),
        ("function_call", 0),
        ("message", 1),
    ]
    assert [item.get("encrypted_content") for item in output[:3]] == ["sig", None, "only"]
    assert read(played(turn)) == turn


def test_parts_that_are_open_at_once_share_no_item() -> None:
    """Contents of one item never overlap; texts that do become two messages."""
    texts = (Text(("a", "b")), Text(("c", "d")))
    assert len(PROTOCOL.encode_body(Turn(texts, "stop"), REPLY)["output"]) == 1
    woven = Turn(texts, "stop", order=(0, 1, 0, 1))
    assert len(PROTOCOL.encode_body(woven, REPLY)["output"]) == 2


def test_reasoning_item_shows_its_proof_from_the_start() -> None:
    """Encrypted content is in `added` as well as in `done`."""
    added, done = values(Turn((Reasoning(("",), "gAAAA"),), "stop"))[2:4]
    assert added["item"]["encrypted_content"] == done["item"]["encrypted_content"] == "gAAAA"


def test_encrypted_content_is_derived_on_request() -> None:
    """A client that includes it gets it, always the same; a scenario's own value is kept."""
    turn = Turn((Reasoning(("a",)), Reasoning(("b",), "own", summary=True)), "stop")
    reply = replace(REPLY, options=Options(encrypted=True))
    derived, own = (
        item["encrypted_content"] for item in PROTOCOL.encode_body(turn, reply)["output"]
    )
    assert derived.startswith("gAAAAA")
    assert own == "own"
    assert PROTOCOL.encode_body(turn, reply) == PROTOCOL.encode_body(turn, reply)


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
def test_incomplete(finish: Any, reason: str) -> None:
    """A truncated answer is incomplete, and so is its last item only."""
    turn = Turn((Text(("a",)), ToolCall("f", "c", ('{"x',))), finish)
    last = values(turn)[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": reason}
    statuses = [item["status"] for item in last["response"]["output"]]
    assert statuses == ["completed", "incomplete"]


def test_foreign_finish_reasons() -> None:
    """The API's own rarer reasons survive, those of other services do not."""
    for reason, decoded in (("steered", "steered"), ("MAX_TOKENS", None)):
        turn = Turn((), "length", finish_raw=reason)
        assert read(played(turn)).finish_raw == decoded


def test_error_in_the_stream() -> None:
    """An error is nested as the service sends it, and a failed response follows."""
    turn = Turn((Text(("a",)),), error=StreamError("boom", "rate_limit", "slow_down"))
    error, failed = values(turn)[-2:]
    number = error.pop("sequence_number")
    assert error == {
        "type": "error",
        "error": {
            "type": "rate_limit",
            "code": "slow_down",
            "message": "boom",
            "param": None,
        },
    }
    assert (failed["type"], failed["sequence_number"]) == ("response.failed", number + 1)
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {"code": "slow_down", "message": "boom"}


def test_citations() -> None:
    """A citation has the position of its text, and is sent as an event and in the text part."""
    cite = Cite(0, "https://example.com/", "Example", "blue")
    turn = Turn((Text(("The sky is ", "blue."), (cite,)),), "stop")
    event = next(v for v in values(turn) if v["type"].endswith("annotation.added"))
    assert event["annotation"] == {
        "type": "url_citation",
        "start_index": 11,
        "end_index": 15,
        "title": "Example",
        "url": "https://example.com/",
    }
    content = PROTOCOL.encode_body(turn, REPLY)["output"][0]["content"][0]
    assert content["annotations"] == [event["annotation"]]


def test_obfuscation_pads_deltas() -> None:
    """With obfuscation, fragment and padding together are a multiple of 16 characters."""
    turn = Turn((Text(("a", "b" * 16)), ToolCall("f", "c")), "tool_calls")
    padded = replace(REPLY, options=Options(obfuscation=True))
    deltas = [v for v in values(turn, padded) if v["type"].endswith(".delta")]
    assert len(deltas) == 3
    assert all(len(v["delta"] + v["obfuscation"]) % 16 == 0 for v in deltas)
    assert not any("obfuscation" in v for v in values(turn))


def test_background_answers_are_queued_first() -> None:
    """An answer that runs in the background is queued before it is in progress."""
    reply = replace(REPLY, options=Options(echo='{"background":true}'))
    first = values(Turn((Text(("a",)),), "stop"), reply)[:3]
    assert [(value["type"], value["response"]["status"]) for value in first] == [
        ("response.created", "queued"),
        ("response.queued", "queued"),
        ("response.in_progress", "in_progress"),
    ]
    assert [value["sequence_number"] for value in first] == [0, 1, 2]


def test_opaque_frames_are_numbered() -> None:
    """A hosted tool's frames pass verbatim, and count in numbers, indexes and the output."""
    item = {"id": "new_9", "type": "new_call", "status": "completed"}
    data = {"type": "response.output_item.done", "sequence_number": 7, "output_index": 1}
    hosted = sse.Frame(json.dumps({**data, "item": item}), event=data["type"])
    turn = Turn((Reasoning(("",)), Opaque("responses", hosted), Text(("a",))), "stop")
    frames = [frame for _, frame in played(turn)]
    assert hosted in frames
    after = json.loads(frames[frames.index(hosted) + 1].data or "")
    assert (after["sequence_number"], after["output_index"]) == (8, 2)
    body = PROTOCOL.encode_body(turn, REPLY)
    assert body["output"][1] == item
    assert [type(part) for part in PROTOCOL.decode_body(body).parts] == [Reasoning, Opaque, Text]


def test_tokens_are_read_from_identifiers() -> None:
    """Scenario and turn are read from our identifiers, and from no others."""
    assert token_of(f"resp_{TOKEN}") == TOKEN
    assert token_of(f"fc_{TOKEN}001f") == TOKEN
    assert item_of(f"fc_{TOKEN}001f") == (TOKEN, 31)
    assert item_of(f"resp_{TOKEN}") is None
    for foreign in ("", "resp_", f"resp_{TOKEN}00", f"msg_{TOKEN}", f"msg_{TOKEN}0123456789"):
        assert token_of(foreign) is None
    assert PROTOCOL.answer_id(REPLY) == f"resp_{TOKEN}"


def test_a_body_of_another_api_is_refused() -> None:
    """A body without output is not an empty answer; an error body is an error."""
    with pytest.raises(WireError, match="'choices'"):
        PROTOCOL.decode_body({"choices": []})
    error = PROTOCOL.error_body(RequestError("no", status=429, type="tokens", code="slow"))
    assert PROTOCOL.decode_body(error).error == StreamError("no", "tokens", "slow")


def test_routes() -> None:
    """The usual path is first; lookups exist wherever answers do."""
    usual, *_ = PROTOCOL.address.routes
    assert (usual.method, usual.path, usual.operation) == ("POST", "/v1/responses", "generate")
    assert {route.operation for route in PROTOCOL.address.routes} == {"generate", *PROTOCOL.lookups}


def test_a_call_names_the_namespace_of_its_tool() -> None:
    """It is in the item when it opens, when it is done, and in the response, after the name."""
    turn = Turn((ToolCall("f", "c"), ToolCall("g", "d")), "tool_calls")
    reply = replace(REPLY, options=Options(namespaces=(("f", "crm"),)))
    events = values(turn, reply)
    items = [event["item"] for event in events if "item" in event]
    items += events[-1]["response"]["output"]
    assert [item.get("namespace") for item in items] == ["crm", "crm", None, None, "crm", None]
    assert list(items[0])[-2:] == ["name", "namespace"]
