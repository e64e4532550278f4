"""openai-agents with an MCP server: a right agent of others is not accused."""

import asyncio

import pytest
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    set_tracing_disabled,
)
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from openai import AsyncOpenAI

from tests.checking.conversations.mcp.agents import scenario
from tests.serve.mcp.test_bridge import PROGRAM

pytestmark = pytest.mark.slow
ALL = scenario(["Oslo", "Rome"], ["Bern"], ["Oslo"])


def server_at(url: str, *, stdio: bool):
    if stdio:
        return MCPServerStdio({"command": PROGRAM[0], "args": [*PROGRAM[1:], "--url", url]})
    return MCPServerStreamableHttp({"url": f"{url}/mcp/weather"})


async def run(url: str, model, *, prefixed: bool, stdio: bool) -> str:
    set_tracing_disabled(True)
    async with (
        AsyncOpenAI(base_url=f"{url}/v1", api_key="x") as client,
        server_at(url, stdio=stdio) as server,
    ):
        config = {"include_server_in_tool_names": prefixed}
        agent = Agent("a", mcp_servers=[server], model=model("m", client), mcp_config=config)
        result = await Runner.run(agent, "trip")
    return result.final_output


@pytest.mark.parametrize("model", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
@pytest.mark.parametrize("prefixed", [True, False])
@pytest.mark.parametrize("stdio", [True, False])
def test_it_is_not_accused(serve, model, prefixed, stdio):
    """Over both transports and both of its APIs, with the server in the names or without."""
    served = serve(ALL)
    assert asyncio.run(run(served.url, model, prefixed=prefixed, stdio=stdio)) == "Done."
    found = served.http.get("/_mockllm/verify").json()
    assert found["good"], found
    assert found["remarks"] == []
    methods = [entry["mcp"]["tool"] for entry in served.journal() if entry["api"] == "mcp"]
    assert methods.count("get") == 4
