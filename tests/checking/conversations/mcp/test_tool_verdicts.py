"""The verdicts over model and tools: planted mistakes are found, right agents are not accused."""

import json
import socket
from types import SimpleNamespace

import pytest

from mockllm import loads
from mockllm.checking.conversations.judge import verify
from tests.checking.conversations.mcp.agents import Agent, AnthropicAgent, scenario

PARALLEL = scenario(["Oslo", "Rome"], ["Oslo"])


def verdict(served):
    """The invariants that were broken, and the remarks, by name."""
    found = served.http.get("/_mockllm/verify").json()
    return {
        kind: {one["invariant"] for one in found[kind]} for kind in ("violations", "remarks")
    } | {"found": found}


def arguments(call):
    return json.loads(call["function"]["arguments"])


# Wrong agents


def calls_with(**changed):
    def execute(self, call):
        given = {**arguments(call), **changed}
        return self.text(self.call("get", {k: v for k, v in given.items() if v != "-"}))

    return {"execute": execute}


def answers(text):
    return {"execute": lambda self, call: (Agent.execute(self, call), text)[1]}


def invents(text):
    return {"execute": lambda self, call: text}


def offers(change):
    return {"offered": lambda self: change(Agent.offered(self))}


def twice(self, call):
    self.call("get", arguments(call))
    return Agent.execute(self, call)


def swapped_arguments(self, calls):
    cities = [arguments(call) for call in calls][::-1]
    return [self.text(self.call("get", city)) for city in cities]


def once_more_later(self, calls):
    texts = Agent.results(self, calls)
    if len(calls) == 1:
        self.call("get", {"city": "Rome"})
    return texts


def first_for_all(self, calls):
    return [Agent.results(self, calls)[0]] * len(calls)


def earlier_result(self, calls):
    texts = Agent.results(self, calls)
    texts, self.before = [getattr(self, "before", texts[0])] * len(texts), texts[-1]
    return texts


def other_tool(self, call):
    return self.text(self.call("put", arguments(call)))


def other_server(self, call):
    params = {"name": "get", "arguments": arguments(call)}
    self.send("tools/call", params, server="elsewhere")
    return "Rain all day"


def one_call_for_two(self, calls):
    text = Agent.execute(self, calls[0])
    return [text] * len(calls)


def begins(self, call):
    """The connection on which a call waits for its answer."""
    params = {"name": "get", "arguments": arguments(call)}
    body = json.dumps({"jsonrpc": "2.0", "id": next(self.ids), "method": "tools/call"}
                      | {"params": params}).encode()  # fmt: skip
    host, port = self.served.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    head = f"POST /mcp/weather HTTP/1.1\r\nhost: h\r\ncontent-length: {len(body)}\r\n"
    connection.sendall(f"{head}content-type: application/json\r\n\r\n".encode() + body)
    while not any(entry.get("open") for entry in self.served.journal()):
        pass
    return connection


def leaves_and_answers(self, call):
    begins(self, call).close()
    return "Rain late"


def stops_waiting(self, call):
    self.waiting = begins(self, call)
    return "Timed out"


def altered_retry(self, call):
    self.send("tools/call", {"name": "get", "arguments": arguments(call)})
    return self.text(self.call("get", {"city": "Oslo"}))


def not_connected(self):
    self.listed = [{"name": "get", "inputSchema": {}}]


def schema(**properties):
    def change(tools):
        (name, own), *rest = tools
        return [(name, {**own, "properties": {**own["properties"], **properties}}), *rest]

    return offers(change)


def requires(names):
    return offers(lambda tools: [(name, {**own, "required": names}) for name, own in tools])


def with_tool(name):
    return offers(lambda tools: [*tools, (name, {})])


