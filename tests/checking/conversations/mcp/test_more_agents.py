"""Further planted mistakes and right agents, over four APIs, streamed and not."""

from __future__ import annotations

import json
import threading
import unicodedata
from typing import Any

import pytest

from tests.checking.conversations.mcp.agents import Agent, scenario
from tests.checking.conversations.mcp.test_tool_verdicts import verdict

TWO = """
mcp: left
tools: [{name: get, parameters: {type: object, properties: {n: {}, city: {type: string}}}}]
calls:
  - {tool: get, match: {arguments: {n: 1}}, answer: {text: One}}
  - {tool: get, match: {arguments: {city: Zürich}}, answer: {text: "Föhn in Zürich"}}
  - {tool: get, match: {arguments: {city: html}}, answer: {text: "a < b & c"}}
  - {tool: get, match: {arguments: {city: lines}}, answer: {text: "line one\\nline two"}}
  - {tool: get, match: {arguments: {city: two}}, answers: [{text: First}, {text: Second}]}
  - {tool: get, match: {arguments: {city: flag}}, answer: {text: See it, json: {on: 1, at: [2]}}}
  - {tool: get, match: {arguments: {city: busy}}, attempts: [{answer: {error: Busy}}],
     answer: {text: Free}}
  - {tool: get, answer: {text: From the left}}
---
mcp: right
tools: [{name: get, parameters: {type: object, properties: {n: {}, city: {type: string}}}}]
calls: [{tool: get, answer: {text: From the right}}]
---
scenario: trip
match: {user: trip}
turns:
  - reply: CALLS
  - reply: {text: Done.}
"""


def two(*calls: str, extra: str = "") -> str:
    """A scenario of two servers with equal tools."""
    written = [
        f"{{tool: left.get, id: call_{number}, arguments: {call}{extra}}}"
        for number, call in enumerate(calls, 1)
    ]
    return TWO.replace("CALLS", f"[{', '.join(written)}]")


