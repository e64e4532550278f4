"""Operations of MCP servers in the live page, and the way of the calls that they executed."""

from tests.checking.conversations.mcp.agents import Agent, scenario
from tests.serve.ui.reading import page
from tests.serve.ui.test_stream import answer_of


def test_each_request_on_the_way_of_a_call_has_it(serve):
    """The one with the call, the tries of the operation, and the one with the result."""
    served = serve(scenario(["Slow"]))
    Agent(served).run()
    ways = [answer_of(served, number)["calls"] for number in range(1, 7)]
    assert ways[:2] == [[], []]
    ((way,), *others) = ways[2:]
    assert all(other == [way] for other in others)
    operations = way.pop("operations")
    assert way == {"exchange": 3, "id": "call_1", "tool": "weather.get", "result": 6}
    assert [one["number"] for one in operations] == [4, 5]
    assert all(one["duration"] > 0 for one in operations)


def test_operations_are_rows_as_others(serve):
    """With what the server was asked."""
    served = serve(scenario(["Oslo"]))
    Agent(served).run()
    with page(served.url) as events:
        rows = events.until("requests")
    shown = [(row["api"], row["text"]) for row in rows]
    assert shown == [
        ("mcp", "initialize weather"),
        ("mcp", "tools/list weather"),
        ("chat", "trip"),
        ("mcp", "tools/call weather.get"),
        ("chat", "trip"),
    ]
