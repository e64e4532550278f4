"""Google's Agent Development Kit."""

import asyncio
import os

from given import SECONDS, given
from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from google.adk.tools.mcp_tool.mcp_session_manager import StreamableHTTPConnectionParams
from google.genai import types
from mcp import StdioServerParameters


def toolset_of(name, server, several):
    if isinstance(server, list):
        parameters = StdioServerParameters(command=server[0], args=server[1:])
        connection = StdioConnectionParams(server_params=parameters, timeout=SECONDS)
    else:
        connection = StreamableHTTPConnectionParams(
            url=server, timeout=SECONDS, sse_read_timeout=SECONDS
        )
    return McpToolset(connection_params=connection, tool_name_prefix=name if several else None)


async def main() -> None:
    url, prompt, servers = given()
    os.environ |= {"GOOGLE_GEMINI_BASE_URL": url, "GOOGLE_API_KEY": "any"}
    tools = [toolset_of(name, server, len(servers) > 1) for name, server in servers.items()]
    agent = LlmAgent(name="assistant", model="gemini-2.5-flash", tools=tools)
    runner = InMemoryRunner(agent=agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text=prompt)])
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
        if event.is_final_response() and event.content:
            print("".join(part.text or "" for part in event.content.parts or []))
    await runner.close()


asyncio.run(main())
