"""AG-UI: reading and refusing the input of a run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from pydantic import ValidationError

from mockllm.core.errors import RequestError
from mockllm.core.http import Target
from mockllm.core.request import CallEcho, Message, OfferedTool, Request
from mockllm.wire.protocols.ag_ui.objects import Options
from mockllm.wire.protocols.ag_ui.protocol import PROTOCOL
from tests.cases import for_all

Json = dict[str, Any]
ANSWER = "msg_" + "a" * 24
USER: Json = {"id": "u1", "role": "user", "content": "What are the numbers?"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL: Json = {"name": "get_weather", "description": "The weather.", "parameters": SCHEMA}


def body(*messages: Json, **fields: Any) -> Json:
    """An input as the official client sends it."""
    usual = {"state": {}, "tools": [TOOL], "context": [], "forwardedProps": {}}
    return {"threadId": "th_1", "runId": "run_1", "messages": list(messages), **usual, **fields}


def parse(value: Any, *, strict: bool = True, scenario: str | None = None) -> Request:
    return PROTOCOL.parse(value, Target({"scenario": scenario} if scenario else {}), strict)


def call(id: str, arguments: str = "{}") -> Json:
    return {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}


def calling(id: str, *calls: str) -> Json:
    return {"id": id, "role": "assistant", "toolCalls": [call(one) for one in calls]}


def result(id: str, content: str = "42") -> Json:
    return {"id": f"of_{id}", "role": "tool", "toolCallId": id, "content": content}


def test_first_request() -> None:
    """A first input gives the user message and the tools, and is always streamed."""
    value = body(USER)
    assert parse(value) == Request(
        api="agui",
        model="ag-ui",
        body=value,
        stream=True,
        messages=(Message("user", "What are the numbers?"),),
        tools=(OfferedTool("get_weather", "The weather.", SCHEMA),),
    )


def test_scenario_in_the_path() -> None:
    """`/agui/<scenario>` names the scenario; `/agui` leaves it to be matched."""
    assert parse(body(USER), scenario="secret-numbers").scenario == "secret-numbers"
    assert parse(body(USER)).scenario is None
    paths = [route.path for route in PROTOCOL.address.routes]
    assert paths == ["/agui", "/agui/{scenario}"]


@pytest.mark.parametrize("props", [None, "model", [], {}, {"model": 5}])
def test_the_default_model(props: Any) -> None:
    """An input without a model has the model `ag-ui`."""
    assert parse(body(USER, forwardedProps=props)).model == "ag-ui"


def test_model_in_forwarded_props() -> None:
    """The model is that of `forwardedProps`, where clients put it."""
    assert parse(body(USER, forwardedProps={"model": "mock/refusal"})).model == "mock/refusal"


def test_identifiers_are_options() -> None:
    """Answers depend on the thread and the run, which they repeat."""
    assert PROTOCOL.options(parse(body(USER))) == Options("th_1", "run_1", None)
    child = body(USER, parentRunId="run_0")
    assert PROTOCOL.options(parse(child)) == Options("th_1", "run_1", "run_0")


def test_identifiers_survive_anything() -> None:
    """Unchecked input gives identifiers that can be sent."""
    broken = parse({"threadId": 5, "runId": json.loads('"\\ud800"')}, strict=False)
    assert PROTOCOL.options(broken) == Options("thread", "\ufffd")


def test_roles() -> None:
    """System and developer messages are the system prompt; reasoning gives no text."""
    request = parse(
        body(
            {"id": "1", "role": "system", "content": "Be brief."},
            {"id": "2", "role": "developer", "content": "Be kind."},
            USER,
            {"id": "3", "role": "reasoning", "content": "Hm."},
            {"id": "4", "role": "assistant", "content": "Hello."},
            {"id": "5", "role": "activity", "activityType": "plan", "content": {}},
        )
    )
    assert request.system == "Be brief.\nBe kind."
    assert request.messages[2:] == (
        Message("user", "What are the numbers?"),
        Message("assistant"),
        Message("assistant", "Hello."),
    )


def test_continuation() -> None:
    """Calls and their results come back by id; a result may be an error."""
    failed = {**result("c2", ""), "error": "no such number"}
    request = parse(body(USER, calling("c1", "c1", "c2"), result("c1"), failed))
    assert request.messages[1:] == (
        Message("assistant", "", (CallEcho("c1", "f", "{}"), CallEcho("c2", "f", "{}"))),
        Message("tool", "42", call_id="c1"),
        Message("tool", "no such number", call_id="c2", error=True),
    )


def test_content_in_parts() -> None:
    """The texts of a content in parts are joined; media add nothing."""
    image = {"type": "image", "source": {"type": "url", "value": "https://example.com/a.png"}}
    parts = [{"type": "text", "text": "a"}, image, {"type": "text", "text": "b"}]
    assert parse(body({**USER, "content": parts})).messages == (Message("user", "ab"),)


def test_messages_of_one_answer_come_together() -> None:
    """Clients that put a result in the middle of an answer do not make two turns of it."""
    first, second = calling(f"{ANSWER}_1", "c1"), calling(f"{ANSWER}_3", "c2")
    thought = {"id": f"{ANSWER}_2", "role": "reasoning", "content": "Hm."}
    request = parse(body(USER, first, result("c1"), thought, second, result("c2")))
    roles = [message.role for message in request.messages]
    assert roles == ["user", "assistant", "assistant", "assistant", "tool", "tool"]
    assert [message.call_id for message in request.messages[-2:]] == ["c1", "c2"]


def test_answers_of_others_stay_where_they_are() -> None:
    """Messages whose ids are not ours, or that come after a later user message, are not moved."""
    roles = ["assistant", "tool", "user", "assistant"]
    for id in ("m1", f"{ANSWER}_1"):
        history = calling(id, "c1"), result("c1"), USER, {"id": id, "role": "assistant"}
        assert [message.role for message in parse(body(*history)).messages] == roles


def without(name: str) -> Json:
    value = body(USER)
    del value[name]
    return value


ILL_TYPED = [
    ([], "the body must be an object"),
    (without("threadId"), "threadId is missing"),
    (without("runId"), "runId is missing"),
    (without("messages"), "messages is missing"),
    (body(USER, threadId=None), "threadId must be a string, got null"),
    (body(USER, runId=5), "runId must be a string, got a number"),
    ({**body(), "messages": "Hi"}, "messages must be an array, got a string"),
    ({**body(), "messages": ["Hi"]}, "messages[0] must be an object, got a string"),
    (body({"id": "1", "content": "Hi"}), "messages[0].role is missing"),
    (body({"id": "1", "role": "model"}), "messages[0].role must be one of user, assistant"),
    (body({"role": "user", "content": "Hi"}), "messages[0].id is missing"),
    (body({"id": "1", "role": "user"}), "messages[0].content is missing"),
    (body({**USER, "content": None}), "messages[0].content must be a string or an array of parts"),
    (body({**USER, "content": ["a"]}), "messages[0].content[0] must be an object"),
    (body({**USER, "content": [{"type": "x"}]}), "messages[0].content[0].type must be one of"),
    (body({**USER, "content": [{"type": "text"}]}), "messages[0].content[0].text is missing"),
    (
        body({**calling("1"), "content": ["a"]}),
        "messages[0].content must be a string, got an array",
    ),
    (body({**calling("1"), "toolCalls": {}}), "messages[0].toolCalls must be an array"),
    (body({**calling("1"), "toolCalls": [{"id": "c"}]}), "toolCalls[0].function is missing"),
    (
        body({**calling("1"), "toolCalls": [{"id": "c", "function": {"name": "f"}}]}),
        "messages[0].toolCalls[0].function.arguments is missing",
    ),
    (
        body({"id": "1", "role": "tool", "tool_call_id": "c", "content": ""}),
        "messages[0].toolCallId is missing; field names are written in camelCase",
    ),
    (body({"id": "1", "role": "system", "content": []}), "messages[0].content must be a string"),
    (body(USER, tools={}), "tools must be an array"),
    (body(USER, tools=["f"]), "tools[0] must be an object"),
    (body(USER, tools=[{"description": ""}]), "tools[0].name is missing"),
    (body(USER, tools=[{**TOOL, "name": ""}]), "tools[0].name must be the name of a tool"),
    (body(USER, tools=[{"name": "f"}]), "tools[0].description is missing"),
    (body(USER, tools=[{**TOOL, "parameters": []}]), "tools[0].parameters must be an object"),
    (body(USER, context=[{"value": "x"}]), "context[0].description is missing"),
    (body(USER, resume=[{"status": "resolved"}]), "resume[0].interruptId is missing"),
    (body(USER, parentRunId=True), "parentRunId must be a string, got a boolean"),
]
STRICTER = ("tools[0].name must be", "tools[0].parameters must be", "toolCallId is missing")
"""Refused input that the official types, which are laxer here, accept."""


@for_all(("value", "message"), ILL_TYPED, ids=[m for _, m in ILL_TYPED])
def test_ill_typed_input_is_refused(value: Any, message: str) -> None:
    """Input of another type gets 422, with its path in the message."""
    with pytest.raises(RequestError) as caught:
        parse(value)
    assert message in caught.value.message
    assert (caught.value.status, caught.value.code) == (422, "invalid_input")
    if not any(part in message for part in STRICTER):
        with pytest.raises(ValidationError):
            RunAgentInput.model_validate(value)


IMPOSSIBLE = [
    (body(USER, result("c1")), "call 'c1', which was never made"),
    (body(USER, calling("1", "c1"), result("c2")), "call 'c2', which was never made"),
    (body(USER, calling("1", "c1"), result("c1"), result("c1")), "'c1', which is answered twice"),
    (body(USER, calling("1", "c1", "c2"), result("c1")), "toolCalls[1], call 'c2', has no result"),
    (body(USER, calling("1", "c1"), USER), "messages[1].toolCalls[0], call 'c1', has no result"),
]


@pytest.mark.parametrize(("value", "message"), IMPOSSIBLE, ids=[m for _, m in IMPOSSIBLE])
def test_impossible_histories_are_refused(value: Any, message: str) -> None:
    """Results without their call and calls without their result get 400."""
    RunAgentInput.model_validate(value)
    with pytest.raises(RequestError) as caught:
        parse(value)
    assert message in caught.value.message
    assert (caught.value.status, caught.value.code) == (400, "invalid_history")


@for_all("value", [v for v, _ in ILL_TYPED[1:] + IMPOSSIBLE])
def test_lenient_parsing_refuses_nothing(value: Any) -> None:
    """Input that is not checked is read as far as possible."""
    assert isinstance(parse(value, strict=False), Request)


@pytest.mark.parametrize(
    "value",
    [
        body(),
        body(USER, calling("1", "c1")),
        body(USER, calling("1", "c1"), calling("2", "c2"), result("c2"), result("c1")),
        body(USER, calling("1", "c1"), result("c1"), {"id": "2", "role": "assistant"}, USER),
        body({**USER, "name": "Ada"}, tools=None, context=None, state=None, extra=1),
    ],
)
def test_accepted_histories(value: Any) -> None:
    """Histories that end anywhere, absent options and unknown fields are accepted."""
    RunAgentInput.model_validate(value)
    assert parse(value).body is value
