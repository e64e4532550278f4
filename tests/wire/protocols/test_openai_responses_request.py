"""OpenAI Responses: reading and refusing requests, and the fields that answers repeat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseInputItem, ResponseItem

from mockllm.core.errors import RequestError
from mockllm.core.http import NO_TARGET, Target
from mockllm.core.request import CallEcho, Message, OfferedTool, Request, SentFile
from mockllm.core.turn import Text, ToolCall, Turn
from mockllm.wire.protocols.base import Lookup, Reply
from mockllm.wire.protocols.openai_responses.protocol import PROTOCOL
from tests import strategies
from tests.cases import for_all
from tests.corpus import needs_corpus, recorded_streams
from tests.sdk_samples import members, sample
from tests.wire.protocols import strict

TOKEN = "0123456789abcdef0123456789abcdef01234567"
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "42"}


def input_items(body: dict[str, Any], token: str, **query: str) -> dict[str, Any]:
    """The listed input of the response with this token."""
    target = Target({"response_id": f"resp_{token}"}, query=query)
    return PROTOCOL.lookups["input_items"](Lookup(target, request=body))


def parsed(strict: bool = True, **body: Any) -> Request:
    return PROTOCOL.parse({"model": "m", "input": "Hi", **body}, NO_TARGET, strict)


def messages(*items: Any) -> tuple[Message, ...]:
    return parsed(input=list(items)).messages


# Reading


def test_a_short_request() -> None:
    """A model and a text are a whole request; everything else has its default."""
    body = {"model": "m", "input": "Hi"}
    assert PROTOCOL.parse(body, NO_TARGET, True) == Request(
        "responses", "m", body, messages=(Message("user", "Hi"),)
    )


@for_all(
    ("item", "message"),
    [
        ({"role": "user", "content": "a"}, Message("user", "a")),
        ({"type": "message", "role": "developer", "content": "a"}, Message("system", "a")),
        (
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "a"},
                    {"type": "input_image", "image_url": "data:image/png,YQ=="},
                    {"type": "input_text", "text": "b"},
                ],
            },
            Message("user", "ab", files=(SentFile("image/png", "YQ=="),)),
        ),
        (
            {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
            Message("assistant", "a"),
        ),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            Message("assistant", "no"),
        ),
        ({"type": "reasoning", "id": "rs_1", "summary": []}, Message("assistant")),
        ({"type": "item_reference", "id": "msg_1"}, Message("assistant", ref="msg_1")),
        ({"id": "msg_1"}, Message("assistant", ref="msg_1")),
        ({"type": "web_search_call", "id": "ws_1"}, Message("assistant")),
        (
            {"type": "computer_call_output", "call_id": "c", "output": {}},
            Message("tool", call_id="c"),
        ),
        (
            {"type": "mcp_approval_response", "approval_request_id": "a", "approve": True},
            Message("tool", "true", call_id="a"),
        ),
        (
            {"type": "local_shell_call_output", "id": "c", "output": "a.txt"},
            Message("tool", "a.txt", call_id="c"),
        ),
        ({"type": "tool_search_output", "execution": "server"}, Message("assistant")),
        (
            {"type": "tool_search_output", "execution": "client", "call_id": "c", "tools": []},
            Message("tool", "[]", call_id="c"),
        ),
        ({"type": "additional_tools", "role": "developer", "tools": []}, Message("system")),
        ({"type": "compaction", "encrypted_content": "gAAA"}, Message("system", ref="gAAA")),
    ],
)
def test_items(item: dict[str, Any], message: Message) -> None:
    """Each item of the input is one message."""
    assert messages(item) == (message,)


def test_calls_and_results() -> None:
    """Calls are echoed with their `call_id`, results may be text or parts of it."""
    parts = {**RESULT, "output": [{"type": "input_text", "text": "4"}]}
    echo = Message("assistant", calls=(CallEcho("c1", "f", "{}"),))
    assert messages(CALL, RESULT) == (echo, Message("tool", "42", call_id="c1"))
    assert messages(CALL, parts)[1] == Message("tool", "4", call_id="c1")


def test_instructions_are_the_first_system_message() -> None:
    """Instructions and system messages together are the system prompt."""
    request = parsed(instructions="a", input=[{"role": "system", "content": "b"}])
    assert request.messages == (Message("system", "a"), Message("system", "b"))
    assert request.system == "a\nb"


def test_tools() -> None:
    """Functions and custom tools are offered by the client, hosted tools are not."""
    custom = {"type": "custom", "name": "c", "description": "d"}
    request = parsed(tools=[TOOL, {"type": "web_search"}, custom])
    assert request.tools == (
        OfferedTool("f", "", {"type": "object"}),
        OfferedTool("c", "d", custom=True),
    )


@pytest.mark.parametrize(
    ("choice", "neutral"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ({"type": "function", "name": "f"}, "f"),
        ({"type": "web_search"}, "auto"),
        ({"type": "allowed_tools", "mode": "auto", "tools": [TOOL]}, "auto"),
        ({"type": "allowed_tools", "mode": "required", "tools": [TOOL]}, "f"),
        ({"type": "allowed_tools", "mode": "required", "tools": []}, "required"),
    ],
)
def test_tool_choice(choice: Any, neutral: str) -> None:
    """Every form of the choice decides whether a call is required, and of which tool."""
    request = parsed(tools=[TOOL, {"type": "web_search"}], tool_choice=choice)
    assert request.tool_choice == neutral


@pytest.mark.parametrize(
    ("format", "schema"),
    [
        ({"type": "text"}, None),
        ({"type": "json_object"}, {}),
        ({"type": "json_schema", "name": "n", "schema": {"type": "object"}}, {"type": "object"}),
    ],
)
def test_text_format(format: dict[str, Any], schema: Any) -> None:
    """A format with a schema requests an answer that satisfies it."""
    assert parsed(text={"format": format}).output_schema == schema


@pytest.mark.parametrize(
    ("reasoning", "wanted"),
    [
        ({"effort": "low"}, True),
        ({"summary": "auto"}, True),
        ({"effort": "none"}, False),
        ({"effort": None}, False),
        (None, False),
    ],
)
def test_reasoning(reasoning: Any, wanted: bool) -> None:
    """An effort or a summary requests reasoning."""
    assert parsed(reasoning=reasoning).wants_reasoning is wanted


def test_ways_to_continue() -> None:
    """A request may continue an answer of ours or a conversation, without any input."""
    body = {"model": "m", "previous_response_id": f"resp_{TOKEN}"}
    assert PROTOCOL.parse(body, NO_TARGET, True).previous == TOKEN
    assert parsed(previous_response_id="resp_other").previous == "other"
    assert parsed(conversation="conv_1").conversation == "conv_1"
    assert parsed(conversation={"id": "conv_1"}).conversation == "conv_1"
    for way in ({"previous_response_id": "resp_1"}, {"conversation": "conv_1"}):
        assert parsed(input=[RESULT], **way).messages[0].call_id == "c1"
    assert len(messages({"type": "item_reference", "id": "fc_1"}, RESULT)) == 2


@pytest.mark.parametrize("id", ["resp-1", "gen-1764265411-Fu1i", "chatcmpl-1"])
def test_ids_of_other_services_are_kept(id: str) -> None:
    """A recorded service may have ids of any form; they are known as they were."""
    body = {"model": "m", "previous_response_id": id, "input": "a"}
    assert PROTOCOL.parse(body, NO_TARGET, True).previous == id


def test_an_id_of_another_api_is_refused_as_the_service_does() -> None:
    """Where no answer has the id, the message says which ids the service has."""
    assert PROTOCOL.stored is not None
    refused = PROTOCOL.stored.previous_not_found("chatcmpl-1")
    assert (refused.param, refused.code) == ("previous_response_id", "invalid_value")
    assert "begins with 'resp'" in refused.message
    assert "resp_1" in PROTOCOL.stored.previous_not_found("resp_1").message


def test_calls_of_custom_tools_continue() -> None:
    """The client answers a custom call with an item of its own, and the history has both."""
    calls = [ToolCall("f", "c1"), ToolCall("sh", "c2", ("ls",), custom=True)]
    body = PROTOCOL.client.continuation({"model": "m"}, f"resp_{TOKEN}", calls, ["1", "a.txt"])
    assert [item["type"] for item in body["input"]] == [
        "function_call_output",
        "custom_tool_call_output",
    ]
    results = PROTOCOL.parse(body, NO_TARGET, True).messages
    assert [(result.role, result.call_id, result.text) for result in results] == [
        ("tool", "c1", "1"),
        ("tool", "c2", "a.txt"),
    ]


INPUT_ITEMS = {model.__name__: sample(model) for model in members(ResponseInputItem)}
INPUT_ITEMS["FunctionCallOutput"]["name"] = "f"


@for_all("name", INPUT_ITEMS)
def test_histories_with_every_item_are_accepted(name: str) -> None:
    """Each item of the SDK's union is read, and it is listed as one of the official types; the
    exceptions stand for other items, or ask for one."""
    call = {"type": "function_call", "call_id": "text", "name": "f", "arguments": "{}"}
    custom = {"type": "custom_tool_call", "call_id": "text", "name": "g", "input": "x"}
    user, result = {"role": "user", "content": "Hi"}, {**RESULT, "call_id": "text"}
    request = parsed(input=[call, custom, user, INPUT_ITEMS[name], result])
    assert len(request.messages) == 5
    listed = input_items(request.body, "0" * 40, order="asc")["data"]
    assert len(listed) == (4 if name == "CompactionTrigger" else 5)
    known = [item for item in listed if item["type"] != "item_reference"]
    assert [p for item in known for p in strict.problems(ResponseItem, item)] == []


def test_a_result_may_name_its_function() -> None:
    """The id of the call may be missing then; a result with neither is refused."""
    named = {"type": "function_call_output", "name": "f", "output": "42"}
    assert messages(CALL, named)[1] == Message("tool", "42", name="f")
    with pytest.raises(RequestError, match=r"input\[1\]\.call_id"):
        messages(CALL, {"type": "function_call_output", "output": "42"})
    with pytest.raises(RequestError, match="No tool output found for function call c1"):
        messages(CALL, {**named, "name": "g"})


@pytest.mark.parametrize(
    "item",
    [
        {"type": "compaction_trigger"},
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
        {"type": "additional_tools", "tools": [{"type": "function", "name": "f"}]},
        {"type": "of_the_year_2030", "value": 1},
    ],
)
def test_what_a_client_asks_for_is_no_answer_of_the_model(item: dict[str, Any]) -> None:
    """After a trigger, an update of the settings, or an item that nobody knows, the same turn
    answers as before it."""
    user = {"role": "user", "content": "Hi"}
    assert messages(user, item) == (Message("user", "Hi"), Message("system"))


@pytest.mark.parametrize("kind", ["mcp_list_tools", "of_the_year_2030_call"])
def test_what_the_model_did_is_an_answer(kind: str) -> None:
    """Also a call of a kind that nobody knows."""
    user = {"role": "user", "content": "Hi"}
    assert messages(user, {"type": kind}) == (Message("user", "Hi"), Message("assistant"))


def test_the_newest_fields_are_repeated() -> None:
    """The caches' options are completed, and a policy that was left to the service is not named."""
    told = {"prompt_cache_options": {"mode": "explicit", "prewarm": True}, "image": {}}
    echo = json.loads(PROTOCOL.options(parsed(**told, prompt_cache_retention="24h")).echo)
    assert echo["prompt_cache_options"] == {"mode": "explicit", "ttl": "30m"}
    assert echo["prompt_cache_retention"] == "24h"
    assert "image" not in echo
    image = {"context_compression": "enabled"}
    echo = json.loads(PROTOCOL.options(parsed(image=image)).echo)
    assert echo == {"image": image}


