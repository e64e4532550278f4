"""OpenAI Responses: items of hosted tools and calls of custom tools, encoded and decoded."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseOutputItem, ResponseStreamEvent

from mockllm.core.turn import Opaque, Reasoning, ServerTool, Text, TokenUsage, ToolCall, Turn
from mockllm.wire.framing import sse
from mockllm.wire.protocols.base import Reply
from mockllm.wire.protocols.openai_responses.parts import KINDS as ITEMS
from mockllm.wire.protocols.openai_responses.protocol import PROTOCOL
from mockllm.wire.protocols.openai_responses.server_tools import BY_KIND
from tests import strategies
from tests.cases import for_all
from tests.wire.protocols.streams import encoded
from tests.wire.protocols.strict import problems
from tests.wire.protocols.test_openai_responses import REPLY, TOKEN, in_a_body, played, read, values

KINDS = [*BY_KIND, "web_fetch", "url_context"]
USAGE = TokenUsage(11, 7, 2, 3)


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


inputs = (
    st.dictionaries(
        st.sampled_from(["code", "query", "queries", "action", "type", "url", "id", "input"]),
        strategies.json_values,
        max_size=3,
    ).map(compact)
    | st.builds(lambda code: compact({"code": code}), strategies.texts)
    | strategies.texts
)
outputs = st.none() | strategies.json_values.map(compact) | strategies.texts


@st.composite
def server_tools(draw: st.DrawFn) -> ServerTool:
    """A call of any hosted tool, whose input and output may be any text."""
    text = draw(inputs)
    fragments = draw(strategies.cut(text)) if text else ()
    kind, name = draw(st.sampled_from(KINDS)), draw(st.just("") | strategies.names)
    id = draw(st.just("") | strategies.names | st.just(f"ws_{TOKEN}0001"))
    return ServerTool(kind, id, name, fragments, draw(outputs))


custom_calls = st.builds(
    ToolCall,
    strategies.names,
    strategies.names.map("call_{}".format),
    strategies.fragments,
    custom=st.just(True),
)
parts = strategies.parts | server_tools() | custom_calls
turns = strategies.turns(parts)


@settings(deadline=None)
@given(turns)
def test_the_body_decodes_to_the_turn(turn: Turn) -> None:
    """The answer that is not streamed has the same turn, up to its fragments."""
    assert PROTOCOL.decode_body(PROTOCOL.encode_body(turn, REPLY)) == in_a_body(turn)


# The items and their events

ERROR = {"type": "http_error", "code": 500, "message": "Gone"}
SHELL_OUTPUT = compact(
    [
        {"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
        {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
    ]
)
CALLS = {
    "web_search": (
        ServerTool("web_search", "ws_1", "", ('{"type":"search","query":"rain"}',), None),
        {"type": "web_search_call", "action": {"type": "search", "query": "rain"}},
        ["web_search_call.in_progress", "web_search_call.searching", "web_search_call.completed"],
    ),
    "file_search": (
        ServerTool("file_search", "fs_1", "", ('{"queries":["rain"]}',), '[{"file_id":"f1"}]'),
        {"type": "file_search_call", "queries": ["rain"], "results": [{"file_id": "f1"}]},
        [
            "file_search_call.in_progress",
            "file_search_call.searching",
            "file_search_call.completed",
        ],
    ),
    "code_interpreter": (
        ServerTool(
            "code_interpreter",
            "ci_1",
            "",
            ('{"code":"print(', "1)\\n", '"}'),
            '[{"type":"logs","logs":"1"}]',
        ),
        {"type": "code_interpreter_call", "code": "print(1)\n"}
        | {"outputs": [{"type": "logs", "logs": "1"}]},
        [
            "code_interpreter_call.in_progress",
            "code_interpreter_call_code.delta",
            "code_interpreter_call_code.delta",
            "code_interpreter_call_code.done",
            "code_interpreter_call.interpreting",
            "code_interpreter_call.completed",
        ],
    ),
    "mcp": (
        ServerTool("mcp", "mcp_1", "wiki/ask", ('{"q":', "1}"), '"It rains."'),
        {"type": "mcp_call", "server_label": "wiki", "name": "ask", "arguments": '{"q":1}'}
        | {"output": "It rains.", "error": None},
        [
            "mcp_call.in_progress",
            "mcp_call_arguments.delta",
            "mcp_call_arguments.delta",
            "mcp_call_arguments.done",
            "mcp_call.completed",
        ],
    ),
    "mcp failed": (
        ServerTool("mcp", "mcp_1", "wiki/ask", ("{}",), compact({"error": ERROR})),
        {"type": "mcp_call", "status": "failed", "error": ERROR} | {"output": None},
        [
            "mcp_call.in_progress",
            "mcp_call_arguments.delta",
            "mcp_call_arguments.done",
            "mcp_call.failed",
        ],
    ),
    "mcp tools": (
        ServerTool("mcp_list_tools", "mcpl_1", "wiki", (), '[{"name":"ask","input_schema":{}}]'),
        {"type": "mcp_list_tools", "server_label": "wiki"}
        | {"tools": [{"name": "ask", "input_schema": {}}]},
        ["mcp_list_tools.in_progress", "mcp_list_tools.completed"],
    ),
    "mcp approval": (
        ServerTool("mcp_approval_request", "mcpr_1", "wiki/ask", ('{"q":1}',)),
        {"type": "mcp_approval_request", "server_label": "wiki", "name": "ask"}
        | {"arguments": '{"q":1}'},
        [],
    ),
    "image_generation": (
        ServerTool("image_generation", "ig_1", "", ('{"size":"1024x1024"}',), '"iVBORw0KGgo="'),
        {"type": "image_generation_call", "size": "1024x1024", "result": "iVBORw0KGgo="},
        [
            "image_generation_call.in_progress",
            "image_generation_call.generating",
            "image_generation_call.completed",
        ],
    ),
    "mcp tools failed": (
        ServerTool("mcp_list_tools", "mcpl_1", "wiki", (), '{"error":"Gone"}'),
        {"type": "mcp_list_tools", "server_label": "wiki", "tools": [], "error": "Gone"},
        ["mcp_list_tools.in_progress", "mcp_list_tools.failed"],
    ),
    "mcp approved": (
        ServerTool(
            "mcp_approval_response",
            "mcpa_1",
            "",
            ('{"approval_request_id":"mcpr_1","reason":"harmless"}',),
            "true",
        ),
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        [],
    ),
    "shell": (
        ServerTool("shell", "call_1", "", ('{"action":{"commands":["ls","pwd"]}}',)),
        {"type": "shell_call", "call_id": "call_1", "action": {"commands": ["ls", "pwd"]}},
        [f"shell_call_command.{event}" for event in ("added", "delta", "done")] * 2,
    ),
    "shell output": (
        ServerTool("shell_call_output", "call_1", "", ('{"max_output_length":9}',), SHELL_OUTPUT),
        {"type": "shell_call_output", "call_id": "call_1", "output": json.loads(SHELL_OUTPUT)},
        [
            "shell_call_output_content.delta",
            "shell_call_output_content.done",
            "shell_call_output_content.done",
        ],
    ),
    "local shell output": (
        ServerTool("local_shell_call_output", "lso_1", "", (), '"a.txt"'),
        {"type": "local_shell_call_output", "id": "lso_1", "output": "a.txt"},
        [],
    ),
    "output of a function": (
        ServerTool("function_call_output", "call_1", "", ('{"name":"f"}',), '"15"'),
        {"type": "function_call_output", "call_id": "call_1", "name": "f", "output": "15"},
        [],
    ),
    "output of a custom tool": (
        ServerTool("custom_tool_call_output", "call_1", "", (), '"15"'),
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "15"},
        [],
    ),
    "computer": (
        ServerTool(
            "computer",
            "call_1",
            "",
            ('{"action":{"type":"wait"},"pending_safety_checks":[]}',),
        ),
        {"type": "computer_call", "call_id": "call_1", "action": {"type": "wait"}}
        | {"pending_safety_checks": []},
        [],
    ),
    "local_shell": (
        ServerTool(
            "local_shell",
            "call_1",
            "",
            ('{"action":{"type":"exec","command":["ls"],"env":{}}}',),
        ),
        {"type": "local_shell_call", "call_id": "call_1"}
        | {"action": {"type": "exec", "command": ["ls"], "env": {}}},
        [],
    ),
    "tool_search": (
        ServerTool(
            "tool_search",
            "call_1",
            "",
            ('{"arguments":{"paths":["a"]},"execution":"client"}',),
        ),
        {"type": "tool_search_call", "call_id": "call_1", "execution": "client"}
        | {"arguments": {"paths": ["a"]}},
        [],
    ),
    "compaction": (
        ServerTool("compaction", "cmp_1", "", ('{"encrypted_content":"gAAA"}',)),
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"},
        [],
    ),
}
every_call = for_all("name", CALLS)


def streamed(call: ServerTool | ToolCall) -> list[dict[str, Any]]:
    """The events of the item of a call."""
    return [value for value in values(Turn((call,), "stop", USAGE)) if "output_index" in value]


@every_call
def test_a_hosted_tool_has_its_own_item(name: str) -> None:
    """The finished item has the input and the output where the service puts them, and the events
    before it are those of the service, in their order."""
    call, fields, events = CALLS[name]
    added, *between, done = streamed(call)
    assert done["item"].items() >= fields.items()
    assert [value["type"].removeprefix("response.") for value in between] == events
    assert (added["type"], done["type"]) == (
        "response.output_item.added",
        "response.output_item.done",
    )
    assert added["item"].get("status", "in_progress") == "in_progress"
    assert {value.get("item_id", done["item"]["id"]) for value in between} <= {done["item"]["id"]}


@every_call
def test_a_hosted_tool_comes_back_unchanged(name: str) -> None:
    """What the service sends is kept: fragments, input, output, name and id."""
    turn = Turn((CALLS[name][0], Text(("Done.",))), "stop", USAGE)
    assert read(played(turn)) == turn == PROTOCOL.project(turn)


@every_call
def test_events_of_hosted_tools_are_of_the_official_types(name: str) -> None:
    """Every event has the fields of the official package's types, and no others."""
    turn = Turn((CALLS[name][0],), "stop", USAGE)
    # The service first sends a search without its action, which its types require.
    bare = {"web_search": "response.output_item.added"}.get(name)
    checked = [value for value in values(turn) if value["type"] != bare]
    assert [p for value in checked for p in problems(ResponseStreamEvent, value)] == []
    assert problems(Response, PROTOCOL.encode_body(turn, REPLY)) == []


