"""An agent with a model and an MCP server, whose parts can be replaced by wrong ones."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

OVER_TOOLS = {
    *("call-reached-tool", "result-returned", "tools-offered", "call-not-made", "call-unasked"),
    *("result-shortened", "media-left-out", "failure-unmarked", "tools-filtered"),
    *("schema-changed", "list-change-ignored"),
}
"""The invariants that `test_tool_verdicts` breaks."""

SERVER = """
mcp: weather
tools:
  - name: get
    parameters:
      type: object
      properties: {city: {type: string}, unit: {type: string}}
      required: [city]
  - {name: put, parameters: {type: object, properties: {city: {type: string}}}}
calls:
  - {tool: get, match: {arguments: {city: Oslo}}, answer: {text: Rain all day}}
  - {tool: get, match: {arguments: {city: Rome}}, answer: {text: [Sun at noon, Wind at night]}}
  - {tool: get, match: {arguments: {city: Bern}}, answer: {error: No such station}}
  - tool: get
    match: {arguments: {city: Kiel}}
    answer: {text: Fog on Kiel, json: {temp: 4, sky: [fog]}}
  - {tool: get, match: {arguments: {city: Long}}, answer: {text: LONG}}
  - tool: get
    match: {arguments: {city: Map}}
    answer: {text: A map, image: {base64: aGVsbG8=, type: image/png}}
  - {tool: get, match: {arguments: {city: Slow}}, attempts: [{http: 503}], answer: {text: At last}}
  - {tool: get, match: {arguments: {city: Gone}}, fault: session-lost, answer: {text: Back again}}
  - {tool: get, match: {arguments: {city: Swap}}, answer: {text: Swapped, tools: [{name: get}]}}
  - {tool: get, match: {arguments: {city: Rest}}, answer: {text: The rest of it, resumed: true}}
  - {tool: get, match: {arguments: {city: Late}}, timing: {ttft: 60s}, answer: {text: Rain late}}
  - {tool: get, match: {arguments: {city: Soon}}, timing: {ttft: 2s}, answer: {text: Rain soon}}
  - {tool: put, answer: {text: Stored}}
""".replace("LONG", "long " * 1000)  # fmt: skip


def scenario(*turns: list[str], name: str = "trip", extra: str = "") -> str:
    """A scenario that calls `get` for the cities of each turn, then says that it is done."""
    numbers = itertools.count(1)
    replies = []
    for cities in turns:
        calls = [
            f"{{tool: weather.get, id: call_{next(numbers)}, arguments: {{city: {city}}}{extra}}}"
            for city in cities
        ]
        replies.append(f"  - reply: [{', '.join(calls)}]")
    return f"{SERVER}---\nscenario: {name}\nmatch: {{user: {name}}}\nturns:\n" + "\n".join(
        [*replies, "  - reply: {text: Done.}\n"]
    )


class Agent:
    """A right agent over Chat Completions.

    Args:
        name: of a tool, for the model.
    """

    path, api = "/v1/chat/completions", "chat"

    def __init__(self, served: Any, name: Callable[[str], str] = "mcp__weather__{}".format) -> None:
        self.served, self.name = served, name
        self.ids = itertools.count(1)
        self.listed: list[Json] = []

    # MCP

    def send(self, method: str, params: Json | None = None, server: str = "weather") -> Any:
        """The response to a message."""
        message = {"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params or {}}
        return self.served.http.post(f"/mcp/{server}", json=message)

    def connect(self) -> None:
        """The handshake and the list of tools."""
        self.send("initialize", {"protocolVersion": "2025-06-18", "clientInfo": {"name": "agent"}})
        self.listed = self.send("tools/list").json()["result"]["tools"]

    def call(self, tool: str, arguments: Json, meta: Json | None = None) -> Json:
        """The result of a call; it is tried once more after an HTTP error."""
        params = {"name": tool, "arguments": arguments} | ({"_meta": meta} if meta else {})
        answer = self.send("tools/call", params)
        if answer.status_code >= 400:
            answer = self.send("tools/call", params)
        ids = [line[4:] for line in answer.text.splitlines() if line.startswith("id: ")]
        if ids:  # the stream ended before the result
            answer = self.served.http.get("/mcp/weather", headers={"last-event-id": ids[-1]})
        events = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        result: Json = json.loads(events[-1] if events else answer.text)["result"]
        return result

    # What wrong agents replace

    def offered(self) -> list[tuple[str, Json]]:
        """The tools for the model: names and schemas."""
        return [(self.name(tool["name"]), tool["inputSchema"]) for tool in self.listed]

    def execute(self, call: Json) -> str:
        """The result of one call of the model, as its text."""
        return self.text(self.call("get", json.loads(call["function"]["arguments"])))

    def text(self, result: Json) -> str:
        return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")

    def results(self, calls: list[Json]) -> list[str]:
        """The results of the calls of one turn."""
        return [self.execute(call) for call in calls]

    # The model

    def ask(self, messages: list[Json]) -> Json:
        """The message that the model answers."""
        tools = [{"type": "function", "function": {"name": name, "parameters": schema}}
                 for name, schema in self.offered()]  # fmt: skip
        body = {"model": "m", "messages": messages} | ({"tools": tools} if tools else {})
        answer = self.served.http.post(self.path, json=body)
        assert answer.status_code == 200, answer.text
        message: Json = answer.json()["choices"][0]["message"]
        return message

    def run(self, user: str = "trip") -> None:
        """A whole conversation."""
        self.connect()
        messages: list[Json] = [{"role": "user", "content": user}]
        while True:
            message = self.ask(messages)
            calls = message.get("tool_calls") or []
            messages.append({"role": "assistant", "content": message.get("content"), **(
                {"tool_calls": calls} if calls else {})})  # fmt: skip
            if not calls:
                return
            texts = self.results(calls)
            messages += [
                {"role": "tool", "tool_call_id": call["id"], "content": text}
                for call, text in zip(calls, texts, strict=True)
            ]


class AnthropicAgent(Agent):
    """The same over Anthropic's API, where a result can be marked as a failure."""

    path, api = "/v1/messages", "anthropic"
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}  # noqa: RUF012 - of all
    marks = True

    def run(self, user: str = "trip") -> None:
        self.connect()
        messages: list[Json] = [{"role": "user", "content": user}]
        tools = [{"name": name, "input_schema": schema} for name, schema in self.offered()]
        while True:
            body = {"model": "m", "max_tokens": 99, "messages": messages, "tools": tools}
            answer = self.served.http.post(self.path, json=body, headers=self.headers)
            assert answer.status_code == 200, answer.text
            content = answer.json()["content"]
            messages.append({"role": "assistant", "content": content})
            calls = [block for block in content if block["type"] == "tool_use"]
            if not calls:
                return
            messages.append({"role": "user", "content": [self.block(call) for call in calls]})

    def block(self, call: Json) -> Json:
        """The block with the result of a call."""
        meta = {"claudecode/toolUseId": call["id"]}
        result = self.call("get", call["input"], meta)
        failed = {"is_error": True} if result.get("isError") and self.marks else {}
        text = self.text(result)
        return {"type": "tool_result", "tool_use_id": call["id"], "content": text, **failed}