@pytest.mark.parametrize(("count", "sent"), [(2, 2), (0, 0), (4, 0), (True, 0), ("2", 0)])
def test_partial_images_are_counted(count: Any, sent: int) -> None:
    """A number that the service refuses is none."""
    tools = [{"type": "image_generation", "partial_images": count}]
    assert PROTOCOL.options(parsed(tools=tools)).partial_images == sent


def test_results_of_hosted_tools_are_separate() -> None:
    """Approvals and results that belong to no call of the client do not count as its results."""
    results = [
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "a"},
        {"type": "computer_call_output", "call_id": "c2", "output": {}},
        {"type": "mcp_approval_response", "approval_request_id": "c3", "approve": True},
        {"type": "local_shell_call_output", "id": "c4", "output": "a"},
    ]
    hosted = PROTOCOL.client.hosted_results({"input": results})
    assert hosted == {"c2", "c3", "c4"}


def test_tools_are_offered_in_namespaces_and_in_the_input() -> None:
    """A client offers tools in a namespace, and later ones as items of its input."""
    inner = [{"type": "function", "name": "f"}, {"type": "custom", "name": "g"}]
    request = parsed(
        tools=[{"type": "namespace", "name": "n", "description": "d", "tools": inner}],
        input=[
            {"type": "additional_tools", "role": "developer", "tools": [{"type": "web_search"}]},
            {"type": "tool_search_output", "execution": "client", "call_id": "c"}
            | {"tools": [{"type": "function", "name": "h"}]},
        ],
    )
    assert [tool.name for tool in request.tools] == ["f", "g", "h"]