REACHED = {
    "another argument": (PARALLEL, calls_with(city="Bonn")),
    "an argument in other letters": (PARALLEL, calls_with(city="oslo")),
    "an argument more": (PARALLEL, calls_with(unit="K")),
    "an argument less": (PARALLEL, calls_with(city="-")),
    "arguments as a text": (PARALLEL, calls_with(city=["Oslo"])),
    "a made-up result": (PARALLEL, invents("Rain all day")),
    "an empty result and no call": (PARALLEL, invents("")),
    "no call and the word error": (PARALLEL, invents("error: tool not available")),
    "the tool called twice": (PARALLEL, {"execute": twice}),
    "called again a turn later": (PARALLEL, {"results": once_more_later}),
    "one call for two equal ones": (scenario(["Oslo", "Oslo"]), {"results": one_call_for_two}),
    "another tool": (PARALLEL, {"execute": other_tool}),
    "another server": (PARALLEL, {"execute": other_server}),
    "a changed retry": (scenario(["Slow"]), {"execute": altered_retry}),
}  # fmt: skip
RETURNED = {
    "swapped results": (
        PARALLEL, {"results": lambda self, calls: Agent.results(self, calls)[::-1]},
    ),
    "arguments of the parallel call": (
        scenario(["Oslo", "Rome", "Rome"]), {"results": swapped_arguments},
    ),
    "the first result for all": (PARALLEL, {"results": first_for_all}),
    "the result of an earlier turn": (scenario(["Oslo"], ["Rome"]), {"results": earlier_result}),
    "a summary": (PARALLEL, answers("It rains.")),
    "the word ok": (PARALLEL, answers("ok")),
    "nothing": (PARALLEL, answers("")),
    "half of the text": (PARALLEL, answers("Rain al")),
    "other letters": (PARALLEL, answers("RAIN ALL DAY")),
    "the first of two texts": (scenario(["Rome"]), answers("Sun at noon")),
    "the second of two texts": (scenario(["Rome"]), answers("Wind at night")),
    "an error without its reason": (scenario(["Bern"]), answers("The tool failed.")),
    "an error as success": (scenario(["Bern"]), answers("{}")),
    "a changed number": (scenario(["Kiel"]), answers('{"temp": 5, "sky": ["fog"]}')),
    "a part of the structure": (scenario(["Kiel"]), answers('{"temp": 4}')),
    "the answer to a cancelled call": (scenario(["Late"]), {"execute": leaves_and_answers}),
}  # fmt: skip
OFFERED = {
    "no connection": (PARALLEL, {"connect": not_connected, **invents("x")}),
    "a tool that is not there": (PARALLEL, with_tool("mcp__weather__old")),
    "an invented parameter": (PARALLEL, schema(country={"type": "string"})),
    "an invented required name": (PARALLEL, requires(["city", "country"])),
}
REMARKED = {
    "a long result is cut": ("result-shortened", scenario(["Long"]), answers("long long")),
    "an image is left out": ("media-left-out", scenario(["Map"]), {}),
    "a prefetch": (
        "call-unasked", PARALLEL,
        {"connect": lambda self: (Agent.connect(self), self.call("put", {"city": "A"}))},
    ),
    "a filtered tool": ("tools-filtered", PARALLEL, offers(lambda tools: tools[:1])),
    "another schema": ("schema-changed", PARALLEL, requires([])),
}  # fmt: skip


def play(serve, text, parts, kind=Agent):
    served = serve(text)
    wrong = type("Wrong", (kind,), parts)
    wrong(served).run()
    return verdict(served)


@pytest.mark.parametrize("name", REACHED)
def test_calls_that_do_not_reach_their_tool_are_found(serve, name):
    """Each planted mistake breaks `call-reached-tool`."""
    found = play(serve, *REACHED[name])
    assert "call-reached-tool" in found["violations"], found["found"]


@pytest.mark.parametrize("name", RETURNED)
def test_results_that_do_not_come_back_are_found(serve, name):
    """Each planted mistake breaks `result-returned`, and no call is accused."""
    found = play(serve, *RETURNED[name])
    assert found["violations"] == {"result-returned"}, found["found"]


@pytest.mark.parametrize("name", OFFERED)
def test_wrong_offers_are_found(serve, name):
    """Each planted mistake breaks `tools-offered`."""
    found = play(serve, *OFFERED[name])
    assert "tools-offered" in found["violations"], found["found"]


@pytest.mark.parametrize("name", REMARKED)
def test_what_may_be_meant_is_a_remark(serve, name):
    """Good clients do it on purpose; it counts where it is required."""
    invariant, *rest = REMARKED[name]
    found = play(serve, *rest)
    assert invariant in found["remarks"], found["found"]
    assert not found["violations"], found["found"]


def test_a_server_that_is_listed_and_not_offered_is_found(serve):
    """The client goes on with tools of its own, and without those of the server."""
    text = scenario(["Oslo"]).replace("{tool: weather.get, id: call_1, arguments: {city: Oslo}}",
                                      "{tool: search, id: call_1}")  # fmt: skip
    text = text.replace("turns:", "mcp: {weather: [{tool: get, answer: {text: x}}]}\nturns:")
    own = {**offers(lambda tools: [("search", {})]), **invents("x")}
    assert play(serve, text, own)["violations"] == {"tools-offered"}


