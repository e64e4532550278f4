"""Responses over a WebSocket, message by message: the same as over SSE, lanes at the same time,
continuations, steering, faults, bad messages, and both ends of a connection."""

import json
import re
from contextlib import contextmanager
from dataclasses import replace
from socket import SHUT_RDWR

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from mockllm.checking.cases.compile import check_api
from mockllm.core.errors import UsageError
from mockllm.play.replay.loading import load
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.framing.sse import decode
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Route
from mockllm.wire.protocols.openai_responses.socket import MOST_LANES, ResponsesConversation
from tests.clients.conversation import FOLDER, SCENARIOS, first
from tests.timeouts import GIVE_UP

PATH = "/v1/responses"
TALK = """
scenario: talk
match: any
turns:
  - {reply: {text: one two, split: words}}
  - {reply: {text: three}}
  - {reply: {text: four}}
"""


@contextmanager
def opened(url, path=PATH, **options):
    """A WebSocket of a client."""
    address = url.replace("http", "ws", 1) + path
    options = {"open_timeout": GIVE_UP, "proxy": None, "max_size": None, **options}
    with connect(address, **options) as socket:
        yield socket


def ask(socket, input="hi", **fields):
    message = {"type": "response.create", "model": "gpt-5.2", "input": input, **fields}
    socket.send(json.dumps(message))


def receive(socket):
    return json.loads(socket.recv(GIVE_UP))


def answer(socket, input="hi", **fields):
    """The messages of the answer to a new request."""
    ask(socket, input, **fields)
    return rest(socket)


def rest(socket):
    """The messages up to the end of an answer."""
    messages = [receive(socket)]
    while not is_end(messages[-1]):
        messages.append(receive(socket))
    return messages


def is_end(message):
    ends = "response.completed", "response.incomplete", "response.failed", "error"
    return message["type"] in ends


def test_messages_are_the_events_over_sse():
    """For every shipped scenario: numbers, ids, and the error in the middle of an answer."""
    with (
        ServerThread(load([FOLDER]), ServerOptions(speed=0)) as thread,
        httpx.Client(base_url=thread.url, timeout=GIVE_UP) as client,
    ):
        for name, scenario in SCENARIOS.items():
            body = {**first(scenario, "responses"), "model": f"mock/{name}"}
            sent = client.post(f"/s/http-{name}{PATH}", json={**body, "stream": True})
            with opened(thread.url, f"/s/socket-{name}{PATH}") as socket:
                socket.send(json.dumps({"type": "response.create", **body}))
                if sent.status_code >= 400:
                    message = receive(socket)
                    assert message["status"] == sent.status_code, name
                    del message["error"]["headers"]
                    assert message["error"] == sent.json()["error"], name
                    continue
                frames = [frame.data for frame in decode(sent.content)]
                expected = [data for data in frames if data is not None]
                assert [socket.recv(GIVE_UP) for _ in expected] == expected, name


def test_a_conversation_in_one_session(serve):
    """Each message is an entry of the journal, with the headers of the connection."""
    served = serve(TALK)
    with opened(served.url, f"/s/mine{PATH}", additional_headers={"x-who": "me"}) as socket:
        one = answer(socket, store=False)[-1]["response"]
        assert one["store"] is False
        two = answer(socket, store=False, previous_response_id=one["id"])[-1]["response"]
        assert two["output"][0]["content"][0]["text"] == "three"
        assert two["previous_response_id"] == one["id"]
    first, second = served.journal("mine")
    assert [first["turn"], second["turn"]] == [0, 1]
    assert first["headers"]["x-who"] == "me"
    assert first["headers"]["upgrade"] == "websocket"
    assert json.loads(second["body"])["previous_response_id"] == one["id"]


def test_what_a_connection_remembers(serve):
    """Its latest answer of each lane, stored or not; others only if they are stored."""
    served = serve(TALK)
    with opened(served.url) as socket:
        unstored = answer(socket, store=False)[-1]["response"]["id"]
        stored = answer(socket, previous_response_id=unstored)[-1]["response"]["id"]
        (error,) = answer(socket, store=False, previous_response_id=unstored)
        assert error["error"]["code"] == "previous_response_not_found"
    with opened(served.url) as socket:
        following = answer(socket, previous_response_id=stored)[-1]["response"]["id"]
        (error,) = answer(socket, previous_response_id="resp_" + "0" * 40)
        assert error["status"] == 400
        assert answer(socket, previous_response_id=following)[-1]["type"] == "response.completed"


def test_warm_up(serve):
    """It has an id and no output; the next request continues it, and is the first turn."""
    served = serve("""
scenario: tuned
match: {user: hi}
turns: [{reply: {text: done}}]
""")
    with opened(served.url) as socket:
        created, completed = answer(socket, input=[], generate=False, instructions="Be kind.")
        assert (created["type"], created["sequence_number"]) == ("response.created", 0)
        assert (completed["sequence_number"], completed["response"]["output"]) == (1, [])
        id = created["response"]["id"]
        messages = answer(socket, previous_response_id=id, store=False)
        named = {m["response"]["previous_response_id"] for m in messages if "response" in m}
        assert named == {id}
        assert messages[-1]["response"]["output"][0]["content"][0]["text"] == "done"
        id = answer(socket, generate=False)[0]["response"]["id"]
        last = answer(socket, input=[], previous_response_id=id)[-1]
        assert last["response"]["output"][0]["content"][0]["text"] == "done"


