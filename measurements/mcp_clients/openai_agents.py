"""openai-agents."""

import asyncio
from contextlib import AsyncExitStack

from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from given import SECONDS, given
from openai import AsyncOpenAI


def server_of(name, server):
    options = {"name": name, "client_session_timeout_seconds": SECONDS}
    if isinstance(server, list):
        return MCPServerStdio({"command": server[0], "args": server[1:]}, **options)
    return MCPServerStreamableHttp({"url": server}, **options)


async def main() -> None:
    url, prompt, servers = given()
    set_tracing_disabled(True)
    model = OpenAIResponsesModel("gpt-5", AsyncOpenAI(base_url=f"{url}/v1", api_key="any"))
    async with AsyncExitStack() as stack:
        connected = [
            await stack.enter_async_context(server_of(*server)) for server in servers.items()
        ]
        agent = Agent(
            "assistant",
            model=model,
            mcp_servers=connected,
            mcp_config={"include_server_in_tool_names": len(servers) > 1},
        )
        result = await Runner.run(agent, prompt, max_turns=20)
    print(result.final_output)


asyncio.run(main())