def test_a_changed_list_that_is_ignored_is_a_remark(serve):
    """The tool is offered on, although the list without it came."""

    def results(self, calls):
        texts = Agent.results(self, calls)
        self.send("tools/list")
        return texts

    found = play(serve, scenario(["Swap"]), {"results": results})
    assert "list-change-ignored" in found["remarks"], found["found"]
    assert not found["violations"]


def test_a_call_after_the_client_left_is_found(serve):
    """It closed the stream that made the call, and calls the tool nevertheless."""
    text = scenario(["Oslo"]).replace("city: Oslo}}]", "city: Oslo}}, {pause: 60s}, {text: x}]")
    served = serve(text, speed=1)
    agent = Agent(served)
    agent.connect()
    tools = [{"type": "function", "function": {"name": "get"}}]
    messages = [{"role": "user", "content": "trip"}]
    body = {"model": "m", "stream": True, "messages": messages, "tools": tools}
    with served.http.stream("POST", agent.path, json=body) as answer:
        next(line for line in answer.iter_lines() if "call_1" in line)
    while not any(entry["client_gone"] for entry in served.journal()):
        pass
    agent.call("get", {"city": "Oslo"})
    assert "call-reached-tool" in verdict(served)["violations"]


def test_a_failure_without_its_mark_is_a_remark(serve):
    """Over an API that has one."""
    text = scenario(["Bern"])
    unmarked = play(serve, text, {"marks": False}, AnthropicAgent)
    assert unmarked["remarks"] == {"failure-unmarked"}
    assert not play(serve, text, {}, AnthropicAgent)["remarks"]
    # The model sees the server's own mark in the whole result.
    whole = {"marks": False, "text": lambda self, result: json.dumps(result)}
    assert not play(serve, text, whole, AnthropicAgent)["remarks"]


def test_a_refusal_that_is_marked_is_a_remark(serve):
    """No operation, and a result that is a failure: the user or a rule may have refused."""

    def block(self, call):
        refused = {"type": "tool_result", "tool_use_id": call["id"], "content": "Refused."}
        return {**refused, "is_error": True}

    found = play(serve, scenario(["Oslo"]), {"block": block}, AnthropicAgent)
    assert found["remarks"] == {"call-not-made"}
    assert not found["violations"]


def test_a_call_that_is_made_twice_by_its_id_is_found(serve):
    """Claude Code and Codex name the call of the model."""

    def block(self, call):
        self.call("get", call["input"], {"claudecode/toolUseId": call["id"]})
        return AnthropicAgent.block(self, call)

    found = play(serve, scenario(["Oslo"]), {"block": block}, AnthropicAgent)
    assert found["violations"] == {"call-reached-tool"}


# Right agents


def texts_in(form):
    return {"text": lambda self, result: form(Agent.text(self, result))}


def structured(self, result):
    content = result.get("structuredContent")
    return Agent.text(self, result) if content is None else json.dumps(content)


def in_order_of_arrival(self, calls):
    done = {call["id"]: self.execute(call) for call in reversed(calls)}
    return [done[call["id"]] for call in calls]


def cancels_last(self):
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    note["params"] = {"requestId": next(self.ids) - 1}
    self.served.http.post("/mcp/weather", json=note)


def cancels(self, call):
    Agent.execute(self, call)
    cancels_last(self)
    return "The call was cancelled."


def cancels_what_it_has(self, call):
    text = Agent.execute(self, call)
    cancels_last(self)
    return text


def lists_again(self, call):
    text = Agent.execute(self, call)
    self.connect()
    return text


def waiting_tools(tools):
    waits = {"wait_for_previous": {"type": "boolean"}}
    added = [(name, own | {"properties": own["properties"] | waits}) for name, own in tools]
    return [*added, ("ask", {"type": "object", "properties": waits}), ("read_file", {})]


