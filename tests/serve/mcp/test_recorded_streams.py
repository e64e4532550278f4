"""Recorded MCP servers over HTTP: what they stream passes event by event, in both directions."""

import asyncio
import json
import threading
from contextlib import contextmanager

import httpx
import pytest

from mockllm import ServerOptions, ServerThread
from mockllm.play.replay.loading import load
from mockllm.serve.server.options import RecordOptions
from tests.serve.mcp.servers import message
from tests.serve.server.recording.odd_upstream import CHUNKED, EVENTS, OddUpstream
from tests.timeouts import GIVE_UP

CALL = message("tools/call", {"name": "ask", "arguments": {}, "_meta": {"progressToken": 1}})
RESULT = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "done"}]}}
PROGRESS = {
    "jsonrpc": "2.0",
    "method": "notifications/progress",
    "params": {"progressToken": 1, "progress": 1, "total": 1, "message": "half"},
}
QUESTION = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}}
REPLY = {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}}


def event(value, **fields):
    """A message as an event."""
    head = "".join(f"{name}: {text}\n" for name, text in fields.items())
    return f"{head}data: {json.dumps(value) if value else ''}\n\n"


@pytest.fixture
def upstream():
    """A server that a test gives a script to."""
    with OddUpstream() as upstream:
        yield upstream


@pytest.fixture
def recording(upstream, tmp_path):
    """Records the server `s`; its lines are in `lines`, its document is there in the end."""

    @contextmanager
    def record():
        options = RecordOptions(
            folder=tmp_path, servers={"s": f"{upstream.url}/mcp"}, report=record.lines.append
        )
        with (
            ServerThread((), ServerOptions(record=options)) as thread,
            httpx.Client(base_url=thread.url, timeout=GIVE_UP) as client,
        ):
            yield client

    record.lines = []
    return record


def data_in(response):
    """The messages of a stream, as they come."""
    for line in response.iter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def test_a_call_is_seen_while_it_runs(upstream, recording, tmp_path, serve):
    """Progress comes before the result, and the server asks its client in between; the document
    has the progress, and the line says what it has not."""
    answered = asyncio.Event()

    async def play(request, wire):
        if request.json == REPLY:
            await wire.body("", status="202 Accepted")
            answered.set()
            return
        await wire.head(EVENTS, CHUNKED)
        await wire.chunk(event(PROGRESS))
        await wire.chunk(event(QUESTION))
        await answered.wait()
        await wire.chunk(event(RESULT))
        await wire.end()

    upstream.script = play
    with recording() as client, client.stream("POST", "/mcp/s", json=CALL) as response:
        passed = data_in(response)
        assert [next(passed), next(passed)] == [PROGRESS, QUESTION]
        assert client.post("/mcp/s", json=REPLY).status_code == 202
        assert list(passed) == [RESULT]
    (line,) = recording.lines
    assert line.description == (
        "mcp-s.yaml: 1 tool, 1 call, 1 found again, not played: 1 elicitation/create"
    )
    assert not line.is_missing
    served = serve((tmp_path / "mcp-s.yaml").read_text())
    with served.http.stream("POST", "/mcp/s", json=CALL) as response:
        assert list(data_in(response)) == [PROGRESS, RESULT]


def test_a_stream_is_resumed(upstream, recording, tmp_path):
    """A GET with `last-event-id` gets the result, in a session; so it plays."""
    session = {"mcp-session-id": "one"}

    async def play(request, wire):
        if request.method == "POST":
            await wire.events(event(None, id="e1", retry="10"))
        else:
            assert request.header("last-event-id") == ["e1"]
            await wire.events(event(RESULT, id="e2"))

    upstream.script = play
    with recording() as client:
        assert (
            client.post("/mcp/s", json=CALL, headers=session).text
            == "id: e1\nretry: 10\ndata: \n\n"
        )
        got = client.get("/mcp/s", headers={**session, "last-event-id": "e1"})
        assert got.text == event(RESULT, id="e2")
    (scenario,) = load(tmp_path)
    (answer,) = scenario.server.calls[0].answers
    assert (answer.text, answer.resumed) == (("done",), True)


@pytest.mark.parametrize("body", [None, CALL, message("subscriptions/listen", stateless=True)])
def test_a_client_that_leaves_ends_the_request(upstream, recording, body):
    """A stream that stays open passes, and no replay needs it; a call without an answer is
    missing."""
    noticed = threading.Event()

    async def play(request, wire):
        await wire.head(EVENTS, CHUNKED)
        await wire.chunk(event(PROGRESS))
        await wire.closed_by_peer()
        noticed.set()

    upstream.script = play
    with recording() as client:
        with client.stream("POST" if body else "GET", "/mcp/s", json=body) as response:
            assert next(data_in(response)) == PROGRESS
        assert noticed.wait(GIVE_UP)
    (line,) = recording.lines
    assert line.is_missing is (body is CALL)
    assert (line.description.partition("mcp-s.yaml: ")[2] or line.description) == {
        "GET": "0 tools, 0 calls, 0 found again, not played: 1 notifications/progress",
        "tools/call": "s: tools/call ask has no answer",
        "subscriptions/listen": "s: subscriptions/listen has no answer",
    }[body["method"] if body else "GET"]


def test_statuses_and_headers_pass(upstream, recording, tmp_path):
    """A session, a refusal and how to log in; a call that failed once does so again."""

    async def play(request, wire):
        if len(upstream.requests) == 1:
            await wire.body("no", "WWW-Authenticate: Bearer x", status="401 Unauthorized")
        else:
            headers = ("Content-Type: application/json", "mcp-session-id: s1")
            await wire.body(json.dumps(RESULT), *headers)

    upstream.script = play
    with recording() as client:
        refused, answered = (client.post("/mcp/s", json=CALL) for _ in range(2))
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer x")
    assert (answered.json(), answered.headers["mcp-session-id"]) == (RESULT, "s1")
    (scenario,) = load(tmp_path)
    assert [one.http for one in scenario.server.calls[0].attempts] == [401]
    assert "1 call" not in recording.lines[0].description
    assert "2 calls, 2 found again" in recording.lines[0].description


def test_what_is_no_exchange_of_a_document_is_reported(upstream, recording, tmp_path):
    """Batches, and results that a document would answer otherwise."""
    listed = [{"name": "ask", "inputSchema": {"type": "object"}}] * 2
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": listed}}

    async def play(request, wire):
        await wire.body(json.dumps(answer), "Content-Type: application/json")

    upstream.script = play
    with recording() as client:
        client.post("/mcp/s", json=[CALL])
        client.post("/mcp/s", json=message("tools/list"))
    batch, document = recording.lines
    assert batch.is_missing
    assert "POST /mcp/s" in batch.description
    assert document.not_found == (
        "1 of 1 requests: tools/list: what it gets.tools must have 2 items, got 1"
    )
