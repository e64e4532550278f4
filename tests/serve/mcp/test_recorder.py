"""Recorded MCP servers: what passed is a document that answers the same."""

import asyncio
import re
import subprocess
import sys

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client

from mockllm import ServerOptions, ServerThread
from mockllm.cli.options.recording import mcp_servers
from mockllm.core.errors import UsageError
from mockllm.play.mcp.operations import result as result_of
from mockllm.play.replay.loading import load
from mockllm.record.recording.drafting.mcp_drafts import draft_answer, draft_server
from mockllm.scenario.mcp_model import McpAnswer, RpcError
from mockllm.scenario.part_model import MediaSource
from mockllm.serve.server.options import RecordOptions
from tests.conftest import Served
from tests.serve.mcp.servers import BOTH, WEATHER, call, message, result, send, texts
from tests.timeouts import GIVE_UP

TEXTS = st.text(max_size=20)
OBJECTS = st.dictionaries(TEXTS, st.integers() | TEXTS, min_size=1, max_size=3)
ANSWERS = st.one_of(
    st.builds(McpAnswer, text=st.lists(TEXTS, min_size=1, max_size=3).map(tuple)),
    st.builds(McpAnswer, json=OBJECTS),
    st.builds(McpAnswer, text=st.tuples(TEXTS), json=OBJECTS),
    st.builds(McpAnswer, error=TEXTS),
    st.builds(McpAnswer, image=st.builds(MediaSource, st.binary(), st.just("image/png"))),
    st.builds(McpAnswer, link=st.fixed_dictionaries({"uri": TEXTS, "name": TEXTS})),
    st.builds(McpAnswer, resource=st.fixed_dictionaries({"uri": TEXTS, "text": TEXTS})),
)


@given(ANSWERS)
def test_a_drafted_answer_makes_the_same_result(answer):
    """`draft_answer` is the inverse of `result`."""
    made = result_of(answer)
    assert result_of(draft_answer({"result": {"resultType": "complete", **made}})) == made


@given(st.dictionaries(TEXTS, TEXTS, max_size=3), st.booleans())
def test_a_result_of_any_form_is_kept_whole(extra, failed):
    """What the language has no words for stands as it came."""
    stated = {"content": [{"type": "text", "text": "x"}, {"type": "other"}], **extra}
    stated |= {"isError": True} if failed else {}
    assert result_of(draft_answer({"result": stated})) == {
        key: value for key, value in stated.items() if key not in ("_meta", "resultType")
    }  # fmt: skip


def test_a_success_that_is_stated_is_one():
    """Servers of the official package say `isError: false`."""
    stated = {"content": [{"type": "text", "text": "x"}], "isError": False}
    assert draft_answer({"result": stated}) == McpAnswer(text=("x",))


def test_errors_of_the_protocol_are_kept():
    """With their data."""
    error = {"code": -32000, "message": "Gone", "data": {"why": "x"}}
    assert draft_answer({"error": error}).rpc_error == RpcError(-32000, "Gone", {"why": "x"})


def test_pages_of_a_list_are_joined_and_a_later_list_counts():
    """The tools of the newest list, in all its pages."""

    def listed(*names, cursor=None):
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        params = {} if cursor is None else {"cursor": cursor}
        return message("tools/list", params), {"result": {"tools": tools}}

    server = draft_server("s", [listed("old"), listed("a"), listed("b", cursor="2")])
    assert [tool.name for tool in server.tools] == ["a", "b"]


@pytest.fixture
def record(serve, tmp_path):
    """Starts a recorder before the server of the tests; the folder has the document at its end."""

    def start(text: str, use) -> None:
        service = serve(text)
        options = RecordOptions(
            folder=tmp_path, servers={"weather": f"{service.url}/mcp/weather"}, mode="add"
        )
        with (
            ServerThread((), ServerOptions(record=options)) as thread,
            httpx.Client(base_url=thread.url, timeout=GIVE_UP) as client,
        ):
            use(Served(thread, client))

    return start


