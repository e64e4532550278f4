"""WebSockets pass a recorder in both directions, as bytes, and their messages are recorded."""

import asyncio
import json
import shutil
import socket
import subprocess
from functools import partial
from queue import SimpleQueue

import aiohttp
import pytest
from openai import OpenAI
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import CloseCode
from websockets.sync.client import connect

from mockllm.play.replay.fault_plan import read_plan
from mockllm.play.replay.loading import load
from mockllm.play.tapes.socket_tape import load_session
from mockllm.serve.interception.hosts import Hosts
from mockllm.serve.server.options import InterceptOptions, ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.serve.interception.redirecting import redirected
from tests.serve.server.recording.test_upgrades import recorder
from tests.serve.server.recording.websocket_service import echo, service
from tests.timeouts import GIVE_UP

KEY = "openai-insecure-api-key.ek_68af296e8e408191a1120ab6383263c2"


def opened(url, target="/v1/realtime?model=gpt-realtime&x=a%2Fb", **options):
    """A WebSocket of a client."""
    return connect(
        url.replace("http", "ws", 1) + target, open_timeout=GIVE_UP, proxy=None, **options
    )


def sessions(tmp_path):
    """The sessions on the tapes, in the order of their scenarios."""
    tapes = (tmp_path / "recorded").glob("*.jsonl")
    tapes = sorted(tapes, key=lambda tape: (len(tape.name), tape.name))
    return [load_session(tape.read_bytes(), tape.name) for tape in tapes]


def said(session):
    """The messages of a session, each with who sent it; pings left out."""
    return [
        (one.side, one.kind, one.data, one.code, one.reason)
        for one in session.messages
        if one.kind not in ("ping", "pong")
    ]


MESSAGES = ("Zürich", b"\x00\xff", "", "a" * 800_000, bytes(range(256)) * 900)


def test_everything_passes(tmp_path):
    """Path, query, headers and the chosen subprotocol, text and binary messages, larger than
    buffers, compressed and not, pings of either side, and how the client ends it."""
    ended = SimpleQueue()
    with (
        service(partial(echo, ended=ended)) as url,
        recorder(url, tmp_path) as (thread, lines),
    ):
        for compression in (None, "deflate"):
            with opened(
                thread.url,
                subprotocols=["realtime", KEY],
                additional_headers={"Authorization": "Bearer any"},
                compression=compression,
                max_size=None,
            ) as client:
                assert client.subprotocol == "realtime"
                assert json.loads(client.recv(GIVE_UP)) == {
                    "path": "/v1/realtime?model=gpt-realtime&x=a%2Fb",
                    "key": "Bearer any",
                    "subprotocol": "realtime",
                }
                for message in MESSAGES:
                    client.send(message)
                    assert client.recv(GIVE_UP) == message
                client.send(iter(["three ", "fragments ", "of one"]))
                assert client.recv(GIVE_UP) == "three fragments of one"
                assert client.ping().wait(GIVE_UP)
                client.send("ping")
                assert client.recv(GIVE_UP) == "pong"
                client.close(4001, "enough")
            assert ended.get(timeout=GIVE_UP) == (4001, "enough")
        entries = thread.server.sessions.get("default").journal
        assert [(entry.outcome, entry.status) for entry in entries] == [("forwarded", 101)] * 2
        assert KEY not in str([entry.headers for entry in entries])
    assert [line.source for line in lines] == ["GET /v1/realtime"] * 2
    assert not any(line.is_missing for line in lines)
    expected = [message.encode() if isinstance(message, str) else message for message in MESSAGES]
    for session in sessions(tmp_path):
        assert KEY not in str(session)
        assert [data for side, _, data, *_ in said(session) if side == "client"][:5] == expected
        assert [data for side, _, data, *_ in said(session) if side == "service"][1:6] == expected
        assert ("client", "close", b"", 4001, "enough") in said(session)
        fragmented = [one.fragments for one in session.messages if one.fragments]
        assert fragmented == [(6, 10, 6, 0)] or fragmented == [(6, 10, 6)]
        assert sum(one.kind == "ping" for one in session.messages) >= 2
        times = [one.at for one in session.messages]
        assert times == sorted(times)
        assert dict(session.headers)["sec-websocket-protocol"] == "realtime"
    extensions = ["sec-websocket-extensions" in dict(one.headers) for one in sessions(tmp_path)]
    assert sorted(extensions) == [False, True]


