"""Recorded MCP servers: what passed is a document that answers the same."""

import asyncio
import json
import os
import re
import subprocess
import sys

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from mockllm import ServerOptions, ServerThread
from mockllm.cli.options.recording import mcp_servers, record_options
from mockllm.core.errors import UsageError
from mockllm.play.mcp.replies import result as result_of
from mockllm.play.replay.loading import load
from mockllm.record.importers.batch import import_files
from mockllm.record.recording.drafting.mcp_drafts import RecordedCall, draft_answer, draft_server
from mockllm.record.recording.store.folder import Folder
from mockllm.scenario.mcp_model import McpAnswer, RpcError
from mockllm.scenario.part_model import MediaSource
from mockllm.serve.server.options import RecordOptions
from tests.conftest import Served
from tests.serve.mcp.servers import BOTH, WEATHER, call, message, result, send, texts
from tests.serve.mcp.test_bridge import PROGRAM
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
        return RecordedCall(message("tools/list", params), {"result": {"tools": tools}})

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


async def use_real(url: str | StdioServerParameters, mode: str) -> list:
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
    given = ["https://api.openai.com", "mcp:weather=http://h/mcp/", "mcp:files=stdio"]
    assert mcp_servers(given) == {"weather": "http://h/mcp", "files": "stdio"}
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


