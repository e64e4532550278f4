"""The MCP SDK for Python 1.x and the OpenAI SDK: a loop."""

import asyncio
from datetime import timedelta

from chat_loop import answer
from given import SECONDS, given
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


async def main() -> None:
    url, prompt, servers = given()
    [server] = servers.values()
    if isinstance(server, list):
        transport = stdio_client(StdioServerParameters(command=server[0], args=server[1:]))
    else:
        transport = streamable_http_client(server)
    async with (
        transport as (read, write, *_),
        ClientSession(read, write, timedelta(seconds=SECONDS)) as session,
    ):
        await session.initialize()
        schemas = {tool.name: tool.inputSchema for tool in (await session.list_tools()).tools}
        text = await answer(url, prompt, session, schemas)
    print(text)


asyncio.run(main())