class Chat(Agent):
    """A right agent, whose requests and answers subclasses write for other APIs."""

    server = "weather"
    servers = ("weather",)
    streams = False
    headers: dict[str, str] = {}  # noqa: RUF012 - of all

    def connect(self) -> None:
        self.listed = []
        for server in self.servers:
            for tool in self.send("tools/list", server=server).json()["result"]["tools"]:
                self.listed.append({**tool, "name": f"mcp__{server}__{tool['name']}"})

    def offered(self) -> list[tuple[str, Any]]:
        return [(tool["name"], tool["inputSchema"]) for tool in self.listed]

    def meta(self, call: Any) -> Any:
        return None

    def arguments(self, call: Any) -> Any:
        return json.loads(call["function"]["arguments"])

    def result(self, call: Any) -> Any:
        """The result of a call, from the server that its name says."""
        _, server, tool = call["function"]["name"].split("__")
        params = {"name": tool, "arguments": self.arguments(call)}
        if self.meta(call):
            params["_meta"] = self.meta(call)
        answer = self.send("tools/call", params, server=server)
        for _ in range(2):
            if answer.status_code >= 400:
                answer = self.send("tools/call", params, server=server)
        events = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
        return json.loads(events[-1] if events else answer.text).get("result") or {
            "content": [{"type": "text", "text": "error"}], "isError": True}  # fmt: skip

    def execute(self, call: Any) -> str:
        return self.text(self.result(call))

    def post(self, body: Any, path: str = "") -> Any:
        answer = self.served.http.post(path or self.path, json=body, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return answer

    def run(self, user: str = "trip") -> None:
        self.connect()
        self.begin(user)
        while calls := self.step():
            self.add(calls, self.results(calls))

    def begin(self, user: str) -> None:
        self.history = [{"role": "user", "content": user}]

    def step(self) -> list[Any]:
        """The calls of the next answer."""
        message = self.ask(self.history)
        calls = message.get("tool_calls") or []
        self.history.append(
            {"role": "assistant", "content": message.get("content"), "tool_calls": calls}
            if calls
            else message
        )
        return calls

    def add(self, calls: list[Any], texts: list[str]) -> None:
        self.history += [
            {"role": "tool", "tool_call_id": call["id"], "content": text}
            for call, text in zip(calls, texts, strict=True)
        ]


class StreamingChat(Chat):
    def step(self) -> list[Any]:
        tools = [{"type": "function", "function": {"name": name, "parameters": schema}}
                 for name, schema in self.offered()]  # fmt: skip
        body = {"model": "m", "messages": self.history, "tools": tools, "stream": True}
        calls: dict[int, Any] = {}
        for line in self.post(body).text.splitlines():
            if not line.startswith("data: {"):
                continue
            for choice in json.loads(line[6:])["choices"]:
                for part in choice["delta"].get("tool_calls") or ():
                    call = calls.setdefault(
                        part["index"],
                        {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
                    )
                    call["id"] += part.get("id") or ""
                    for key in ("name", "arguments"):
                        call["function"][key] += part["function"].get(key) or ""
        made = list(calls.values())
        if made:
            self.history.append({"role": "assistant", "content": None, "tool_calls": made})
        return made


class Responses(Chat):
    path = "/v1/responses"

    def step(self) -> list[Any]:
        tools = [{"type": "function", "name": name, "parameters": schema}
                 for name, schema in self.offered()]  # fmt: skip
        body = {"model": "m", "input": self.history, "tools": tools}
        output = self.post(body).json()["output"]
        self.history += output
        return [
            {"id": item["call_id"],
             "function": {"name": item["name"], "arguments": item["arguments"]}}
            for item in output if item["type"] == "function_call"
        ]  # fmt: skip

    def add(self, calls: list[Any], texts: list[str]) -> None:
        self.history += [
            {"type": "function_call_output", "call_id": call["id"], "output": text}
            for call, text in zip(calls, texts, strict=True)
        ]


class Stored(Responses):
    """The service stores the turns, and the client sends only what is new."""

    before: Any = None

    def step(self) -> list[Any]:
        tools = [{"type": "function", "name": name, "parameters": schema}
                 for name, schema in self.offered()]  # fmt: skip
        body = {"model": "m", "input": self.history, "tools": tools}
        answer = self.post(body | ({"previous_response_id": self.before} if self.before else {}))
        self.before, self.history = answer.json()["id"], []
        return [
            {"id": item["call_id"],
             "function": {"name": item["name"], "arguments": item["arguments"]}}
            for item in answer.json()["output"] if item["type"] == "function_call"
        ]  # fmt: skip


class Anthropic(Chat):
    path = "/v1/messages"
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}  # noqa: RUF012 - of all
    failed: frozenset[str] = frozenset()

    def meta(self, call: Any) -> Any:
        return {"claudecode/toolUseId": call["id"]}

    def execute(self, call: Any) -> str:
        result = self.result(call)
        if result.get("isError"):
            self.failed |= {call["id"]}
        return self.text(result)

    def step(self) -> list[Any]:
        tools = [{"name": name, "input_schema": schema} for name, schema in self.offered()]
        body = {"model": "m", "max_tokens": 99, "messages": self.history, "tools": tools}
        content = self.post(body).json()["content"]
        self.history.append({"role": "assistant", "content": content})
        return [
            {"id": block["id"],
             "function": {"name": block["name"], "arguments": json.dumps(block["input"])}}
            for block in content if block["type"] == "tool_use"
        ]  # fmt: skip

    def add(self, calls: list[Any], texts: list[str]) -> None:
        self.history.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call["id"], "content": text,
             "is_error": call["id"] in self.failed}
            for call, text in zip(calls, texts, strict=True)
        ]})  # fmt: skip


class Gemini(Chat):
    path = "/v1beta/models/m:generateContent"
    headers = {"x-goog-api-key": "k"}  # noqa: RUF012 - of all

    def begin(self, user: str) -> None:
        self.history = [{"role": "user", "parts": [{"text": user}]}]

    def step(self) -> list[Any]:
        tools = [{"name": name, "parametersJsonSchema": schema} for name, schema in self.offered()]
        body = {"contents": self.history, "tools": [{"functionDeclarations": tools}]}
        content = self.post(body).json()["candidates"][0]["content"]
        self.history.append(content)
        return [
            {"id": part["functionCall"].get("id"),
             "function": {"name": part["functionCall"]["name"],
                          "arguments": json.dumps(part["functionCall"].get("args", {}))}}
            for part in content["parts"] if "functionCall" in part
        ]  # fmt: skip

    def add(self, calls: list[Any], texts: list[str]) -> None:
        parts = []
        for call, text in zip(calls, texts, strict=True):
            shown = {"name": call["function"]["name"], "response": {"output": text}}
            if call["id"]:
                shown["id"] = call["id"]
            parts.append({"functionResponse": shown})
        self.history.append({"role": "user", "parts": parts})


class Blocks(Anthropic):
    """A result is a list of blocks."""

    def add(self, calls: list[Any], texts: list[Any]) -> None:
        super().add(calls, [[{"type": "text", "text": text}] for text in texts])