STUCK = """
scenario: stuck
match: {user: stuck}
turns: [{reply: [{text: first}, {pause: 10m}, {text: never}]}]
---
scenario: quick
match: {user: quick}
turns: [{reply: {text: there}, repeat: true}]
"""


def test_lanes(serve):
    """Lanes are answered at the same time, each in its order; every message names its lane."""
    served = serve(STUCK)
    with opened(served.url) as socket:
        ask(socket, "stuck", stream_id="a")
        ask(socket, "quick", stream_id="a")
        ask(socket, "quick", stream_id="b")
        ended = []
        while not ended:
            message = receive(socket)
            if is_end(message):
                ended.append(message["stream_id"])
        assert ended == ["b"]
        ask(socket, "quick")
        messages = []
        while not (messages and is_end(messages[-1])):
            message = receive(socket)
            if message.get("stream_id") != "a":
                messages.append(message)
        assert not any("stream_id" in message for message in messages)


def test_most_lanes(serve):
    served = serve(TALK)
    with opened(served.url) as socket:
        for number in range(MOST_LANES):
            answer(socket, stream_id=f"lane-{number}")
        (error,) = answer(socket, stream_id="another")
        assert error["error"]["code"] == "websocket_stream_limit_reached"
        assert answer(socket, stream_id="lane-0")[-1]["type"] == "response.completed"


STEERED = """
scenario: steered
match: {user: go}
turns:
  - {reply: [{text: Now}, {pause: 200ms}, {text: " there"}]}
  - {request: {user: faster}, reply: {text: Fast.}}
---
scenario: calling
match: {user: call}
turns:
  - {reply: [{text: Now}, {pause: 200ms}, {tool: look, id: call_1}]}
  - {request: {results: {call_1: found}, user: faster}, reply: {text: Found.}}
"""


def test_steering(serve):
    """A response that is steered goes on to its end, and a successor follows, unless it waits for
    results: then what was said comes before them."""
    served = serve(STEERED)
    with opened(served.url) as socket:
        ask(socket, "go", stream_id="a")
        id = receive(socket)["response"]["id"]
        socket.send(
            json.dumps({"type": "response.steer", "previous_response_id": id, "input": "faster"})
        )
        messages = [*rest(socket), *rest(socket)]
        kinds = [message["type"] for message in messages]
        accepted = kinds.index("response.steer.accepted")
        assert accepted < kinds.index("response.completed") < kinds.index("response.created")
        steer = messages[accepted]["steer"]
        assert steer["previous_response_id"] == id
        last = messages[-1]["response"]
        assert (last["previous_response_id"], messages[-1]["stream_id"]) == (id, "a")
        assert last["output"][0]["content"][0]["text"] == "Fast."

        ask(socket, "call", tools=[{"type": "function", "name": "look", "parameters": {}}])
        id = receive(socket)["response"]["id"]
        steering = {"type": "response.steer", "previous_response_id": id, "input": "faster"}
        socket.send(json.dumps(steering))
        rest(socket)
        pending = receive(socket)
        assert pending["type"] == "response.steer.pending"
        stub = {"type": "function_call_output", "call_id": "call_1", "name": "look"}
        assert pending["required_input"] == [stub]
        result = {"type": "function_call_output", "call_id": "call_1", "output": "found"}
        last = answer(socket, input=[result], previous_response_id=id)[-1]["response"]
        assert last["output"][0]["content"][0]["text"] == "Found."

        for named, input, code in (
            (id, "more", "response_already_completed"),
            ("resp_1", "more", "response_not_found"),
            (id, [], "invalid_input"),
            (id, [{"role": "system", "content": "x"}], "invalid_input"),
        ):
            steering = {"type": "response.steer", "previous_response_id": named, "input": input}
            socket.send(json.dumps(steering))
            failed = receive(socket)
            assert (failed["type"], failed["error"]["code"]) == ("response.steer.failed", code)
            assert failed["steer"]["input"] == input


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ("{", "invalid_json"),
        ("[1]", "invalid_json"),
        ("[" * 100_000, "invalid_json"),
        (b"\xff\xfe", "invalid_json"),
        ('{"type": "session.update"}', "invalid_value"),
        ('{"type": "response.create", "stream_id": 7, "model": "m", "input": "x"}', None),
        ('{"type": "response.create", "input": "x"}', "missing_required_parameter"),
    ],
    ids=["no JSON", "no object", "deep", "no UTF-8", "type", "lane", "model"],
)
def test_bad_messages(serve, sent, code):
    """They end a request, and not the connection, and stand in the journal."""
    served = serve(TALK)
    with opened(served.url) as socket:
        socket.send(sent)
        error = receive(socket)
        assert (error["type"], error["status"], error["error"]["code"]) == ("error", 400, code)
        assert answer(socket)[-1]["type"] == "response.completed"
    assert [entry["outcome"] for entry in served.journal()] == ["invalid", "played"]