# Refusals


MISSING, TYPE, VALUE = "missing_required_parameter", "invalid_type", "invalid_value"
REFUSALS: list[tuple[dict[str, Any], str | None, str | None, str]] = [
    ({"model": None}, "model", MISSING, "'model'"),
    ({"model": 5}, "model", TYPE, "expected a string, but got an integer"),
    ({"input": None}, "input", MISSING, "must be provided"),
    ({"input": []}, "input", MISSING, "must be provided"),
    ({"input": 5}, "input", TYPE, "string or array"),
    ({"input": ["a"]}, "input[0]", TYPE, "expected an object, but got a string"),
    ({"input": [{}]}, "input[0].type", MISSING, "input[0].type"),
    ({"input": [{"role": "tool", "content": "a"}]}, "input[0].role", VALUE, "'tool'"),
    ({"input": [{"role": 1, "content": "a"}]}, "input[0].role", TYPE, "a string"),
    ({"input": [{"type": "message", "content": "a"}]}, "input[0].role", MISSING, "role"),
    ({"input": [{"role": "user"}]}, "input[0].content", MISSING, "content"),
    ({"input": [{"role": "user", "content": 5}]}, "input[0].content", TYPE, "an integer"),
    (
        {"input": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]},
        "input[0].content[0].type",
        VALUE,
        "'input_text'",
    ),
    (
        {"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "a"}]}]},
        "input[0].content[0].type",
        VALUE,
        "'output_text' and 'refusal'",
    ),
    ({"input": [{"type": "reasoning"}]}, "input[0].summary", MISSING, "summary"),
    ({"input": [{"type": "item_reference"}]}, "input[0].id", MISSING, "id"),
    ({"input": [{**CALL, "call_id": None}]}, "input[0].call_id", MISSING, "call_id"),
    ({"input": [{**CALL, "arguments": {}}]}, "input[0].arguments", TYPE, "an object"),
    ({"input": [CALL, {**RESULT, "output": None}]}, "input[1].output", MISSING, "output"),
    ({"input": [CALL, {**RESULT, "output": 5}]}, "input[1].output", TYPE, "an integer"),
    ({"input": [CALL]}, "input", None, "No tool output found for function call c1."),
    ({"input": [RESULT]}, "input[0].call_id", None, "No tool call found"),
    ({"input": [RESULT, CALL]}, "input[0].call_id", None, "No tool call found"),
    ({"input": [CALL], "previous_response_id": "resp_1"}, "input", None, "No tool output"),
    ({"tools": 5}, "tools", TYPE, "an array"),
    ({"tools": [5]}, "tools[0]", TYPE, "an object"),
    ({"tools": [{"name": "f"}]}, "tools[0].type", MISSING, "type"),
    ({"tools": [{"type": "function", "function": TOOL}]}, "tools[0].name", MISSING, "name"),
    ({"tools": [TOOL, {**TOOL, "name": "no spaces"}]}, "tools[1].name", VALUE, "pattern"),
    (
        {"tools": [{**TOOL, "parameters": {"type": "array"}}]},
        "tools[0].parameters",
        "invalid_function_parameters",
        "'f'",
    ),
    ({"tool_choice": "any"}, "tool_choice", VALUE, "'none', 'auto', and 'required'"),
    ({"tool_choice": "required"}, "tool_choice", None, "must be specified with 'tools'"),
    ({"tool_choice": {}}, "tool_choice.type", MISSING, "type"),
    ({"tool_choice": {"type": "function"}}, "tool_choice.name", MISSING, "name"),
    ({"tool_choice": {"type": "function", "name": "g"}}, "tool_choice", None, "'g' not found"),
    ({"tool_choice": {"type": "web_search"}}, "tool_choice", None, "'web_search' not found"),
    (
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [TOOL]}},
        "tool_choice.tools[0]",
        None,
        "'f' not found",
    ),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type", VALUE, "'xml'"),
    ({"text": {"format": {"type": "json_schema"}}}, "text.format.name", MISSING, "name"),
    (
        {"text": {"format": {"type": "json_schema", "name": "n"}}},
        "text.format.schema",
        MISSING,
        "schema",
    ),
    ({"stream": "yes"}, "stream", TYPE, "a boolean"),
    ({"temperature": 3}, "temperature", "decimal_above_max_value", "<= 2"),
    ({"max_output_tokens": 1}, "max_output_tokens", "integer_below_min_value", ">= 16"),
    ({"messages": []}, "messages", "unsupported_parameter", "moved to 'input'"),
    ({"response_format": {}}, "response_format", "unsupported_parameter", "'text.format'"),
    (
        {"previous_response_id": "resp_1", "conversation": "conv_1"},
        "previous_response_id",
        "mutually_exclusive_parameters",
        "Mutually exclusive",
    ),
    ({"conversation": {}}, "conversation.id", MISSING, "conversation.id"),
]