class Structure(Gemini):
    """The response is the structured content itself, or else an object with the text."""

    def text(self, result: Any) -> Any:
        text = Gemini.text(self, result)
        return result.get("structuredContent") or {"error" if "isError" in result else "ok": text}

    def add(self, calls: list[Any], texts: list[Any]) -> None:
        super().add(calls, texts)
        for part in self.history[-1]["parts"]:
            shown = part["functionResponse"]
            if isinstance(shown["response"]["output"], dict):
                shown["response"] = shown["response"]["output"]


KINDS = (Chat, StreamingChat, Responses, Stored, Anthropic, Blocks, Gemini, Structure)
APIS = {kind.__name__: kind for kind in KINDS}


def play(served: Any, kind: Any = Chat, user: str = "trip", **parts: Any) -> Any:
    type("Planted", (kind,), parts)(served).run(user)
    return verdict(served)


def sends(change):
    """An agent that changes arguments."""
    return {"arguments": lambda self, call: change(Chat.arguments(self, call))}


def hands_on(change):
    """An agent that changes results."""
    return {"text": lambda self, result: change(Agent.text(self, result))}


LEFT = {"servers": ("left", "right")}


def nfd(text):
    return unicodedata.normalize("NFD", text)


# Mistakes


def named_otherwise(self, call):
    return {"claudecode/toolUseId": {"call_1": "call_2", "call_2": "call_1"}[call["id"]]}


def named_by_nothing(self, call):
    return {"claudecode/toolUseId": "toolu_of_another_turn"}


def remembers(self, call):
    known = self.__dict__.setdefault("known", {})
    key = call["function"]["arguments"]
    if key not in known:
        known[key] = Chat.execute(self, call)
    return known[key]


def fetches_before(self):
    Chat.connect(self)
    params = {"name": "get", "arguments": {"city": "Oslo"}}
    self.fetched = self.text(self.send("tools/call", params).json()["result"])


def runs_one_of(self, calls):
    return [self.execute(calls[0]), *["Skipped." for _ in calls[1:]]]


def repeats_failed(self, call):
    Chat.execute(self, call)
    return Chat.execute(self, call)


def to_the_other(self, call):
    function = {**call["function"], "name": call["function"]["name"].replace("left", "right")}
    Chat.execute(self, {**call, "function": function})
    return "From the left"


def as_text(self, call):
    return call["function"]["arguments"]


def first_failure(self, call):
    Chat.execute(self, call)
    return "HTTP 503"


def other_session(self, call):
    self.served.http.post(
        "/s/other/mcp/weather",
        json={
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "get", "arguments": {"city": "Oslo"}},
        },
    )
    return "Rain all day"


REACHED = {
    "ids of parallel calls exchanged": (
        scenario(["Oslo", "Rome"]), Anthropic, {"meta": named_otherwise}),
    "the id of another call": (scenario(["Oslo"]), Anthropic, {"meta": named_by_nothing}),
    "other arguments under the right id": (
        scenario(["Oslo"]), Anthropic, sends(lambda a: {**a, "unit": "K"})),
    "a remembered result": (scenario(["Oslo"], ["Oslo"]), Chat, {"execute": remembers}),
    "fetched before it was asked": (
        scenario(["Oslo"]), Chat,
        {"connect": fetches_before, "execute": lambda self, call: self.fetched}),
    "one of two": (scenario(["Oslo", "Rome"]), Responses, {"results": runs_one_of}),
    "a failed call made again": (scenario(["Bern"]), Gemini, {"execute": repeats_failed}),
    "the other server with this tool": (two("{city: x}"), Chat, {**LEFT, "execute": to_the_other}),
    "a number as a text": (two("{n: 1}"), Chat, {**LEFT, **sends(lambda a: {"n": "1"})}),
    "a number as true": (two("{n: 1}"), Chat, {**LEFT, **sends(lambda a: {"n": True})}),
    "a rounded number": (
        two("{n: 12345678901234567}"), Chat, {**LEFT, **sends(lambda a: {"n": 12345678901234568})}),
    "a text in another normal form": (
        two("{city: Zürich}"), Chat, {**LEFT, **sends(lambda a: {"city": nfd(a["city"])})}),
    "a trimmed text": (
        two("{city: ' x '}"), Chat, {**LEFT, **sends(lambda a: {"city": a["city"].strip()})}),
    "an empty text more": (scenario(["Oslo"]), Chat, sends(lambda a: {**a, "unit": ""})),
    "an inner null dropped": (two("{n: {a: null}}"), Chat, {**LEFT, **sends(lambda a: {"n": {}})}),
    "a list in another order": (
        two("{n: [1, 2]}"), Chat, {**LEFT, **sends(lambda a: {"n": [2, 1]})}),
    "arguments as JSON in a text": (scenario(["Oslo"]), StreamingChat, {"arguments": as_text}),
    "another session": (scenario(["Oslo"]), Chat, {"execute": other_session}),
    "no arguments after all": (scenario(["Oslo"]), StreamingChat, sends(lambda a: {})),
    "a refused call": (scenario(["Oslo"], extra=", refused: true"), Chat, {}),
}  # fmt: skip

