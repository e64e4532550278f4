"""LangChain with langchain-mcp-adapters."""

import asyncio
from datetime import timedelta

from given import SECONDS, given
from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI


def connection(server):
    options = {"session_kwargs": {"read_timeout_seconds": timedelta(seconds=SECONDS)}}
    if isinstance(server, list):
        return {"transport": "stdio", "command": server[0], "args": server[1:], **options}
    return {"transport": "streamable_http", "url": server, **options}


async def main() -> None:
    url, prompt, servers = given()
    client = MultiServerMCPClient(
        {name: connection(server) for name, server in servers.items()},
        tool_name_prefix=len(servers) > 1,
    )
    model = ChatOpenAI(model="gpt-5", base_url=f"{url}/v1", api_key="any", max_retries=0)
    agent = create_agent(model, await client.get_tools())
    state = await agent.ainvoke({"messages": [{"role": "user", "content": prompt}]})
    print(state["messages"][-1].text)


asyncio.run(main())