@for_all(("change", "param", "code", "message"), REFUSALS, ids=str)
def test_refusals(
    change: dict[str, Any], param: str | None, code: str | None, message: str
) -> None:
    """A strict request is refused with the path of the mistake; a lenient one passes."""
    with pytest.raises(RequestError) as caught:
        parsed(**change)
    assert (caught.value.param, caught.value.code, caught.value.status) == (param, code, 400)
    assert message in caught.value.message
    assert isinstance(parsed(strict=False, **change), Request)


@needs_corpus
@for_all("path", recorded_streams("responses"), ids=lambda path: path.parent.name)
def test_recorded_requests_are_not_refused(path: Path) -> None:
    """Requests that the service accepted are accepted."""
    body = json.loads(path.with_name("request.json").read_bytes())
    request = PROTOCOL.parse(body, NO_TARGET, True)
    assert request.stream
    assert request.messages


KEYS = [
    *("model", "input", "instructions", "tools", "tool_choice", "text", "reasoning", "stream"),
    *("previous_response_id", "conversation", "include", "stream_options", "prompt", "user"),
]
NAMES = [
    *("type", "role", "content", "text", "call_id", "name", "output", "arguments", "id"),
    *("parameters", "format", "schema", "mode", "tools", "summary", "include_obfuscation"),
]
STRINGS = [
    *("message", "user", "assistant", "function_call", "function_call_output", "c1", "f"),
    *("function", "allowed_tools", "json_schema", "reasoning", "item_reference", "required"),
    *("input_text", "output_text", "\ud800"),
]
odd = st.recursive(
    strategies.json_values | st.sampled_from(STRINGS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), odd, max_size=6), st.booleans())
