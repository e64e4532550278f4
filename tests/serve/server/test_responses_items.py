"""The official SDK reads items of hosted tools and calls of custom tools, and continues them."""

from __future__ import annotations

from typing import Any

import pytest
from openai import OpenAI

from mockllm import ServerThread, loads

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