SWAP = {"results": lambda self, calls: [self.execute(call) for call in calls][::-1]}
RETURNED = {
    "swapped over Responses": (scenario(["Oslo", "Rome"]), Responses, SWAP),
    "swapped over Anthropic": (scenario(["Oslo", "Rome"]), Anthropic, SWAP),
    "swapped over Gemini": (scenario(["Oslo", "Rome"]), Gemini, SWAP),
    "swapped answers of equal calls": (
        two("{city: two}", "{city: two}"), Anthropic, {**LEFT, **SWAP}),
    "cut in the middle": (
        scenario(["Oslo"]), Responses, hands_on(lambda text: text[:5] + "..." + text[-3:])),
    "escaped for a page": (
        two("{city: html}"), Chat,
        {**LEFT, **hands_on(lambda t: t.replace("&", "&amp;").replace("<", "&lt;"))}),
    "another normal form": (two("{city: Zürich}"), Gemini, {**LEFT, **hands_on(nfd)}),
    "joined lines": (
        two("{city: lines}"), Chat, {**LEFT, **hands_on(lambda t: t.replace("\n", " "))}),
    "the failure before the success": (scenario(["Slow"]), Chat, {"execute": first_failure}),
    "a number of the structure as true": (
        two("{city: flag}"), Chat, {**LEFT, **hands_on(lambda t: '{"on": true, "at": [2]}')}),
    "a text of the structure": (
        two("{city: flag}"), Chat, {**LEFT, **hands_on(lambda t: '{"on": "1", "at": [2]}')}),
    "the answer of a try is lost": (
        two("{city: busy}"), Responses, {**LEFT, **hands_on(lambda t: "ok")}),
    "swapped where the service stores the turn": (scenario(["Oslo", "Rome"]), Stored, SWAP),
}  # fmt: skip


@pytest.mark.parametrize("name", REACHED)
def test_further_calls_that_do_not_reach_their_tool_are_found(serve, name):
    """Each planted mistake breaks `call-reached-tool`."""
    text, kind, parts = REACHED[name]
    found = play(serve(text), kind, **parts)
    assert "call-reached-tool" in found["violations"], found["found"]


@pytest.mark.parametrize("name", RETURNED)
def test_further_results_that_do_not_come_back_are_found(serve, name):
    """Each planted mistake breaks `result-returned`, and no call is accused."""
    text, kind, parts = RETURNED[name]
    found = play(serve(text), kind, **parts)
    assert found["violations"] == {"result-returned"}, found["found"]


# Right agents


def side_by_side(self, calls):
    found: dict[int, str] = {}

    def work(place, call):
        found[place] = self.execute(call)

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[place] for place in range(len(calls))]


def lists_each_time(self):
    Chat.connect(self)
    return Chat.offered(self)


def notes_between(self, call):
    self.send("notifications/progress", {"progressToken": 1, "progress": 1})
    return Chat.execute(self, call)


def with_nulls(arguments):
    return {**arguments, "unit": None}


ALL = scenario(["Oslo", "Rome"], ["Bern"], ["Kiel"], ["Slow", "Gone"], ["Oslo", "Oslo"])
RIGHT = {
    "plain": {},
    "in another order": {
        "results": lambda self, calls: [self.execute(call) for call in calls[::-1]][::-1]},
    "at the same time": {"results": side_by_side},
    "lists before each request": {"offered": lists_each_time},
    "null for what is missing": sends(with_nulls),
    "JSON in JSON": hands_on(lambda t: json.dumps({"r": json.dumps({"t": t})})),
    "a notice around it": hands_on("The tool returned:\n\n---\n{}\n---\nEnd.".format),
    "notifications between": {"execute": notes_between},
    "its own tool beside": {
        "offered": lambda self: [*Chat.offered(self), (
            "get", {"type": "object", "properties": {"path": {"type": "string"}}})]},
}  # fmt: skip
RIGHT_TWO = {
    "members in another order": (
        "{n: 1, city: a}", sends(lambda a: dict(reversed(a.items())))),
    "a whole number as 1.0": ("{n: 1}", sends(lambda a: {"n": 1.0})),
    "the structure in another order": (
        "{city: flag}", hands_on(lambda t: '{"at": [2.0], "on": 1}')),
    "lines indented": ("{city: lines}", hands_on(lambda t: json.dumps([t]))),
    "two servers": ("{city: Zürich}", {}),
    "a failed answer of a try": ("{city: busy}", {}),
}  # fmt: skip


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("name", RIGHT)
def test_further_right_agents_are_not_accused(serve, name, api):
    """Over each API, streamed and not, with the history in the request and at the service."""
    found = play(serve(ALL), APIS[api], **RIGHT[name])
    assert found["found"]["good"], found["found"]


