"""The MCP SDK for Python 2.x and the OpenAI SDK: a loop."""

import asyncio

from chat_loop import answer
from given import SECONDS, given
from mcp import Client, StdioServerParameters


async def main() -> None:
    url, prompt, servers = given()
    [server] = servers.values()
    if isinstance(server, list):
        server = StdioServerParameters(command=server[0], args=server[1:])
    async with Client(server, read_timeout_seconds=SECONDS) as client:
        schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        text = await answer(url, prompt, client, schemas)
    print(text)


asyncio.run(main())