def test_large_messages_and_binary_ones(serve):
    """Histories have images in them; a client may send text in binary messages."""
    served = serve(TALK)
    with opened(served.url) as socket:
        message = {"type": "response.create", "model": "m", "input": "x" * 10_000_000}
        socket.send(json.dumps(message).encode())
        assert rest(socket)[-1]["type"] == "response.completed"


def test_attempts_and_limits_come_as_messages(serve):
    served = serve("""
scenario: busy
match: any
turns:
  - attempts: [{http: 429, retry_after: 2s}]
    reply: {text: fine}
""")
    with opened(served.url) as socket:
        (error,) = answer(socket)
        assert (error["status"], error["error"]["code"]) == (429, "rate_limit_exceeded")
        assert error["headers"]["retry-after"] == error["error"]["headers"]["retry-after"] == "2"
        assert answer(socket)[-1]["type"] == "response.completed"


@pytest.mark.parametrize(("end", "code"), [("orderly", 1000), ("close", None), ("reset", None)])
def test_a_cut_ends_the_connection(serve, end, code):
    """Where the body over HTTP ends like a whole one, the connection does: with 1000; else it ends
    without a close frame."""
    served = serve(TALK)
    headers = {"x-mockllm-fault": f"cut:after=5 events,end={end}"}
    with opened(served.url, additional_headers=headers) as socket:
        ask(socket)
        assert [receive(socket)["sequence_number"] for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(ConnectionClosed) as caught:
            socket.recv(GIVE_UP)
        assert (caught.value.rcvd and caught.value.rcvd.code) == code
    (entry,) = served.journal()
    assert entry["fault"].startswith("cut")


def test_a_stall_leaves_the_connection_open(serve):
    served = serve(TALK)
    headers = {"x-mockllm-fault": "stall:after=2 events"}
    with opened(served.url, additional_headers=headers) as socket:
        ask(socket)
        assert [receive(socket)["sequence_number"] for _ in range(2)] == [0, 1]
        assert socket.ping().wait(GIVE_UP)


def test_a_server_that_stops_says_so(serve):
    with (
        ServerThread(load([FOLDER]), ServerOptions()) as thread,
        opened(thread.url) as socket,
    ):
        assert socket.ping().wait(GIVE_UP)
        thread.wait(thread.server.stop)
        with pytest.raises(ConnectionClosed) as caught:
            socket.recv(GIVE_UP)
        assert caught.value.rcvd.code == 1001


def test_a_client_that_drops_the_connection(serve):
    """Codex always does: what was under way is over, and nobody is told of an error."""
    served = serve(STUCK)
    with opened(served.url) as socket:
        ask(socket, "stuck")
        receive(socket)
        socket.socket.shutdown(SHUT_RDWR)
    with opened(served.url) as socket:
        assert answer(socket, input="quick")[-1]["type"] == "response.completed"


def test_the_lifetime_of_a_connection(serve, monkeypatch):
    """After 60 minutes the service says so, and closes."""
    monkeypatch.setattr(ResponsesConversation, "lifetime", 0.0)
    with opened(serve(TALK).url) as socket:
        assert receive(socket)["error"]["code"] == "websocket_connection_limit_reached"
        with pytest.raises(ConnectionClosed):
            socket.recv(GIVE_UP)


# An API that has only WebSockets

ONLY_SOCKETS = replace(
    PROTOCOLS["responses"],
    address=replace(
        PROTOCOLS["responses"].address,
        name="only",
        routes=(Route("GET", "/v1/only", "generate"),),
        paths=(re.compile(r"/only$"),),
    ),
)


@pytest.fixture
def only_sockets(monkeypatch):
    """The messages of Responses, at paths that take no POST."""
    monkeypatch.setitem(PROTOCOLS, "only", ONLY_SOCKETS)
    assert "only" not in PROTOCOLS.over_http


@pytest.mark.usefixtures("only_sockets")
@pytest.mark.parametrize("path", ["/v1/only", "/s/mine/v1/only", "/some/proxy/only", "//v1/only"])
def test_its_socket_is_found_by_the_end_of_a_path(serve, path):
    served = serve(TALK)
    with opened(served.url, path) as socket:
        assert answer(socket)[-1]["type"] == "response.completed"
    (entry,) = served.journal("mine" if "mine" in path else "default")
    assert (entry["api"], entry["outcome"]) == ("only", "played")


@pytest.mark.usefixtures("only_sockets")
def test_it_answers_nothing_over_http(serve):
    served = serve(TALK)
    with httpx.Client(base_url=served.url, timeout=GIVE_UP) as client:
        unopened = client.get("/v1/only")
        assert (unopened.status_code, unopened.json()["error"]["code"]) == (426, "websocket")
        assert client.post("/v1/only", json={}).status_code == 405


@pytest.mark.usefixtures("only_sockets")
def test_it_is_checked_as_an_accumulator_only():
    with pytest.raises(UsageError, match=r"only WebSockets.*--level payloads"):
        check_api("only", over_http=True)
    check_api("only")