def test_every_item_of_the_official_types_is_known() -> None:
    """Each type of output item in the official package is read as a neutral part."""
    union = get_args(get_args(ResponseOutputItem)[0])
    types = {get_args(member.model_fields["type"].annotation)[0] for member in union}
    assert types - ITEMS == set()


def test_a_tool_of_another_api_is_a_call_of_an_mcp_server() -> None:
    """The input and the output of a tool that this API does not have are kept."""
    call = ServerTool("web_fetch", "", "", ('{"url":"x"}',), '{"text":"y"}')
    item = streamed(call)[-1]["item"]
    assert (item["server_label"], item["name"]) == ("mcp", "web_fetch")
    assert (item["arguments"], item["output"]) == ('{"url":"x"}', '{"text":"y"}')
    assert problems(ResponseOutputItem, item) == []


@pytest.mark.parametrize(
    ("call", "field", "value"),
    [
        (ServerTool("web_search", fragments=('{"query":"a"}',)), "action", {"query": "a"}),
        (
            ServerTool("web_search", output='[{"type":"web_search_result","url":"u","title":"t"}]'),
            "action",
            {"sources": [{"type": "url", "url": "u"}]},
        ),
        (ServerTool("file_search", fragments=('{"query":"a"}',)), "queries", ["a"]),
        (
            ServerTool("code_interpreter", output='{"stdout":"a","stderr":"b","return_code":0}'),
            "outputs",
            [{"type": "logs", "logs": "ab"}],
        ),
        (
            ServerTool("code_interpreter", output='{"outcome":"OUTCOME_OK","output":"a"}'),
            "outputs",
            [{"type": "logs", "logs": "a"}],
        ),
        (ServerTool("mcp", name="ask", output='{"a":1}'), "output", '{"a":1}'),
    ],
)
def test_inputs_and_outputs_of_other_apis_are_fitted(
    call: ServerTool, field: str, value: Any
) -> None:
    """A client reads what its types have, whichever API the scenario was recorded from."""
    item = streamed(call)[-1]["item"]
    if isinstance(value, dict):
        assert item[field].items() >= value.items()
    else:
        assert item[field] == value
    assert problems(ResponseOutputItem, item) == []