def test_any_body_is_read_or_refused(body: dict[str, Any], strict_: bool) -> None:
    """Any JSON object is a request or a refusal, and an accepted one can be answered."""
    try:
        request = PROTOCOL.parse(body, NO_TARGET, strict_)
    except RequestError:
        assert strict_
        return
    options = PROTOCOL.options(request)
    assert hash(options) is not None
    answer = PROTOCOL.encode_body(Turn((Text(("a",)),), "stop"), Reply("s", TOKEN, "m", options))
    assert json.dumps(answer, ensure_ascii=False).encode()
    assert input_items(body, TOKEN)["object"] == "list"


# Repeated fields


def answered(**body: Any) -> dict[str, Any]:
    options = PROTOCOL.options(parsed(**body))
    return PROTOCOL.encode_body(Turn((), "stop"), Reply("s", TOKEN, "m", options))


def test_the_response_repeats_the_request() -> None:
    """Settings of the request are repeated in the response unchanged."""
    given_ = {
        "background": False,
        "instructions": "a",
        "max_output_tokens": 64,
        "max_tool_calls": 3,
        "metadata": {"k": "v"},
        "parallel_tool_calls": False,
        "previous_response_id": "resp_1",
        "prompt_cache_key": "p",
        "safety_identifier": "s",
        "service_tier": "flex",
        "store": False,
        "temperature": 0.5,
        "tool_choice": "none",
        "top_logprobs": 2,
        "top_p": 0.9,
        "truncation": "auto",
        "user": "u",
    }
    answer = answered(**given_)
    assert {name: answer[name] for name in given_} == given_


