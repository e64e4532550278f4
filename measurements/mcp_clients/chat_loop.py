"""The loop of an agent over the OpenAI SDK, for both versions of the MCP SDK for Python."""

import json
from typing import Any

from openai import OpenAI


async def answer(url: str, prompt: str, session: Any, schemas: dict[str, Any]) -> str:
    """The text with which the model ends.

    Args:
        session: of MCP, which calls tools.
        schemas: of their arguments, by the names of the tools.
    """
    model = OpenAI(base_url=f"{url}/v1", api_key="any")
    messages = [{"role": "user", "content": prompt}]
    tools = [
        {"type": "function", "function": {"name": name, "parameters": schema}}
        for name, schema in schemas.items()
    ]
    while True:
        chat = model.chat.completions.create(model="gpt-5", messages=messages, tools=tools)
        reply = chat.choices[0].message
        if not reply.tool_calls:
            return reply.content
        messages.append(reply)
        for call in reply.tool_calls:
            arguments = json.loads(call.function.arguments)
            result = await session.call_tool(call.function.name, arguments)
            text = json.dumps([block.model_dump(mode="json") for block in result.content])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
