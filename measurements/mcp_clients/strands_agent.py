"""Strands Agents."""

from given import given
from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from strands import Agent
from strands.models.openai import OpenAIModel
from strands.tools.mcp import MCPClient


def client_of(name, server, several):
    if isinstance(server, list):
        parameters = StdioServerParameters(command=server[0], args=server[1:])
        connect = lambda: stdio_client(parameters)  # noqa: E731 - as its documentation has it
    else:
        connect = lambda: streamable_http_client(server)  # noqa: E731
    return MCPClient(connect, prefix=name if several else None)


url, prompt, servers = given()
model = OpenAIModel(
    client_args={"base_url": f"{url}/v1", "api_key": "any", "max_retries": 0}, model_id="gpt-5"
)
clients = [client_of(name, server, len(servers) > 1) for name, server in servers.items()]
agent = Agent(model=model, tools=clients, callback_handler=None)
print(agent(prompt))
