"""Cohere: requests and refusals, the plan, citations, usage, and odd streams."""

from __future__ import annotations

from typing import Any

import pytest

from mockllm.core.errors import RequestError, WireError
from mockllm.core.events import Cite, Frame, StreamError
from mockllm.core.http import NO_TARGET
from mockllm.core.request import CallEcho, Message
from mockllm.core.turn import Opaque, Reasoning, Refusal, Text, TokenUsage, ToolCall, Turn
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.decoding import decode_turn
from tests.cases import for_all

API = PROTOCOLS["cohere"]
USER = {"role": "user", "content": "Hi"}
CALL = {"id": "w1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}


def parse(*messages: Any, strict: bool = True, **fields: Any) -> Any:
    body = {"model": "m", "messages": list(messages), **fields}
    return API.parse(body, NO_TARGET, strict)


def test_the_history() -> None:
    """Texts in parts, the plan before calls, results as documents."""
    document = {"type": "document", "document": {"id": "1", "data": {"city": "Paris"}}}
    request = parse(
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "tool_plan": "Looking.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "w1", "content": [document]},
    )
    assert request.messages == (
        Message("system", "Be brief."),
        Message("user", "Hi"),
        Message("assistant", "Looking.", (CallEcho("w1", "f", '{"a":1}'),)),
        Message("tool", '{"city":"Paris"}', call_id="w1"),
    )
    assert request.system == "Be brief."


def test_other_fields() -> None:
    """Tools, the choice among them, a schema, reasoning."""
    schema = {"type": "object"}
    request = parse(
        USER,
        tools=[{"type": "function", "function": {"name": "f", "parameters": schema}}],
        tool_choice="REQUIRED",
        response_format={"type": "json_object", "json_schema": schema},
        thinking={"type": "enabled", "token_budget": 100},
        stream=True,
    )
    assert [(tool.name, tool.parameters) for tool in request.tools] == [("f", schema)]
    assert (request.tool_choice, request.output_schema, request.stream) == (
        "required",
        schema,
        True,
    )
    assert request.wants_reasoning


@for_all(
    ("fields", "message"),
    [
        ({"model": None}, "model is required"),
        ({"model": 5}, "parameter model is of type integer but should be of type string"),
        ({"messages": []}, "messages must have at least one message"),
        (
            {"messages": [5]},
            "parameter messages[0] is of type integer but should be of type object",
        ),
        ({"messages": [{"role": "bot"}]}, "messages[0].role must be one of user"),
        ({"messages": [{"role": "user", "content": 5}]}, "should be of type string or array"),
        ({"messages": [{"role": "user", "content": [{"type": "pdf"}]}]}, "must be one of text"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "w1"}]}, "does not have"),
        ({"messages": [{"role": "assistant", "tool_calls": [CALL]}, USER]}, "has no result"),
        ({"messages": [USER, {"role": "assistant", "tool_calls": [CALL]}]}, "has no result"),
        ({"temperature": "hot"}, "should be of type float"),
        ({"p": 2}, "p must be at least 0 and at most 1, got 2"),
        ({"max_tokens": -1}, "max_tokens must be at least 0, got -1"),
        ({"tool_choice": "auto"}, "tool_choice must be one of REQUIRED, NONE"),
        ({"tool_choice": "REQUIRED"}, "tool_choice needs tools"),
        ({"tools": [{"type": "function"}]}, "tools[0].function is required"),
    ],
)
def test_refused(fields: dict[str, Any], message: str) -> None:
    """Refusals begin as the service's, and name the field."""
    body = {"model": "m", "messages": [USER], **fields}
    with pytest.raises(RequestError) as caught:
        API.parse(body, NO_TARGET, True)
    assert caught.value.message.startswith("invalid request: ")
    assert message in caught.value.message
    assert API.error_body(caught.value).keys() == {"id", "message"}
    API.parse(body, NO_TARGET, False)


def body_of(turn: Turn) -> Any:
    return API.encode_body(turn, Reply("seed", "0" * 40, "m", ()))


def test_the_plan_is_the_text_before_calls() -> None:
    """Texts after a call are content, and so is a text without calls."""
    call = ToolCall("f", "w1", ('{"a":1}',))
    turn = Turn((Text(("I ",)), Refusal(("will",)), call, Text(("Done.",))), "tool_calls")
    message = body_of(turn)["message"]
    assert (message["tool_plan"], message["tool_calls"]) == ("I will", [CALL])
    assert message["content"] == [{"type": "text", "text": "Done."}]
    assert API.project(turn).parts == (Text(("I ", "will")), call, Text(("Done.",)))
    assert body_of(Turn((Text(("Hi",)),), "stop"))["message"]["content"][0]["text"] == "Hi"


