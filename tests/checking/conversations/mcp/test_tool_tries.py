"""The rules about tries, over operations of MCP servers: where they are required."""

import pytest

from tests.checking.conversations.mcp.agents import Agent, scenario

RULES = ("retry-bounded", "retry-same")


def failing(attempts, *turns):
    """A scenario whose call for the city Slow fails so many times."""
    text = scenario(*turns)
    return text.replace("attempts: [{http: 503}]", f"attempts: [{', '.join(attempts)}]")


def broken(served, *required):
    query = {"require": ",".join(required)} if required else {}
    found = served.http.get("/_mockllm/verify", params=query).json()
    return {one["invariant"] for one in found["violations"] if one["invariant"] in RULES}


def tries(count):
    def call(self, tool, arguments, meta=None):
        for _ in range(count - 2):
            self.send("tools/call", {"name": tool, "arguments": arguments})
        return Agent.call(self, tool, arguments, meta)

    return type("Trying", (Agent,), {"call": call})


@pytest.mark.parametrize("failure", ["{http: 503}", "{fault: session-lost}"])
def test_tries_have_a_bound(serve, failure):
    """Ten are right, eleven are not; it counts only where it is required."""
    for count, found in ((10, set()), (11, {"retry-bounded"})):
        served = serve(failing([failure] * (count - 1), ["Slow"]))
        tries(count)(served).run()
        assert broken(served, *RULES) == found, count
        assert broken(served) == set()


def test_each_conversation_has_tries_of_its_own(serve):
    """One after the other, and side by side."""
    served = serve(failing(["{http: 503}"] * 12, ["Slow"]))
    for _ in range(2):
        agent = Agent(served)
        agent.connect()
        agent.ask([{"role": "user", "content": "trip"}])
    for _ in range(12):
        agent.send("tools/call", {"name": "get", "arguments": {"city": "Slow"}})
    assert broken(served, *RULES) == set()


def test_a_try_with_other_arguments_is_found(serve):
    """After a failure; a right retry, and a call of another turn, are none."""

    def altered(self, call):
        self.send("tools/call", {"name": "get", "arguments": {"city": "Slow"}})
        return self.text(Agent.call(self, "get", {"city": "Oslo"}))

    served = serve(scenario(["Slow"]))
    type("Altering", (Agent,), {"execute": altered})(served).run()
    assert broken(served, *RULES) == {"retry-same"}
    assert broken(served) == set()

    served = serve(scenario(["Slow"], ["Oslo", "Gone"]))
    Agent(served).run()
    assert broken(served, *RULES) == set()


def test_a_wrong_first_call_is_no_retry(serve):
    """It is judged by `call-reached-tool`."""
    served = serve(scenario(["Rome"]))
    execute = {"execute": lambda self, call: self.text(self.call("get", {"city": "Oslo"}))}
    type("Wrong", (Agent,), execute)(served).run()
    assert broken(served, *RULES) == set()


def test_equal_messages_of_many_clients_are_no_tries(serve):
    """Each client numbers its requests from 1."""
    served = serve(scenario(["Oslo"]))
    for _ in range(12):
        Agent(served).connect()
    assert broken(served, *RULES) == set()