@pytest.mark.parametrize("code", [1000, 1001, 1008, 1011, 1013, 4000])
def test_how_the_service_ends_it(tmp_path, code):
    """The client gets code and reason."""
    with (
        service() as url,
        recorder(url, tmp_path) as (thread, _),
        opened(thread.url) as client,
    ):
        client.recv(GIVE_UP)
        client.send(f"close {code}")
        with pytest.raises(ConnectionClosed) as ended:
            client.recv(GIVE_UP)
        assert ended.value.rcvd.code == code
        assert ended.value.rcvd.reason == "as you say"
    (session,) = sessions(tmp_path)
    assert ("service", "close", b"", code, "as you say") in said(session)


def test_a_connection_that_breaks(tmp_path):
    """The client sees an end without a close frame; where the client breaks off, so does the
    service."""
    ended = SimpleQueue()
    with (
        service(partial(echo, ended=ended)) as url,
        recorder(url, tmp_path) as (thread, _),
    ):
        with opened(thread.url) as client:
            client.recv(GIVE_UP)
            client.send("break off")
            with pytest.raises(ConnectionClosed) as lost:
                client.recv(GIVE_UP)
            assert lost.value.rcvd is None
        ended.get(timeout=GIVE_UP)
        with opened(thread.url) as client:
            client.recv(GIVE_UP)
            client.socket.shutdown(socket.SHUT_RDWR)
            assert ended.get(timeout=GIVE_UP) == (CloseCode.ABNORMAL_CLOSURE, "")
    ends = [[one for one in each.messages if one.kind == "close"] for each in sessions(tmp_path)]
    assert [[(one.side, one.how) for one in end] for end in ends] == [
        [("service", "eof")],
        [("client", "eof")],
    ]


def test_a_service_that_refuses(tmp_path):
    """Status and body of its answer pass as those of any other, and are recorded: a replay
    refuses it, too."""

    def refuse(connection, request):
        return connection.respond(426, "over HTTP, please")

    with (
        service(process_request=refuse) as url,
        recorder(url, tmp_path) as (thread, _),
    ):
        with pytest.raises(InvalidStatus) as refused, opened(thread.url):
            pass
        assert refused.value.response.status_code == 426
        assert refused.value.response.body == b"over HTTP, please"
    with ServerThread(load([tmp_path / "recorded"]), ServerOptions(grace=0)) as thread:
        with pytest.raises(InvalidStatus) as refused, opened(thread.url):
            pass
        assert refused.value.response.status_code == 426
        assert refused.value.response.body == b"over HTTP, please"