def test_a_custom_call_streams_its_text() -> None:
    """The input of a custom tool is text, in an item and in events of its own."""
    call = ToolCall("sh", "call_1", ("ls", " -l"), custom=True)
    added, *between, done = streamed(call)
    assert (added["item"]["type"], added["item"]["input"]) == ("custom_tool_call", "")
    assert [(v["type"], v.get("delta", v.get("input"))) for v in between] == [
        ("response.custom_tool_call_input.delta", "ls"),
        ("response.custom_tool_call_input.delta", " -l"),
        ("response.custom_tool_call_input.done", "ls -l"),
    ]
    assert done["item"]["input"] == "ls -l"
    assert read(played(Turn((call,), "tool_calls", USAGE))).parts == (call,)


def test_frames_inside_an_item_stay_there() -> None:
    """A partial image has no neutral form: its frame is kept between start and end of its item."""
    data = {"type": "response.image_generation_call.partial_image", "item_id": "ig_1"}
    data |= {"output_index": 0, "partial_image_index": 0, "partial_image_b64": "iVBORw0KGgo="}
    frame = sse.Frame(compact({**data, "sequence_number": 5}), event=data["type"])
    call = ServerTool("image_generation", "ig_1", "", ("{}",), '"iVBORw0KGgo="')
    turn = Turn((call, Opaque("responses", frame)), "stop", USAGE, order=(0, 1, 0))
    types = [value["type"].rpartition(".")[2] for value in values(turn)]
    assert types[2:8] == [
        "added",
        "in_progress",
        "generating",
        "partial_image",
        "completed",
        "done",
    ]
    assert read(played(turn)) == PROTOCOL.project(turn)


