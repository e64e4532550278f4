"""Which call of the model an operation executed: in the journal, and in the verdict."""

from contextlib import suppress

import httpx

from mockllm import loads
from mockllm.checking.conversations.judge import calls_of, verify
from tests.checking.conversations.mcp.agents import Agent, scenario


def told(served):
    """By the numbers of operations, the request and the id of the call, as the journal has them."""
    entries = served.http.get("/_mockllm/journal").json()["exchanges"]
    calls = ((entry["number"], entry.get("mcp", {}).get("call")) for entry in entries)
    return {number: (call["exchange"], call["id"]) for number, call in calls if call}


def ways(served):
    """The same as the verdict has it, with the results."""
    found = served.http.get("/_mockllm/verify").json().get("calls", [])
    return [(one["exchange"], one["id"], one["operations"], one["result"]) for one in found]


def run(serve, text, parts=None):
    served = serve(text)
    type("Other", (Agent,), parts or {})(served).run()
    return served


def test_an_operation_names_its_call(serve):
    """And the verdict has the way from the call over the operation to the result."""
    served = run(serve, scenario(["Oslo", "Rome"], ["Oslo"]))
    # 1 and 2 are the handshake; 3, 6 and 8 ask the model.
    assert told(served) == {4: (3, "call_1"), 5: (3, "call_2"), 7: (6, "call_3")}
    assert ways(served) == [(3, "call_1", [4], 6), (3, "call_2", [5], 6), (6, "call_3", [7], 8)]
    found = served.http.get("/_mockllm/verify").json()["calls"]
    assert {one["tool"] for one in found} == {"weather.get"}


def test_tries_name_one_call(serve):
    """After an HTTP error, and after a lost session."""
    served = run(serve, scenario(["Slow", "Gone"]))
    assert ways(served) == [(3, "call_1", [4, 5], 8), (3, "call_2", [6, 7], 8)]
    assert told(served).keys() == {4, 5, 6, 7}


def test_equal_parallel_calls_are_told_in_their_order(serve):
    served = run(serve, scenario(["Oslo", "Oslo"]))
    assert told(served) == {4: (3, "call_1"), 5: (3, "call_2")}


def test_an_id_tells_in_any_order(serve):
    """Where the client sends the id of the call to the server."""
    served = serve(scenario(["Oslo", "Oslo"]))
    agent = Agent(served)
    agent.connect()
    agent.ask([{"role": "user", "content": "trip"}])
    for id in ("call_2", "call_1"):
        agent.call("get", {"city": "Oslo"}, {"claudecode/toolUseId": id})
    assert told(served) == {4: (3, "call_2"), 5: (3, "call_1")}


def test_one_conversation_after_another_is_told(serve):
    """Though both have the same history."""
    served = run(serve, scenario(["Oslo"]))
    Agent(served).run()
    assert [(call, operation, result) for call, _, (operation,), result in ways(served)] == [
        (3, 4, 5),
        (8, 9, 10),
    ]


def test_changed_arguments_and_operations_that_nobody_asked_for_name_no_call(serve):
    changed = {"execute": lambda self, call: self.text(self.call("get", {"city": "Rome"}))}
    served = run(serve, scenario(["Oslo"]), changed)
    assert (told(served), ways(served)) == ({}, [])

    served = serve(scenario(["Oslo"]))
    Agent(served).call("get", {"city": "Oslo"})
    assert (told(served), ways(served)) == ({}, [])


def test_equal_calls_of_conversations_side_by_side_are_not_told(serve):
    """Of equal histories, and of others."""
    for second in ("trip", "another trip"):
        served = serve(scenario(["Oslo"]))
        agents = [Agent(served), Agent(served)]
        for agent, user in zip(agents, ("trip", second), strict=True):
            agent.connect()
            agent.ask([{"role": "user", "content": user}])
        agents[1].call("get", {"city": "Oslo"})
        assert (told(served), ways(served)) == ({}, []), second
        named = {"claudecode/toolUseId": "call_1"}  # a scenario gives both the same id
        agents[1].call("get", {"city": "Oslo"}, named)
        assert told(served) == {}, second


def test_a_stream_that_was_asked_again_is_told(serve):
    """The operation belongs to the answer that came whole."""
    text = scenario(["Oslo"]).replace(
        "reply: [{tool", "attempts: [{fault: {cut: {after: 1 events}}}]\n    reply: [{tool", 1
    )
    served = serve(text)
    agent = Agent(served)
    agent.connect()
    message = {"role": "user", "content": "trip"}
    tools = [{"type": "function", "function": {"name": n, "parameters": s}}
             for n, s in agent.offered()]  # fmt: skip
    body = {"model": "m", "messages": [message], "tools": tools, "stream": True}
    for _ in range(2):
        with suppress(httpx.HTTPError):  # the first one is cut
            served.http.post(agent.path, json=body)
    agent.call("get", {"city": "Oslo"})
    assert told(served) == {5: (4, "call_1")}


def test_missing_requests_leave_nothing_told(serve):
    """One of them may have had the call."""
    text = scenario(["Oslo"])
    served = run(serve, text)
    session = served.server.sessions.get("default")
    scenarios = {one.name: one for one in loads(text)}
    assert calls_of(session, scenarios) == verify(session, scenarios).calls != ()
    session.gaps = ("a process ended",)
    assert calls_of(session, scenarios) == verify(session, scenarios).calls == ()
