"""The official SDK reads items of hosted tools and calls of custom tools, and continues them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from mockllm import ServerOptions, ServerThread, load, loads
from mockllm.scenario.part_model import kind_of, members
from mockllm.serve.server.options import RecordOptions

SCENARIO = """
scenario: hosted
match: any
turns:
  - reply:
      - server_tool: web_search
        input: {query: rain}
        output: [{type: web_search_result, url: "https://x", title: t}]
      - server_tool: code_interpreter
        input: {code: "print(1)"}
        split: chars
        output: [{type: logs, logs: "1"}]
      - server_tool: web_fetch
        input: {url: x}
        output: {text: y}
      - tool: sh
        id: call_1
        input: ls -l
        split: chars
  - request: {results: {call_1: a.txt}}
    reply: {text: One file.}
"""


def shown(item: Any) -> tuple[Any, ...]:
    """The type of an item, and its content."""
    match item.type:
        case "web_search_call":
            return (item.type, item.action.query, [source.url for source in item.action.sources])
        case "code_interpreter_call":
            return (item.type, item.code, [output.logs for output in item.outputs])
        case "mcp_call":
            return (item.type, item.name, item.arguments, item.output)
    return (item.type, item.name, item.input)


@pytest.mark.slow
def test_the_sdk_reads_and_continues_hosted_items() -> None:
    """Streamed, whole and retrieved, the items are the same, and the result of a custom call
    gets the next turn."""
    with (
        ServerThread(list(loads(SCENARIO))) as server,
        OpenAI(base_url=f"{server.url}/v1", api_key="key") as client,
    ):
        with client.responses.stream(model="m", input="hi") as stream:
            streamed = stream.get_final_response()
        whole = client.responses.create(model="m", input="hi")
        kept = client.responses.retrieve(whole.id)
        results: Any = [{"type": "custom_tool_call_output", "call_id": "call_1", "output": "a.txt"}]
        last = client.responses.create(model="m", previous_response_id=kept.id, input=results)
    items = [shown(item) for item in streamed.output]
    assert items == [
        ("web_search_call", "rain", ["https://x"]),
        ("code_interpreter_call", "print(1)", ["1"]),
        ("mcp_call", "web_fetch", '{"url":"x"}', '{"text":"y"}'),
        ("custom_tool_call", "sh", "ls -l"),
    ]
    assert [shown(item) for item in whole.output] == items
    assert [shown(item) for item in kept.output] == items
    assert last.output_text == "One file."


NEWEST = """
scenario: newest
match: any
turns:
  - reply:
      - {server_tool: shell, id: call_1, input: {action: {commands: [ls, pwd]}}}
      - server_tool: shell_call_output
        id: call_1
        output: [{stdout: a.txt, stderr: "", outcome: {type: timeout}}]
      - {server_tool: mcp_list_tools, name: docs, output: {error: Gone}}
      - {server_tool: mcp_approval_response, input: {approval_request_id: mcpr_1}, output: true}
      - {server_tool: image_generation, output: aGVsbG8=}
      - {server_tool: function_call_output, id: call_2, output: "15"}
      - text: Done
    finish: length
    finish_raw: steered
"""


@pytest.mark.slow
def test_the_sdk_reads_the_newest_items_and_events(tmp_path: Path) -> None:
    """Their events and items are of the SDK's types; the recorded exchange becomes the same YAML,
    and what it replays is what was recorded."""
    tools: Any = [{"type": "image_generation", "partial_images": 1}]

    def ask(url: str) -> list[Any]:
        with OpenAI(base_url=f"{url}/v1", api_key="key") as client:
            stream = client.responses.create(model="m", input="hi", tools=tools, stream=True)
            return list(stream)

    folder = tmp_path / "recorded"
    with ServerThread(list(loads(NEWEST))) as service:
        options = RecordOptions(folder, {"responses": service.url})
        with ServerThread((), ServerOptions(record=options)) as recorder:
            sent = ask(recorder.url)
    types = [event.type for event in sent]
    assert "response.shell_call_command.delta" in types
    assert "response.image_generation_call.partial_image" in types
    assert "response.mcp_list_tools.failed" in types
    last = sent[-1].response
    assert last.incomplete_details.reason == "steered"
    assert [item.type for item in last.output][:4] == [
        "shell_call",
        "shell_call_output",
        "mcp_list_tools",
        "mcp_approval_response",
    ]
    assert last.output[3].approve is True
    recorded = load([folder])
    with ServerThread(recorded, ServerOptions(speed=0)) as replay:
        assert ask(replay.url) == sent
    (turn,), (written,) = (one.turns for one in (*recorded, *loads(NEWEST)))
    kinds = [getattr(part, "kind", kind_of(part)) for part in members(turn.reply)]
    kinds.remove("frame")  # the partial image as it was
    assert kinds == [getattr(part, "kind", kind_of(part)) for part in written.reply]
    assert (turn.finish, turn.finish_raw) == ("length", "steered")