def test_commands_and_their_output_stream() -> None:
    """The commands of a shell begin without their text, their events name no item, as the types
    have it, and what a command prints comes with its number."""
    added, begun, delta, done, *_ = streamed(CALLS["shell"][0])
    assert added["item"]["action"] == {"commands": []}
    assert (begun["command"], delta["delta"], done["command"]) == ("", "ls", "ls")
    frames = encoded(PROTOCOL, Turn((CALLS["shell"][0],), "stop", USAGE), asking(obfuscation=True))
    (padded, _) = [f for f in frames if f.event == "response.shell_call_command.delta"]
    assert len(json.loads(padded.data or "")["obfuscation"]) == 14
    assert "item_id" not in begun
    _, delta, done, last, _ = streamed(CALLS["shell output"][0])
    assert (delta["command_index"], delta["delta"]) == (0, {"stdout": "a.txt"})
    assert [done["output"][0]["stdout"], last["command_index"]] == ["a.txt", 1]


def asking(**options: Any) -> Reply:
    """A reply to a request that asks for more."""
    return replace(REPLY, options=replace(REPLY.options, **options))


IMAGE = ServerTool("image_generation", "ig_1", "", ('{"size":"1x1"}',), '"iVBORw0KGgo="')


def test_partial_images_come_where_the_request_asks_for_them() -> None:
    """Each is the finished image; the answer that is not streamed has the same item."""
    turn = Turn((IMAGE,), "stop", USAGE)
    events = [json.loads(f.data or "") for f in encoded(PROTOCOL, turn, asking(partial_images=2))]
    partial = [e for e in events if e["type"] == "response.image_generation_call.partial_image"]
    assert [(e["partial_image_index"], e["size"]) for e in partial] == [(0, "1x1"), (1, "1x1")]
    assert {e["partial_image_b64"] for e in partial} == {"iVBORw0KGgo="}
    assert [p for e in partial for p in problems(ResponseStreamEvent, e)] == []


def test_recorded_partial_images_are_the_only_ones() -> None:
    """The decoder keeps them as frames, and then none is made besides."""
    options = asking(partial_images=1)
    recorded = encoded(PROTOCOL, Turn((IMAGE,), "stop", USAGE), options)
    turn = read([(0, frame) for frame in recorded])
    assert [type(part).__name__ for part in turn.parts] == ["ServerTool", "Opaque"]
    again = encoded(PROTOCOL, turn, options)
    assert [frame.event for frame in again] == [frame.event for frame in recorded]


def test_a_trigger_shows_that_the_context_is_compacted() -> None:
    """Its event comes only where the request ends with a trigger, and adds nothing."""
    turn = Turn((CALLS["compaction"][0],), "stop", USAGE)
    frames = encoded(PROTOCOL, turn, asking(compacting=True))
    (event,) = [f for f in frames if f.event == "response.compaction.compacting"]
    assert problems(ResponseStreamEvent, json.loads(event.data or "")) == []
    assert read([(0, frame) for frame in frames]) == turn


def test_ids_are_unique_in_an_answer() -> None:
    """Two calls with one id have items with different ids; derived ids are read as none."""
    call = ServerTool("web_search", "ws_1", "", ('{"type":"search"}',))
    turn = Turn((call, call), "stop", USAGE)
    first, second = PROTOCOL.encode_body(turn, REPLY)["output"]
    assert (first["id"], second["id"]) == ("ws_1", f"ws_{TOKEN}0001")
    assert read(played(turn)).parts == (call, replace(call, id=""))


def test_reasoning_with_summary_and_text_is_one_item() -> None:
    """OpenRouter and open models send both in one item; the encrypted content is that of both."""
    turn = Turn((Reasoning(("s",), summary=True), Reasoning(("t",), "sig")), "stop", USAGE)
    (item,) = PROTOCOL.encode_body(turn, REPLY)["output"]
    assert item["summary"] == [{"type": "summary_text", "text": "s"}]
    assert item["content"] == [{"type": "reasoning_text", "text": "t"}]
    assert item["encrypted_content"] == "sig"
    assert read(played(turn)) == turn