ALL = scenario(["Oslo", "Rome"], ["Bern"], ["Kiel"], ["Slow", "Gone"], ["Oslo"])
RIGHT = {
    "sequential": {},
    "parallel, in another order": {"results": in_order_of_arrival},
    "structured content in place of the text": {"text": structured},
    "a block before": texts_in("Wall time: 0.01 seconds\nOutput:\n{}".format),
    "wrapped": texts_in("<untrusted_context>\n{}\n</untrusted_context>".format),
    "as JSON in a text": {"text": lambda self, result: json.dumps(result)},
    "as a list of blocks": {"text": lambda self, result: json.dumps(result["content"])},
    "JSON in JSON": texts_in(lambda text: json.dumps({"output": json.dumps({"text": text})})),
    "trimmed": texts_in(str.strip),
    "null members dropped": calls_with(),
    "it lists the tools again": {"execute": lists_again},
    "a tool search": offers(lambda tools: [*tools[:1], ("ToolSearch", {})]),
    "more tools of its own": with_tool("read_file"),
    "each call cancelled when it is over": {"execute": cancels_what_it_has},
    "a parameter of its own": offers(waiting_tools),
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("offered", ["{}", "weather_{}", "mcp_weather_{}", "mcp__weather__{}"])
def test_right_agents_are_not_accused(serve, name, offered):
    """Sequential, parallel, equal, failing, tried again; by any name, in any wrapping."""
    served = serve(ALL)
    type("Right", (Agent,), RIGHT[name])(served, offered.format).run()
    found = verdict(served)
    assert found["found"]["good"], found["found"]
    assert not found["remarks"], found["found"]


def test_a_cancelled_call_may_have_an_error(serve):
    """And need not have its answer."""
    assert not play(serve, scenario(["Oslo"]), {"execute": cancels})["violations"]


def test_a_client_that_stopped_waiting_need_not_have_the_answer(serve):
    """Its timeout ends earlier than the call, and it tells nobody."""
    served = serve(scenario(["Soon"]))
    agent = type("Impatient", (Agent,), {"execute": stops_waiting})(served)
    agent.run()
    with agent.waiting as connection:
        assert b"Rain soon" in connection.recv(9999)
    assert not verdict(served)["violations"]


def test_equal_parallel_calls_need_as_many_operations(serve):
    """Their equal results may be exchanged."""
    found = play(serve, scenario(["Oslo", "Oslo"], ["Oslo"]), {})
    assert found["found"]["good"], found["found"]


def test_a_result_that_is_fetched_later_is_of_the_same_call(serve):
    """By the GET that resumes a stream; it is no call of its own."""
    found = play(serve, scenario(["Rest"], ["Oslo"]), {})
    assert found["found"]["good"], found["found"]
    assert not found["remarks"], found["found"]


def test_agents_side_by_side_are_not_accused(serve):
    """Equal conversations of two agents have the same histories."""
    served = serve(PARALLEL)
    agents = [Agent(served), Agent(served)]
    for agent in agents:
        agent.connect()
    for agent in agents:
        agent.run()
    assert verdict(served)["found"]["good"]


def test_a_call_that_the_user_refuses_need_not_be_made(serve):
    """Over an API without a mark of failure the scenario says so."""
    text = scenario(["Oslo"], extra=", refused: true")
    found = play(serve, text, invents("The user refused."))
    assert not found["violations"], found["found"]


def test_calls_without_an_end_are_not_judged(serve):
    """Nothing follows the last answer: the test may be over."""
    served = serve(scenario(["Oslo"]))
    agent = Agent(served)
    agent.connect()
    agent.ask([{"role": "user", "content": "trip"}])
    assert not verdict(served)["violations"]


def test_a_scenario_without_servers_judges_no_tools(serve):
    """Whatever the client does with its own."""
    text = "scenario: trip\nmatch: {user: trip}\nturns:\n  - reply: {tool: get, id: call_1}\n" + (
        "  - reply: {text: Done.}\n"
    )
    fake = SimpleNamespace(json=lambda: {"result": {"tools": [{"name": "get", "inputSchema": {}}]}})
    parts = {"send": lambda *_: fake, **invents("x"), "name": "{}".format}
    served = serve(text)
    type("Own", (Agent,), parts)(served, "{}".format).run()
    assert verdict(served)["found"]["good"]


def test_missing_requests_make_the_verdict_unknown(serve):
    """A journal that lost requests accuses nobody."""
    served = serve(PARALLEL)
    type("Wrong", (Agent,), invents("Rain"))(served).run()
    session = served.server.sessions.get("default")
    scenarios = {one.name: one for one in loads(PARALLEL)}
    assert verify(session, scenarios).verdict == "bad"
    session.gaps = ("a process ended",)
    assert verify(session, scenarios).verdict == "unknown"


def test_required_remarks_count(serve):
    """`--require` makes a remark a mistake."""
    served = serve(PARALLEL)
    wrong = type("Wrong", (Agent,), offers(lambda tools: tools[:1]))
    wrong(served).run()
    found = served.http.get("/_mockllm/verify", params={"require": "tools-filtered"}).json()
    assert {one["invariant"] for one in found["violations"]} == {"tools-filtered"}
