"""Whole conversations with pydantic-ai, which runs the tools in a loop."""

from __future__ import annotations

import json
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from tests.clients.conversation import SCENARIOS, ending, opening, plays, run_tool
from tests.clients.dialects import DIALECTS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pydantic_ai() -> ModuleType:
    """The package; imported on first use, since that takes seconds."""
    import pydantic_ai
    import pydantic_ai.models.anthropic
    import pydantic_ai.models.openai
    import pydantic_ai.providers.anthropic
    import pydantic_ai.providers.openai

    return pydantic_ai


@pytest.fixture
def make_agent(pydantic_ai, async_client, async_claude):
    """Builds the agent for a scenario: a model over one API, and the scenario's tools."""
    models, providers = pydantic_ai.models, pydantic_ai.providers
    openai = providers.openai.OpenAIProvider(openai_client=async_client)
    anthropic = providers.anthropic.AnthropicProvider(anthropic_client=async_claude)
    models_and_providers = {
        "chat": (models.openai.OpenAIChatModel, openai),
        "responses": (models.openai.OpenAIResponsesModel, openai),
        "anthropic": (models.anthropic.AnthropicModel, anthropic),
    }

    async def call(name: str, /, **arguments: Any) -> str:
        return run_tool(name, arguments)

    def tool(spec: Any) -> Any:
        function = partial(call, spec.name)
        return pydantic_ai.Tool.from_schema(
            function, spec.name, spec.description, dict(spec.parameters)
        )

    def make(scenario: Any, api: str, **settings: Any) -> Any:
        tools = [tool(spec) for spec in scenario.tools]
        kind, provider = models_and_providers[api]
        model = kind(DIALECTS[api].model, provider=provider)
        return pydantic_ai.Agent(model, tools=tools, model_settings=settings or None)

    return make


both_scenarios = pytest.mark.parametrize("name", ["secret-numbers", "multi-hop"])
# Its provider for Google requires an older version of the client than the one tested here.
every_api = pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])


@both_scenarios
@every_api
def test_run(make_agent, loop, run, name, api):
    """The agent runs every tool, sends the results, and returns the text of the last turn."""
    scenario = SCENARIOS[name]
    result = loop.run(make_agent(scenario, api).run(opening(scenario)))
    assert result.output == ending(scenario)
    run.expects_plays(plays(scenario, api))


@both_scenarios
@every_api
def test_run_stream(make_agent, loop, run, name, api):
    """A streamed run has the same result, in fragments that join to it."""
    scenario = SCENARIOS[name]
    agent = make_agent(scenario, api)

    async def follow() -> list[str]:
        async with agent.run_stream(opening(scenario)) as result:
            return [text async for text in result.stream_text(delta=True, debounce_by=None)]

    fragments = loop.run(follow())
    assert "".join(fragments) == ending(scenario)
    assert len(fragments) > 1
    assert all(exchange.played.stream for exchange in run.exchanges)
    run.expects_plays(plays(scenario, api))


@both_scenarios
@every_api
def test_iter(pydantic_ai, make_agent, loop, run, name, api):
    """The events of all steps have each call and its result."""
    scenario = SCENARIOS[name]
    agent = make_agent(scenario, api)

    async def follow() -> tuple[Any, list[Any]]:
        seen = []
        async with agent.iter(opening(scenario)) as steps:
            async for node in steps:
                if agent.is_model_request_node(node) or agent.is_call_tools_node(node):
                    async with node.stream(steps.ctx) as events:
                        seen += [event async for event in events]
        return steps.result, seen

    result, seen = loop.run(follow())
    assert result.output == ending(scenario)
    call_events = [event for event in seen if isinstance(event, pydantic_ai.FunctionToolCallEvent)]
    result_events = [
        event for event in seen if isinstance(event, pydantic_ai.FunctionToolResultEvent)
    ]
    assert {event.part.tool_call_id for event in call_events} == {
        event.part.tool_call_id for event in result_events
    }
    assert len(call_events) == 2
    run.expects_plays(plays(scenario, api))


@both_scenarios
def test_websocket(make_agent, loop, run, name):
    """Its transport for Responses: all requests go over one connection."""
    scenario = SCENARIOS[name]

    async def follow() -> str:
        async with make_agent(scenario, "responses", openai_transport="websocket") as agent:
            return (await agent.run(opening(scenario))).output

    assert loop.run(follow()) == ending(scenario)
    assert {exchange.headers.get("upgrade") for exchange in run.exchanges} == {"websocket"}
    assert len({exchange.received.connection for exchange in run.exchanges}) == 1
    run.expects_plays(plays(scenario, "responses"))


@both_scenarios
def test_previous_response_id(make_agent, loop, run, name):
    """Each request after the first has only new items, and `previous_response_id`."""
    scenario = SCENARIOS[name]
    agent = make_agent(scenario, "responses", openai_previous_response_id="auto")
    result = loop.run(agent.run(opening(scenario)))
    assert result.output == ending(scenario)
    first, *others = [json.loads(exchange.body) for exchange in run.exchanges]
    assert "previous_response_id" not in first
    for body in others:
        assert body["previous_response_id"].startswith("resp_")
        assert {item["type"] for item in body["input"]} == {"function_call_output"}
    run.expects_plays(plays(scenario, "responses"))


@every_api
def test_reasoning(pydantic_ai, make_agent, loop, api):
    """Reasoning is a thinking part beside the text."""
    scenario = SCENARIOS["reasoning"]
    result = loop.run(make_agent(scenario, api).run(opening(scenario)))
    thinking, text = result.all_messages()[-1].parts
    assert isinstance(thinking, pydantic_ai.ThinkingPart)
    assert "17" in thinking.content or "Seventeen" in thinking.content
    assert text.content == "Yes, 17 is prime."


@every_api
def test_usage(make_agent, loop, api):
    """The agent reports the usage of the scenario."""
    scenario = SCENARIOS["token-usage"]
    usage = loop.run(make_agent(scenario, api).run(opening(scenario))).usage
    assert (usage.input_tokens, usage.output_tokens) == (2048, 64)
    assert usage.cache_read_tokens == 1920
