"""Whole conversations with openai-agents, which runs the tools in a loop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.clients.conversation import (
    APIS,
    MODEL,
    SCENARIOS,
    ending,
    opening,
    plays,
    run_tool,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def agents() -> Iterator[ModuleType]:
    """The package without tracing; imported on first use, since that takes seconds."""
    import agents

    agents.set_tracing_disabled(True)
    yield agents
    agents.set_tracing_disabled(False)


@pytest.fixture
def make_agent(agents, async_client):
    """Builds the agent for a scenario: a model over one API, and the scenario's tools."""
    models = {
        "chat": agents.OpenAIChatCompletionsModel,
        "responses": agents.OpenAIResponsesModel,
    }

    def tool(spec: Any) -> Any:
        async def invoke(context: Any, arguments: str) -> str:
            return run_tool(spec.name, json.loads(arguments))

        return agents.FunctionTool(spec.name, spec.description, dict(spec.parameters), invoke)

    def make(scenario: Any, api: str) -> Any:
        return agents.Agent(
            name="tester",
            instructions="Use the tools.",
            model=models[api](model=MODEL, openai_client=async_client),
            tools=[tool(spec) for spec in scenario.tools],
        )

    return make


both_scenarios = pytest.mark.parametrize("name", ["secret-numbers", "multi-hop"])
both_apis = pytest.mark.parametrize("api", APIS)


def calls(agents: ModuleType, items: list[Any]) -> list[tuple[str, Any]]:
    """The tool calls among the items of a run."""
    return [
        (item.raw_item.name, json.loads(item.raw_item.arguments))
        for item in items
        if isinstance(item, agents.ToolCallItem)
    ]


CALLS = {
    "secret-numbers": [
        ("get_secret_number", {"name": "alice"}),
        ("get_secret_number", {"name": "bob"}),
    ],
    "multi-hop": [
        ("find_flights", {"from": "OSL", "to": "FCO"}),
        ("book_flight", {"flight": "SK4711"}),
    ],
}


@both_scenarios
@both_apis
def test_run(agents, make_agent, loop, run, name, api):
    """The agent runs every tool, sends the results, and returns the text of the last turn."""
    scenario = SCENARIOS[name]
    agent = make_agent(scenario, api)
    result = loop.run(agents.Runner.run(agent, opening(scenario)))
    assert result.final_output == ending(scenario)
    assert calls(agents, result.new_items) == CALLS[name]
    run.expects_plays(plays(scenario, api))


@both_scenarios
@both_apis
def test_run_streamed(agents, make_agent, loop, run, name, api):
    """A streamed run has the same result, and its text deltas join to it."""
    scenario = SCENARIOS[name]
    agent = make_agent(scenario, api)

    async def follow() -> tuple[Any, str]:
        result = agents.Runner.run_streamed(agent, opening(scenario))
        text = ""
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                data = event.data
                text += data.delta if data.type == "response.output_text.delta" else ""
        return result, text

    result, text = loop.run(follow())
    assert result.final_output == text == ending(scenario)
    assert calls(agents, result.new_items) == CALLS[name]
    assert all(exchange.played.stream for exchange in run.exchanges)
    run.expects_plays(plays(scenario, api))


@pytest.mark.parametrize("stream", [False, True], ids=["body", "stream"])
@both_scenarios
def test_previous_response_id(agents, make_agent, loop, run, name, stream):
    """Each request after the first has only new items, and `previous_response_id`."""
    scenario = SCENARIOS[name]
    agent = make_agent(scenario, "responses")

    async def follow() -> Any:
        if not stream:
            return await agents.Runner.run(agent, opening(scenario), auto_previous_response_id=True)
        result = agents.Runner.run_streamed(
            agent, opening(scenario), auto_previous_response_id=True
        )
        async for _ in result.stream_events():
            pass
        return result

    result = loop.run(follow())
    assert result.final_output == ending(scenario)
    first, *others = [json.loads(exchange.body) for exchange in run.exchanges]
    assert "previous_response_id" not in first
    for body in others:
        assert body["previous_response_id"].startswith("resp_")
        assert {item["type"] for item in body["input"]} == {"function_call_output"}
    run.expects_plays(plays(scenario, "responses"))


@both_apis
def test_conversation_with_history(agents, make_agent, loop, run, api):
    """A conversation that goes on with another scenario is matched by its history."""
    one, other = SCENARIOS["secret-numbers"], SCENARIOS["two-questions"]
    agent = make_agent(one, api)
    result = loop.run(agents.Runner.run(agent, opening(one)))
    for text, answer in [
        (opening(other), "The capital of Norway is Oslo."),
        ("How many people?", "About 700,000 people live in Oslo."),
    ]:
        history = [*result.to_input_list(), {"role": "user", "content": text}]
        result = loop.run(agents.Runner.run(agent, history))
        assert result.final_output == answer
    run.expects_plays(plays(one, api) + plays(other, api))


@both_apis
def test_the_agent_limits_the_turns(agents, make_agent, loop, run, api):
    """A model that always calls tools reaches the agent's limit of turns."""
    agent = make_agent(SCENARIOS["endless-tools"], api)
    with pytest.raises(agents.MaxTurnsExceeded):
        loop.run(agents.Runner.run(agent, opening(SCENARIOS["endless-tools"]), max_turns=4))
    assert len(run.exchanges) == 4