def test_a_service_that_is_away(tmp_path):
    """The client gets a 502 that says so."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with recorder(url, tmp_path) as (thread, _):
        with pytest.raises(InvalidStatus) as refused, opened(thread.url):
            pass
        assert refused.value.response.status_code == 502
        assert b"does not answer" in refused.value.response.body


def test_a_recorder_that_stops(tmp_path):
    """Both sides are ended; what was said up to then is recorded."""
    ended = SimpleQueue()
    with service(partial(echo, ended=ended)) as url:
        with recorder(url, tmp_path) as (thread, _):
            client = opened(thread.url)
            client.recv(GIVE_UP)
        with pytest.raises(ConnectionClosed), client:
            client.recv(GIVE_UP)
        assert ended.get(timeout=GIVE_UP) == (CloseCode.ABNORMAL_CLOSURE, "")
    (session,) = sessions(tmp_path)
    assert [one.side for one in session.messages] == ["service"]


def test_a_session_that_is_too_large(tmp_path):
    """It passes; what is recorded ends where it became too large, and a line gives the reason."""
    with (
        service() as url,
        recorder(url, tmp_path, max_recorded=1000) as (thread, lines),
        opened(thread.url, compression=None) as client,
    ):
        client.recv(GIVE_UP)
        for message in ("small", "a" * 2000):
            client.send(message)
            assert client.recv(GIVE_UP) == message
        client.close()
    (session,) = sessions(tmp_path)
    assert [one.data for one in session.messages][1:] == [b"small", b"small"]
    (reported,) = [line for line in lines if line.outcome == "skipped"]
    assert reported.is_missing
    assert "up to message 3: more than 1000 bytes passed" in reported.description


def test_faults_do_not_strike(tmp_path):
    """The journal says so: a verdict must not rest on a fault that did not come."""
    with (
        service() as url,
        recorder(url, tmp_path, faults=read_plan(["cut:after=3events"], rate=1.0, seed="0")) as (
            thread,
            _,
        ),
        opened(thread.url) as client,
    ):
        client.recv(GIVE_UP)
        client.close()
        (entry,) = thread.server.sessions.get("default").journal
        assert entry.sent.missed == "none strikes in a WebSocket"
    assert len(sessions(tmp_path)) == 1


def test_a_replay_refuses_it():
    """The error says why, and what to do."""
    with ServerThread((), ServerOptions(grace=0)) as thread:
        for target in ("/v1/chat/completions", "/any"):
            with pytest.raises(InvalidStatus) as refused, opened(thread.url, target):
                pass
            assert refused.value.response.status_code == 501
            message = refused.value.response.body.decode()
            assert "mockllm plays Responses, Realtime and Live over a WebSocket" in message
            assert "NO_PROXY" in message


def test_openai_sdk(tmp_path):
    """Realtime and Responses over a WebSocket, led by a base URL; then again from what was
    recorded."""

    def speak(connection):
        asked = json.loads(connection.recv(GIVE_UP))
        is_realtime = "/realtime" in connection.request.path
        answer = {"type": f"realtime.{asked['type']}"} if is_realtime else ANSWER
        connection.send(json.dumps(answer))

    def talk(url):
        with OpenAI(base_url=f"{url}/v1", api_key="any") as openai:
            with openai.realtime.connect(model="gpt-realtime") as realtime:
                realtime.response.create()
                assert realtime.recv().type == "realtime.response.create"
            with openai.responses.connect() as responses:
                responses.response.create(model="m", input="hi")
                assert json.loads(responses.recv_bytes()) == ANSWER

    with service(speak) as url, recorder(url, tmp_path) as (thread, lines):
        talk(thread.url)
    assert [line.source for line in lines] == ["GET /v1/realtime", "GET /v1/responses"]
    assert not any(line.is_missing for line in lines)
    with ServerThread(load([tmp_path / "recorded"]), ServerOptions(grace=0)) as thread:
        talk(thread.url)


ANSWER = {
    "type": "error",
    "status": 429,
    "error": {"code": "rate_limit_exceeded", "message": "No."},
}


def test_a_page(tmp_path):
    """A page of another origin is refused, and nothing of it is recorded."""
    with service() as url, recorder(url, tmp_path) as (thread, lines):
        with (
            pytest.raises(InvalidStatus) as refused,
            opened(thread.url, origin="https://x.example"),
        ):
            pass
        assert refused.value.response.status_code == 403
    assert lines == []


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_node(tmp_path):
    """Node's own WebSocket, which Node 20 has behind a flag."""
    program = """
const socket = new WebSocket(process.argv[1] + '/v1/realtime', ['realtime', process.argv[2]])
socket.onmessage = event => {
  const said = event.data
  console.log(said)
  socket.send(said.startsWith('{') ? 'Zürich' : 'close 4002')
}
socket.onclose = event => console.log(event.code, event.reason)
"""
    with service() as url, recorder(url, tmp_path) as (thread, _):
        command = ["node", "--experimental-websocket", "-e", program]
        done = subprocess.run(
            [*command, thread.url.replace("http", "ws"), KEY],
            capture_output=True,
            text=True,
            timeout=GIVE_UP,
        )
    assert done.returncode == 0, done.stderr
    greeting, echoed, ended = done.stdout.splitlines()
    assert json.loads(greeting)["subprotocol"] == "realtime"
    assert (echoed, ended) == ("Zürich", "4002 as you say")


def test_aiohttp_in_this_process(tmp_path):
    """It is redirected, and sees the URL that it asked for."""

    async def speak(url):
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{url}/v1/realtime") as client,
        ):
            await client.receive_str()
            await client.send_bytes(b"\x00")
            return await client.receive_bytes()

    with service() as url:
        place = url.removeprefix("http://")
        intercept = InterceptOptions(Hosts((place,)), None)
        with recorder("http://127.0.0.1:9", tmp_path, intercept=intercept) as (thread, lines):
            with redirected(thread.url, Hosts((place,)), intercept.key):
                assert asyncio.run(speak(f"ws://{place}")) == b"\x00"
            (entry,) = thread.server.sessions.get("test").journal
            assert entry.headers["host"] == place
    assert len(lines) == 1
