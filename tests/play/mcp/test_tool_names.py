"""Which tool of which server an offered name means, for each way in which clients rename tools."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm import loads
from mockllm.core.request import CallEcho, Message, OfferedTool, Request
from mockllm.play.mcp.tool_names import ToolNames, with_server_tools
from mockllm.scenario.mcp_model import McpServer, McpTool
from tests.serve.mcp.servers import BOTH

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


def clean(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


CLIENTS = {
    "claude-code": lambda server, tool: f"mcp__{clean(server)}__{clean(tool)}",
    "codex": lambda server, tool: f"mcp__{clean(server).replace('-', '_')}__{clean(tool)}",
    "gemini-cli": lambda server, tool: f"mcp_{server}_{tool}",
    "opencode": lambda server, tool: f"{clean(server)}_{clean(tool)}",
    "openai-agents": lambda server, tool: f"mcp_{clean(server)}__{clean(tool)}",
    "bare": lambda server, tool: tool,
    "prefixed": lambda server, tool: f"{server}_{tool}",
}
SERVERS = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
TOOLS = st.from_regex(r"[a-z][a-z0-9_.-]{0,12}", fullmatch=True)


@pytest.mark.parametrize("client", CLIENTS)
@given(server=SERVERS, tools=st.sets(TOOLS, min_size=1, max_size=4))
def test_every_name_leads_back_to_its_tool(client, server, tools):
    """The inverse of renaming; a name that means two tools leads to none of them."""
    rename = CLIENTS[client]
    names = ToolNames([McpServer(server, tuple(McpTool(tool) for tool in sorted(tools)))])
    offered = [OfferedTool(rename(server, tool)) for tool in sorted(tools)]
    if len({tool.name for tool in offered}) < len(offered):
        return  # the client itself cannot tell them apart
    meanings = names.meanings(offered)
    for tool in tools:
        assert meanings.get(rename(server, tool), f"{server}.{tool}") == f"{server}.{tool}"


def test_names_that_are_too_long_are_known_by_their_ends():
    """Some clients cut the middle out, others put a digest at the end."""
    tool = "a" * 40 + "b" * 40
    names = ToolNames([McpServer("kit", (McpTool(tool), McpTool("other")))])
    whole = f"mcp_kit_{tool}"
    for cut in (f"{whole[:30]}...{whole[-30:]}", f"mcp_kit__{tool[:46]}_0123abcd"):
        assert names.meanings([OfferedTool(cut)]) == {cut: f"kit.{tool}"}


def test_a_server_has_another_name_in_the_client():
    """Where all its tools are offered below one prefix."""
    names = ToolNames([McpServer("weather", (McpTool("get"), McpTool("set")))])
    both = [OfferedTool("wx_get"), OfferedTool("wx_set")]
    assert names.meanings(both) == {"wx_get": "weather.get", "wx_set": "weather.set"}
    assert names.meanings(both[:1]) == {}


def test_tools_of_the_agent_are_none_of_the_server():
    """One with the name of a tool and other arguments; one beside the renamed tool."""
    names = ToolNames([McpServer("weather", (McpTool("get", parameters=CITY),))])
    own = OfferedTool("get", parameters={"properties": {"path": {}}})
    assert names.meanings([own]) == {}
    renamed = OfferedTool("mcp__weather__get", parameters=CITY)
    assert names.meanings([OfferedTool("get"), renamed]) == {"mcp__weather__get": "weather.get"}


def test_equal_tools_of_two_servers_are_told_apart_by_their_arguments():
    """A bare name may mean two; then it means none."""
    other = {"properties": {"text": {}}}
    names = ToolNames(
        [
            McpServer("a", (McpTool("get", parameters=CITY),)),
            McpServer("b", (McpTool("get", parameters=other),)),
        ]
    )
    assert names.meanings([OfferedTool("get", parameters=CITY)]) == {"get": "a.get"}
    assert names.meanings([OfferedTool("get")]) == {}


def test_a_history_keeps_a_changed_name():
    """A call that is sent back with another name than the offered one is not renamed."""
    servers = [scenario.server for scenario in loads(BOTH) if scenario.server]
    calls = (CallEcho("1", "get_forecast", "{}"), CallEcho("2", "mcp__weather__get_forecast", "{}"))
    request = Request(
        "chat", "m", {},
        messages=(Message("assistant", calls=calls),),
        tools=(OfferedTool("mcp__weather__get_forecast"),),
    )  # fmt: skip
    used = frozenset({"weather.get_forecast"})
    renamed = with_server_tools(request, ToolNames(servers), used)
    names = [call.name for call in renamed.messages[0].calls]
    assert names == ["get_forecast", "weather.get_forecast"]
    assert renamed.server_tools == (("weather.get_forecast", "mcp__weather__get_forecast"),)
