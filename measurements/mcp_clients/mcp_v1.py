"""The MCP SDK for Python 1.x and the OpenAI SDK: a loop."""

import asyncio
import json
from datetime import timedelta

from given import SECONDS, given
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from openai import OpenAI


async def main() -> None:
    url, prompt, servers = given()
    [server] = servers.values()
    if isinstance(server, list):
        transport = stdio_client(StdioServerParameters(command=server[0], args=server[1:]))
    else:
        transport = streamable_http_client(server)
    model = OpenAI(base_url=f"{url}/v1", api_key="any")
    messages = [{"role": "user", "content": prompt}]
    async with (
        transport as (read, write, *_),
        ClientSession(read, write, timedelta(seconds=SECONDS)) as session,
    ):
        await session.initialize()
        tools = [
            {"type": "function", "function": {"name": tool.name, "parameters": tool.inputSchema}}
            for tool in (await session.list_tools()).tools
        ]
        while True:
            chat = model.chat.completions.create(model="gpt-5", messages=messages, tools=tools)
            reply = chat.choices[0].message
            if not reply.tool_calls:
                break
            messages.append(reply)
            for call in reply.tool_calls:
                arguments = json.loads(call.function.arguments)
                result = await session.call_tool(call.function.name, arguments)
                text = json.dumps([block.model_dump(mode="json") for block in result.content])
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    print(reply.content)


asyncio.run(main())