def test_citations_of_the_plan_and_of_contents() -> None:
    """They say where they belong, also in a body; one of a tool is known by its id."""
    cite = Cite(0, "https://example.com/", "T", "cited")
    planned = Turn((Text(("Plan",), (cite,)), ToolCall("f", "w1")), "tool_calls")
    (citation,) = body_of(planned)["message"]["citations"]
    assert (citation["type"], "content_index" in citation) == ("PLAN", False)
    cited = Turn((Reasoning(("Hm",)), Text(("Yes",), (cite,))), "stop")
    for turn in (planned, cited):
        assert API.decode_body(body_of(turn)) == API.project(turn) == turn
    source = {"type": "tool", "id": "w1:0", "tool_output": {"content": "sunny"}}
    body = {
        "message": {
            "content": [{"type": "text", "text": "Sun."}],
            "citations": [{"start": 0, "end": 3, "text": "Sun", "sources": [source]}],
        },
        "finish_reason": "COMPLETE",
    }
    (part,) = API.decode_body(body).parts
    assert part == Text(("Sun.",), (Cite(0, "w1:0", "", "sunny"),))


def event(type: str, index: int | None = None, **message: Any) -> Frame:
    where = {} if index is None else {"index": index}
    value = {"type": type, **where, "delta": {"message": message}}
    return Frame(dumps(value))


def end(finish: Any = "COMPLETE", **delta: Any) -> Frame:
    return Frame(dumps({"type": "message-end", "delta": {"finish_reason": finish, **delta}}))


def read(*frames: Frame) -> Turn:
    return decode_turn(API, frames)[0]


def test_usage() -> None:
    """Tokens count, or else what is billed; floats are numbers, too."""
    tokens = {"input_tokens": 11.0, "output_tokens": 7}
    billed = {"input_tokens": 5, "output_tokens": 6}
    both = {"tokens": tokens, "billed_units": billed, "cached_tokens": 3}
    assert read(end(usage=both)).usage == TokenUsage(11, 7, cached=3)
    assert read(end(usage={"billed_units": billed})).usage == TokenUsage(5, 6)
    assert read(end(usage={})).usage is None


@for_all(
    ("frame", "finish"),
    [
        (end("STOP_SEQUENCE"), ("stop", "STOP_SEQUENCE")),
        (end("MAX_TOKENS"), ("length", None)),
        (end("ERROR_TOXIC"), ("content_filter", "ERROR_TOXIC")),
        (end("NEW"), ("stop", "NEW")),
        (end(None), (None, None)),
    ],
)
def test_finish_reasons(frame: Frame, finish: Any) -> None:
    turn = read(frame)
    assert (turn.finish, turn.finish_raw) == finish


def test_failures() -> None:
    """The last event has the error, or a proxy sends one without a type."""
    assert read(end("ERROR", error="boom")).error == StreamError("boom")
    assert read(end("TIMEOUT")).error == StreamError("the generation took too long", "TIMEOUT")
    text = event("content-delta", 0, content={"text": "Hi"})
    for data in ('{"message":"boom"}', '{"error":{"message":"boom"}}', '{"error":"boom"}'):
        turn = read(text, Frame(data))
        assert (turn.text, turn.error) == ("Hi", StreamError("boom"))


def test_blocks_without_a_start_and_with_one_index() -> None:
    """The field of a delta tells blocks apart."""
    turn = read(
        event("content-delta", 0, content={"thinking": "Hm"}),
        event("content-delta", 0, content={"text": "Yes"}),
        event("content-start", 1, content={"type": "text", "text": ""}),
        Frame('{"type":"content-end","index":1}'),
        end(),
    )
    assert turn.parts == (Reasoning(("Hm",)), Text(("Yes",)), Text(("",)))


def test_calls_in_lists_and_without_arguments() -> None:
    """Some gateways send lists; `null` is no argument; a call that nothing began is kept."""
    begun = {"id": "w1", "function": {"name": "f", "arguments": ""}}
    lost = event("tool-call-delta", 7, tool_calls={"function": {"arguments": "{"}})
    turn = read(
        event("tool-call-start", 0, tool_calls=[begun]),
        event("tool-call-delta", 0, tool_calls={"function": {"arguments": "null"}}),
        Frame('{"type":"tool-call-end","index":0}'),
        lost,
        end("COMPLETE"),
    )
    assert turn.parts == (ToolCall("f", "w1"), Opaque("cohere", lost))
    assert (turn.finish, turn.finish_raw) == ("tool_calls", "COMPLETE")


def test_frames_without_a_neutral_form_are_kept() -> None:
    """Unknown events, citations of nothing, data that is no JSON, what follows `[DONE]`."""
    kept = [
        Frame('{"type":"debug","prompt":"x"}'),
        event("citation-start", 0, citations={"text": "x", "sources": []}),
        Frame("{"),
        event("content-end", 5),
    ]
    after = event("content-delta", 0, content={"text": "late"})
    turn = read(*kept, end(), Frame("[DONE]"), after)
    frames = [part.frame for part in turn.parts if isinstance(part, Opaque)]
    assert frames == [*kept, after]


def test_bodies_of_others() -> None:
    assert API.decode_body({"id": "1", "message": "no"}).error == StreamError("no")
    with pytest.raises(WireError, match="an answer of Cohere needs `message`"):
        API.decode_body({"choices": []})
