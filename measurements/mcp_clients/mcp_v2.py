"""The MCP SDK for Python 2.x and the OpenAI SDK: a loop."""

import asyncio
import json

from given import SECONDS, given
from mcp import Client, StdioServerParameters
from openai import OpenAI


async def main() -> None:
    url, prompt, servers = given()
    [server] = servers.values()
    if isinstance(server, list):
        server = StdioServerParameters(command=server[0], args=server[1:])
    model = OpenAI(base_url=f"{url}/v1", api_key="any")
    messages = [{"role": "user", "content": prompt}]
    async with Client(server, read_timeout_seconds=SECONDS) as client:
        tools = [
            {"type": "function", "function": {"name": tool.name, "parameters": tool.input_schema}}
            for tool in (await client.list_tools()).tools
        ]
        while True:
            chat = model.chat.completions.create(model="gpt-5", messages=messages, tools=tools)
            reply = chat.choices[0].message
            if not reply.tool_calls:
                break
            messages.append(reply)
            for call in reply.tool_calls:
                arguments = json.loads(call.function.arguments)
                result = await client.call_tool(call.function.name, arguments)
                text = json.dumps([block.model_dump(mode="json") for block in result.content])
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    print(reply.content)


asyncio.run(main())
