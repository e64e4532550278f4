"""`mockllm mcp`: an MCP server as a program, for agents that start theirs."""

import asyncio
import json
import os
import subprocess
import sys

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.serve.mcp.servers import BOTH, WEATHER, message
from tests.timeouts import GIVE_UP

NAMESPACE = "io.modelcontextprotocol/"
PROGRAM = [sys.executable, "-m", "mockllm", "mcp", "weather"]


def talk(served, *lines):
    """What the bridge answers to lines, and how it ends."""
    done = subprocess.run(
        [*PROGRAM, "--url", served.url],
        input="".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines),
        capture_output=True, text=True, timeout=GIVE_UP, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.splitlines(), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_starts_the_program(serve, mode):
    """In both eras it lists and calls as over HTTP; the journal has the same operations."""
    served = serve(BOTH)
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    program = StdioServerParameters(
        command=PROGRAM[0], args=[*PROGRAM[1:], "--url", served.url], env=environment
    )

    async def use() -> None:
        async with Client(program, mode=mode) as client:
            assert len((await client.list_tools()).tools) == 3
            got = await client.call_tool("get_forecast", {"city": "Oslo"})
            assert got.content[0].text == "Rain in Oslo"

    asyncio.run(use())
    assert served.journal()[-1]["mcp"]["tool"] == "get_forecast"


def test_streams_and_errors_are_lines(serve):
    """An HTTP error is an error of the protocol, and lines that are no JSON get one, too."""
    entry = "  - {tool: show, attempts: [{http: 503}], answer: {text: x, progress: [half]}}\n"
    served = serve(WEATHER[: WEATHER.index("calls:")] + "calls:\n" + entry)
    params = {"name": "show", "_meta": {"progressToken": 1}}
    code, lines, _ = talk(served, message("tools/call", params), "", "no JSON")
    assert code == 0
    assert {json.loads(line)["error"]["code"] for line in lines} == {-32603, -32700}
    code, lines, _ = talk(served, message("tools/call", params))
    assert [json.loads(line).get("method") for line in lines] == ["notifications/progress", None]


def test_a_stream_that_would_be_resumed_comes_whole(serve):
    """There is none over stdio."""
    entry = "  - {tool: show, answer: {text: x, resumed: true}}\n"
    served = serve(WEATHER[: WEATHER.index("calls:")] + "calls:\n" + entry)
    _, (line,), _ = talk(served, message("tools/call", {"name": "show"}))
    assert json.loads(line)["result"]["content"][0]["text"] == "x"


def test_each_request_gets_an_answer_with_its_id(serve):
    """Also after an HTTP error, a lost session and a broken connection: clients wait on
    otherwise."""
    served = serve(WEATHER[: WEATHER.index("calls:")] + """calls:
  - tool: show
    attempts: [{http: 503}, {fault: session-lost}, {fault: {cut: {after: 9 bytes}}},
               {fault: refuse}]
    answer: {text: x}
""")  # fmt: skip
    kinds = []
    for number in range(5):
        _, (line,), _ = talk(served, message("tools/call", {"name": "show"}, id=number))
        assert json.loads(line)["id"] == number
        kinds.append(json.loads(line).get("error", {}).get("code"))
    assert kinds == [-32603, -32600, -32603, -32603, None]


@pytest.mark.parametrize(
    "line",
    [
        '{"a":' * 9000,
        "\x00\x01",
        "[" + json.dumps(message("ping")) + "]",
        json.dumps(message("ping", {"_meta": {f"{NAMESPACE}protocolVersion": "a\r\nb: c"}})),
        json.dumps(message("tools/call", {"name": "a\nb"}, stateless=True)),
        json.dumps(message("tools/call", {"name": "\ud800 ü"}, stateless=True)),
        json.dumps(message("tools/call", {"name": "x" * 500_000})),
    ],
    ids=range(7),
)
def test_hostile_lines_leave_the_program_alive(serve, line):
    """It answers what comes after them, and shows no traceback."""
    code, lines, errors = talk(serve(BOTH), line, message("ping", id="end"))
    assert (code, errors) == (0, "")
    assert {"jsonrpc": "2.0", "id": "end", "result": {}} in map(json.loads, lines)


def test_the_program_breaks_as_programs_do(serve):
    """It ends in a call, or writes lines that are no JSON."""
    served = serve(WEATHER[: WEATHER.index("calls:")] + """calls:
  - {tool: show, fault: exit, answer: {text: x}}
  - {tool: get_forecast, fault: noise, answer: {text: x}}
""")  # fmt: skip
    code, lines, _ = talk(served, message("tools/call", {"name": "show"}))
    assert (code, lines) == (1, [])
    code, lines, _ = talk(served, message("tools/call", {"name": "get_forecast"}))
    assert (code, len(lines), lines[0].startswith("{")) == (0, 2, False)
    assert served.http.get("/_mockllm/verify").json()["missed_faults"] == []


def test_a_program_without_a_server_says_so():
    """In one line, with the address that it tried."""
    done = subprocess.run(
        [*PROGRAM, "--url", "http://127.0.0.1:9"],
        capture_output=True, text=True, timeout=GIVE_UP, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("mockllm mcp: nothing listens at http://127.0.0.1:9: ")


@pytest.mark.parametrize(
    ("agent", "shown"),
    [
        ("claude", '{"mcpServers": {"weather": {"type": "http", "url": "U"}}}'),
        ("gemini", '{"mcpServers": {"weather": {"httpUrl": "U"}}}'),
        ("opencode", '{"mcp": {"weather": {"type": "remote", "url": "U"}}}'),
    ],
)
def test_agents_get_their_configuration(agent, shown):
    """In the form of each, with the session in the address."""

    def printed(*options: str) -> str:
        command = [*PROGRAM, "--url", "http://h:1", "--session", "s", *options]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=GIVE_UP, check=True
        ).stdout

    address = "http://h:1/s/s/mcp/weather"
    assert json.loads(printed("--config", agent)) == json.loads(
        shown.replace('"U"', f'"{address}"')
    )
    assert '"--url"' in printed("--config", f"{agent}-stdio")
    codex = printed("--config", "codex").splitlines()
    assert codex == ["[mcp_servers.weather]", f'url = "{address}"']