SLOW_ANSWERS = """
import json, sys

for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "tools/call":
        if asked["params"]["name"] == "die":
            sys.exit(3)
        # A request of the server has an id that may be that of a request of the client.
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "method": "ping"}), flush=True)
    if asked.get("method") == "notifications/roots/list_changed":
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message"}), flush=True)
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
    if asked.get("method") == "tools/call" and asked["params"]["name"] != "never":
        text = "city " + asked["params"]["arguments"]["city"]
        result = {"content": [{"type": "text", "text": text}]}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def run_program(url, *lines):
    """What the bridge of a program answers, and how it ends."""
    return subprocess.run(
        [*PROGRAM, "--url", url, "--", sys.executable, "-c", SLOW_ANSWERS],
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True, text=True, timeout=GIVE_UP, check=False,
    )  # fmt: skip


@pytest.fixture
def program_recorder(tmp_path):
    """A recorder of the programs of the tests."""
    options = RecordOptions(folder=tmp_path, servers={"weather": "stdio"})
    with (
        ServerThread((), ServerOptions(record=options)) as thread,
        httpx.Client(base_url=thread.url, timeout=GIVE_UP) as client,
    ):
        yield Served(thread, client)


def test_a_program_is_recorded(serve, tmp_path):
    """Its lines pass as they are, the journal has the calls, and the document answers the same."""
    asked = message("tools/call", {"name": "forecast", "arguments": {"city": "Oslo"}})
    options = RecordOptions(folder=tmp_path, servers={"weather": "stdio"})
    with (
        ServerThread((), ServerOptions(record=options)) as thread,
        httpx.Client(base_url=thread.url, timeout=GIVE_UP) as client,
    ):
        done = run_program(thread.url, message("notifications/initialized"), asked)
        entry = Served(thread, client).journal()[-1]
    assert (done.returncode, done.stderr) == (0, "")
    ping, answer = map(json.loads, done.stdout.splitlines())
    assert ping["method"] == "ping"
    assert (entry["mcp"]["tool"], entry["outcome"], entry["status"]) == (
        "forecast", "forwarded", 200,
    )  # fmt: skip
    served = serve((tmp_path / "mcp-weather.yaml").read_text())
    assert texts(call(served, "forecast", {"city": "Oslo"})) == [
        answer["result"]["content"][0]["text"]
    ]


def test_calls_without_an_answer_are_in_the_journal_alone(program_recorder):
    """Given up, or the program ended; its exit code is that of the bridge."""
    given_up = message("tools/call", {"name": "never", "arguments": {}}) | {"id": 7}
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    last = message("tools/call", {"name": "die", "arguments": {}}) | {"id": 8}
    done = run_program(program_recorder.url, given_up, cancel, last)
    assert done.returncode == 3
    assert done.stderr.count("a tools/call is not recorded: it has no answer") == 2
    entries = [entry for entry in program_recorder.journal() if entry["mcp"]["tool"]]
    assert [(entry["mcp"]["tool"], entry["outcome"]) for entry in entries] == [
        ("never", "error"), ("die", "error"),
    ]  # fmt: skip


def test_what_a_program_says_aside_is_counted(program_recorder):
    """It passes; but for a list that changed, which the next list shows."""
    told = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
    done = run_program(program_recorder.url, told)
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == (
        "mockllm mcp: not recorded, since no request waited: 1 message of the program\n"
    )


def test_a_program_needs_a_recorder(serve):
    """It is not started where nobody records it, and not asked without the bridge."""
    done = run_program(serve(WEATHER).url, message("tools/list"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "nobody records the MCP server 'weather'" in done.stderr
    assert "--upstream mcp:weather=stdio" in done.stderr


def test_a_program_that_is_not_there_is_said_to_be(program_recorder):
    """In one line; and who asks the recorder without the bridge reads the command."""
    done = subprocess.run(
        [*PROGRAM, "--url", program_recorder.url, "--", "no-such-program"],
        capture_output=True, text=True, timeout=GIVE_UP, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "cannot start 'no-such-program'" in done.stderr
    answer = send(program_recorder, "tools/list")
    assert answer.status_code == 502
    assert "mockllm mcp weather -- CMD" in answer.json()["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_program_of_the_official_package_is_recorded(serve, tmp_path, mode):
    """Between its own client and server; the document plays in both eras."""
    program = REAL.replace('transport="streamable-http", port=0', "")
    options = RecordOptions(folder=tmp_path, servers={"weather": "stdio"})
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    with ServerThread((), ServerOptions(record=options)) as thread:
        bridge = [*PROGRAM[1:], "--url", thread.url, "--", sys.executable, "-c", program]
        started = StdioServerParameters(command=PROGRAM[0], args=bridge, env=environment)
        seen = asyncio.run(use_real(started, mode))
    served = serve((tmp_path / "mcp-weather.yaml").read_text())
    for era in ("auto", "legacy"):
        assert asyncio.run(use_real(f"{served.url}/mcp/weather", era)) == seen


def test_a_document_in_the_folder_is_no_conversation(tmp_path):
    """What is recorded or imported later continues none of it."""
    (tmp_path / "mcp-weather.yaml").write_text(WEATHER)
    assert import_files([], Folder(tmp_path)) == []


def recorded_options(folder, service, mode, ignore=()):
    """The options of a recorder of the server of the tests, as the command line makes them."""
    return record_options(
        folder, mode, ignore, upstreams=(f"mcp:weather={service.url}/mcp/weather",),
        trust_env=False, match=None, redact=(), auxiliary=False,
    )  # fmt: skip


def record_one(options, arguments):
    """What the recorder of some options answers to a call, and what its journal has."""
    with (
        ServerThread((), ServerOptions(record=options)) as thread,
        httpx.Client(base_url=thread.url, timeout=GIVE_UP) as client,
    ):
        served = Served(thread, client)
        got = texts(call(served, "show", arguments))
        return got, served.journal()[-1]["outcome"]


RUNS = WEATHER[: WEATHER.index("calls:")] + "calls: [{tool: show, answer: {text: x}}]\n"


def test_what_is_ignored_in_requests_is_ignored_in_calls(serve, tmp_path):
    """`match-ignore` counts as for models: a call of another run gets the recorded answer."""
    runs = [f"6f1c0c0e-2f4b-4a7e-9d0a-3f0f6f1c0c0{number}" for number in (1, 2)]
    record_one(recorded_options(tmp_path, serve(RUNS), "add", ("uuid",)), {"run": runs[0]})
    document = (tmp_path / "mcp-weather.yaml").read_text()
    assert "ignore: [uuid]" in document
    assert texts(call(serve(document), "show", {"run": runs[1]})) == ["x"]


def test_a_document_is_not_overwritten(serve, tmp_path):
    """Whatever file it is in: a recorder refuses to begin, and says what to do."""
    service, edited = serve(RUNS), RUNS.replace("text: x", "text: by hand")
    for file in ("mcp-weather.yaml", "servers.yaml"):
        (tmp_path / file).write_text(edited)
        with pytest.raises(UsageError, match=r"has the MCP server 'weather' already.* move"):
            record_one(recorded_options(tmp_path, service, "add"), {})
        assert (tmp_path / file).read_text() == edited
        if file == "servers.yaml":  # it would stand in two files
            with pytest.raises(UsageError, match="already"):
                record_one(recorded_options(tmp_path, service, "all"), {})
        (tmp_path / file).unlink()


def test_modes_say_what_becomes_of_a_document(serve, tmp_path):
    """It is replaced where all is recorded anew; else it stays, and its server is not asked."""
    service = serve(RUNS)
    file = tmp_path / "mcp-weather.yaml"
    for mode, got in (("all", ["x"]), ("once", None), ("new_episodes", None)):
        file.write_text(RUNS.replace("text: x", "text: by hand"))
        options = recorded_options(tmp_path, service, mode)
        with (
            ServerThread(load(file), ServerOptions(record=options)) as thread,
            httpx.Client(base_url=thread.url, timeout=GIVE_UP) as client,
        ):
            assert texts(call(Served(thread, client), "show")) == (got or ["by hand"])
        assert ("by hand" in file.read_text()) is (got is None)


def test_pages_of_other_origins_make_no_recorder_ask(record, tmp_path):
    """As with the services of models: what a page sends goes no further, and is not written."""

    def use(served):
        params = {"name": "get_forecast", "arguments": {"city": "Oslo"}}
        headers = {"origin": "https://x.example"}
        assert send(served, "tools/call", params, headers=headers).status_code == 403

    record(BOTH, use)
    assert not list(tmp_path.glob("mcp-*"))