def conversation(served, *, stateless=False):
    """What a client does, and what it gets."""
    listed = result(served, "tools/list", stateless=stateless)["tools"]
    cities = ["Rome", "Oslo", "Rome", "Paris"]
    got = [texts(call(served, "get_forecast", {"city": city}, stateless=stateless))
           for city in cities]  # fmt: skip
    numbers = call(served, "get_numbers", {"city": "Oslo"}, stateless=stateless)
    return listed, got, numbers["structuredContent"]


@pytest.mark.parametrize("stateless", [True, False])
def test_what_was_recorded_answers_the_same_in_both_eras(record, serve, tmp_path, stateless):
    """The list, the answers in their order for each call; the other era plays, too."""
    seen = []
    record(BOTH, lambda served: seen.append(conversation(served, stateless=stateless)))
    text = (tmp_path / "mcp-weather.yaml").read_text()
    for era in (True, False):
        assert conversation(serve(text), stateless=era) == seen[0]
    assert len(load(tmp_path)) == 1


def test_secrets_are_not_written(record, tmp_path):
    """They are replaced as in recordings of models; headers are not written at all."""
    key = "sk-proj-" + "a1B2c3D4e5" * 5
    text = WEATHER.replace("Unknown city.", f"The key {key} is wrong.")

    def use(served):
        params = {"name": "get_forecast", "arguments": {"city": "X"}}
        headers = {"authorization": "Bearer hidden-token-123456"}
        assert key in send(served, "tools/call", params, headers=headers).text

    record(text, use)
    written = (tmp_path / "mcp-weather.yaml").read_text()
    assert key not in written
    assert "hidden-token" not in written


REAL = """
from mcp.server import MCPServer

server = MCPServer("weather", instructions="Ask for a city.")

@server.tool()
def forecast(city: str) -> str:
    return f"Rain in {city}"

@server.tool()
def numbers(city: str) -> dict[str, int]:
    return {"temp": len(city)}

server.run(transport="streamable-http", port=0)
"""


async def use_real(url: str, mode: str) -> list:
    """What the official client gets."""
    async with Client(url, mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        calls = [("forecast", "Oslo"), ("numbers", "Rome")]
        got = [await client.call_tool(name, {"city": city}) for name, city in calls]
    return [names, *((one.content[0].text, one.structured_content) for one in got)]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_server_of_the_official_package_is_recorded(serve, tmp_path, mode):
    """And plays in both eras, for its own client."""
    with subprocess.Popen(
        [sys.executable, "-c", REAL], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as program:
        try:
            lines = (re.search(r"running on (http://\S+)", line) for line in program.stderr)
            url = next(found[1] for found in lines if found)
            options = RecordOptions(folder=tmp_path, servers={"weather": f"{url}/mcp"})
            with ServerThread((), ServerOptions(record=options)) as thread:
                seen = asyncio.run(use_real(f"{thread.url}/mcp/weather", mode))
        finally:
            program.kill()
    served = serve((tmp_path / "mcp-weather.yaml").read_text())
    for era in ("auto", "legacy"):
        assert asyncio.run(use_real(f"{served.url}/mcp/weather", era)) == seen


def test_services_and_servers_are_told_apart():
    """`mcp:NAME=URL` among the services."""
    given = ["https://api.openai.com", "mcp:weather=http://h/mcp/"]
    assert mcp_servers(given) == {"weather": "http://h/mcp"}
    for wrong in ("mcp:a b=http://h", "mcp:weather=ftp://h", "mcp:weather"):
        with pytest.raises(UsageError, match="--upstream mcp:"):
            mcp_servers([wrong])


def test_a_server_that_is_away_is_said_to_be(tmp_path):
    """To the client as an error of the protocol, and in the journal."""
    options = RecordOptions(folder=tmp_path, servers={"weather": "http://127.0.0.1:9/mcp"})
    with (
        ServerThread((), ServerOptions(record=options)) as thread,
        httpx.Client(base_url=thread.url) as client,
    ):
        served = Served(thread, client)
        answer = send(served, "tools/list")
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, -32603)
        (entry,) = served.journal()
        assert (entry["outcome"], entry["cause"]) == ("error", "service")
    assert not list(tmp_path.glob("mcp-*"))