def test_the_response_adds_defaults() -> None:
    """Tools, text and reasoning are repeated with the service's defaults."""
    answer = answered(
        tools=[{"type": "function", "name": "f"}, {"type": "mcp", "server_label": "m"}],
        text={"verbosity": "low"},
        reasoning={"effort": "high"},
        conversation="conv_1",
    )
    assert answer["tools"] == [
        {"type": "function", "description": None, "name": "f", "parameters": None, "strict": True},
        {
            "type": "mcp",
            "allowed_tools": None,
            "headers": None,
            "server_description": None,
            "server_label": "m",
        },
    ]
    assert answer["text"] == {"format": {"type": "text"}, "verbosity": "low"}
    reasoning = {
        "context": "current_turn",
        "effort": "high",
        "mode": "standard",
        "summary": None,
    }
    assert answer["reasoning"] == reasoning
    assert answer["conversation"] == {"id": "conv_1"}


def test_options_are_equal_for_equal_requests() -> None:
    """The order of fields, and fields that the answer does not repeat, make no difference."""
    one = PROTOCOL.options(parsed(user="u", store=False))
    other = PROTOCOL.options(parsed(store=False, user="u", input="else", stream=True))
    assert one == other
    assert hash(one) == hash(other)
    assert PROTOCOL.options(parsed(include=["reasoning.encrypted_content"])).encrypted
    assert PROTOCOL.options(parsed(stream_options={"include_obfuscation": True})).obfuscation
    assert PROTOCOL.options(parsed()).obfuscation  # as the service does
    assert not PROTOCOL.options(parsed(stream_options={"include_obfuscation": False})).obfuscation


# Lookups


def test_input_items_are_of_the_official_types() -> None:
    """Each item is listed as the service stores it, with an id of its own, newest first."""
    body = {
        "input": [
            {"role": "developer", "content": "a"},
            {"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]},
            {"role": "assistant", "content": "b"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            {"type": "reasoning", "summary": []},
            CALL,
            RESULT,
        ]
    }
    listed = input_items(body, TOKEN)
    for item in listed["data"]:
        assert strict.problems(ResponseItem, item) == []
    assert [item["type"] for item in listed["data"][:2]] == [
        "function_call_output",
        "function_call",
    ]
    assert len({item["id"] for item in listed["data"]}) == 7
    ids = (listed["data"][0]["id"], listed["data"][-1]["id"])
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == (*ids, False)


def test_input_items_page_by_page() -> None:
    """Pages joined are the whole list, in either order."""
    body = {"input": [{"role": "user", "content": str(i)} for i in range(5)]}
    whole = input_items(body, TOKEN)["data"]
    first = input_items(body, TOKEN, limit="2")
    second = input_items(body, TOKEN, limit="3", after=first["last_id"])
    assert first["data"] + second["data"] == whole
    assert (first["has_more"], second["has_more"]) == (True, False)
    assert input_items(body, TOKEN, order="asc")["data"] == whole[::-1]
    assert input_items({"input": "a"}, TOKEN)["data"][0]["content"][0]["text"] == "a"


def test_lookups() -> None:
    """Stored answers can be looked up and deleted, and their input listed."""
    id = f"resp_{TOKEN}"
    lookup = Lookup(Target({"response_id": id}), request={"input": "a"}, answer={"id": id})
    assert PROTOCOL.lookups["response"](lookup) == {"id": id}
    deleted = {"id": id, "object": "response", "deleted": True}
    assert PROTOCOL.lookups["delete_response"](lookup) == deleted
    items = PROTOCOL.lookups["input_items"](lookup)["data"]
    assert [item["content"][0]["text"] for item in items] == ["a"]


def test_calls_name_the_namespace_of_their_tool() -> None:
    """A tool that only a search loads is its own namespace, also where the input adds it."""
    loaded = {**TOOL, "defer_loading": True}
    found = {"type": "tool_search_output", "call_id": "c", "tools": [{**loaded, "name": "later"}]}
    group = {"type": "namespace", "name": "crm", "description": "d", "tools": [TOOL]}
    name = TOOL["name"]
    for fields, expected in (
        ({"tools": [TOOL]}, ()),
        ({"tools": [loaded]}, ((name, name),)),
        ({"tools": [group]}, ((name, "crm"),)),
        ({"input": [found]}, (("later", "later"),)),
        ({"tools": [group, 3], "input": 3}, ((name, "crm"),)),
    ):
        options = PROTOCOL.options(PROTOCOL.parse({"model": "m", **fields}, NO_TARGET, False))
        assert options.namespaces == expected
