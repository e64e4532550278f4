"""pydantic-ai."""

import asyncio

from fastmcp.client.transports import StdioTransport
from given import SECONDS, given
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main() -> None:
    url, prompt, servers = given()
    toolsets = []
    for name, server in servers.items():
        if isinstance(server, list):
            server = StdioTransport(server[0], server[1:])
        toolset = MCPToolset(server, id=name, read_timeout=SECONDS)
        toolsets.append(toolset.prefixed(name) if len(servers) > 1 else toolset)
    model = OpenAIChatModel("gpt-5", provider=OpenAIProvider(f"{url}/v1", api_key="any"))
    agent = Agent(model, toolsets=toolsets)
    async with agent:
        result = await agent.run(prompt)
    print(result.output)


asyncio.run(main())