def changes_types(self):
    listed = Chat.offered(self)
    (name, schema), *others = listed
    kinds = schema["properties"] | {"city": {"type": "integer"}}
    return [(name, {**schema, "properties": kinds}), *others]


def in_other_words(self):
    """The schemas as some clients write them for their API."""
    return [
        (name, {**schema, "title": name, "additionalProperties": False, "properties": {
            key: {**own, "type": ["string", "null"], "description": "A text."}
            for key, own in schema["properties"].items()}})
        for name, schema in Chat.offered(self)
    ]  # fmt: skip


def test_a_property_of_another_type_is_a_remark(serve):
    """What clients change on purpose is none."""
    text = scenario(["Oslo"])
    found = play(serve(text), offered=changes_types)
    assert "schema-changed" in found["remarks"], found["found"]
    found = play(serve(text), offered=in_other_words)
    assert not found["remarks"] | found["violations"], found["found"]


def test_a_resource_that_does_not_come_back_is_a_remark(serve):
    """Its text, as clients send it in several forms."""
    text = TWO.replace("CALLS", "{tool: left.get, id: call_1, arguments: {city: x}}").replace(
        "{text: From the left}", "{resource: {uri: docs://a, text: A whole page}}"
    )
    assert play(serve(text), **LEFT, **hands_on(lambda t: "see docs"))["remarks"] == {
        "media-left-out"
    }
    assert not play(serve(text), **LEFT, **hands_on(lambda t: "A whole page"))["remarks"]


@pytest.mark.parametrize("name", RIGHT_TWO)
def test_right_agents_of_two_servers_are_not_accused(serve, name):
    """Both have a tool of the same name; arguments and results are equal as JSON."""
    call, parts = RIGHT_TWO[name]
    found = play(serve(two(call)), **LEFT, **parts)
    assert found["found"]["good"], found["found"]


@pytest.mark.parametrize("api", APIS)
def test_conversations_at_once_in_one_session_are_not_accused(serve, api):
    """With the same question, and each step of all before the next step."""
    served = serve(scenario(["Oslo", "Rome"], ["Oslo"]))
    agents = [APIS[api](served) for _ in range(3)]
    for agent in agents:
        agent.connect()
        agent.begin("trip")
    waiting = list(agents)
    while waiting:
        steps = [(agent, agent.step()) for agent in waiting]
        done = [(agent, calls, agent.results(calls)) for agent, calls in reversed(steps)]
        for agent, calls, texts in done:
            agent.add(calls, texts)
        waiting = [agent for agent, calls in steps if calls]
    assert verdict(served)["found"]["good"], verdict(served)


@pytest.mark.parametrize("api", APIS)
def test_calls_with_equal_ids_in_two_conversations_are_told_apart(serve, api):
    """The scenario gives both the same ids; a client may name them."""
    served = serve(scenario(["Oslo"]))
    agents = [APIS[api](served) for _ in range(2)]
    for number, agent in enumerate(agents):
        agent.connect()
        agent.begin(f"trip {number}")
    steps = [agent.step() for agent in agents]
    for agent, calls in reversed([*zip(agents, steps, strict=True)]):
        texts = agent.results(calls)
        agent.add(calls, texts)
    for agent in agents:
        agent.step()
    assert verdict(served)["found"]["good"], verdict(served)


def test_the_same_question_twice_and_a_compacted_history_are_right(serve):
    """The second conversation begins with a summary of the first."""
    served = serve(scenario(["Oslo"], ["Rome"]))
    agent = Chat(served)
    agent.run()
    agent.run()
    agent.begin("trip")
    calls = agent.step()
    agent.add(calls, agent.results(calls))
    agent.step()
    agent.begin("trip, of which Oslo is known: Rain all day")  # and the call of Rome is dropped
    while calls := agent.step():
        agent.add(calls, agent.results(calls))
    found = verdict(served)
    assert found["found"]["good"], found["found"]
