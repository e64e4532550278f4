"""Gates: an answer waits until the test opens them, and no byte of it is different."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from mockllm import ServerOptions, ServerThread, loads
from mockllm.play.replay.client_requests import first_body
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import OVER_HTTP
from tests.serve.server.sockets import test_live as live
from tests.serve.server.sockets.test_realtime import Client
from tests.serve.server.sockets.test_sockets import ask, opened, receive
from tests.timeouts import GIVE_UP

TURN = "scenario: s\nmatch: any\nturns:\n- {reply: [{text: one}, {text: two}], GATE}\n"
IN_TURN = TURN.replace("GATE", "gate: door")
IN_REPLY = TURN.replace("{text: one}, ", "{text: one}, {gate: door}, ").replace(", GATE", "")
AT_BEGIN = TURN.replace("{text: one}, ", "{gate: door}, {text: one}, ").replace(", GATE", "")
AT_END = TURN.replace("{text: two}", "{text: two}, {gate: door}").replace(", GATE", "")
OPEN = TURN.replace(", GATE", "")

LONGEST = 60.0


@contextmanager
def asked(url: str, api: str, *, stream: bool = True, session: str = "") -> Iterator[socket.socket]:
    """A connection on which a client has sent a request that closes it."""
    protocol, where = PROTOCOLS[api], urlsplit(url)
    body = {**first_body(protocol, "m", "hi"), "stream": stream}
    if not stream or "stream" not in first_body(protocol, "m", "hi"):
        del body["stream"]
    if not stream and api == "ollama":  # it streams by itself
        body["stream"] = False
    path, data = protocol.client.path_of("m", stream=stream), json.dumps(body).encode()
    head = (
        f"POST {session}{path} HTTP/1.1\r\nhost: {where.netloc}\r\nauthorization: Bearer k\r\n"
        "x-api-key: k\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n"
        f"content-length: {len(data)}\r\nconnection: close\r\n\r\n"
    )
    with socket.create_connection((where.hostname, where.port), GIVE_UP) as connection:
        connection.sendall(head.encode() + data)
        yield connection


def to_end(connection: socket.socket) -> bytes:
    data = b""
    while part := connection.recv(65536):
        data += part
    return data


def until(connection: socket.socket, end: bytes) -> bytes:
    data = b""
    while end not in data:
        part = connection.recv(65536)
        assert part, data
        data += part
    return data


def at_once(connection: socket.socket) -> bytes:
    """What has arrived; the connection stays open."""
    connection.setblocking(False)
    data = b""
    try:
        while part := connection.recv(65536):
            data += part
        raise AssertionError("the connection was closed")
    except BlockingIOError:
        return data
    finally:
        connection.settimeout(GIVE_UP)


def answers(text: str, api: str, *, stream: bool, **options: Any) -> bytes:
    """A whole answer where no gate is, or all are open."""
    with ServerThread(loads(text), ServerOptions(**options)) as server:
        if "door" in text:
            server.wait(server.server.release, "default", "door")
        with asked(server.url, api, stream=stream) as connection:
            return to_end(connection)


def waits(server: ServerThread, gate: str = "door", session: str = "default") -> None:
    assert server.wait(server.server.wait_for_gate, session, gate, LONGEST) is True


def release(server: ServerThread, gate: str = "door", session: str = "default") -> None:
    server.wait(server.server.release, session, gate)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("api", OVER_HTTP)
def test_the_same_bytes_only_later(api: str, stream: bool) -> None:
    """Over each API. Before a gate of the turn nothing comes, no status either. Of a stream, what
    stands before a gate in the reply has arrived; of a body that is sent whole, nothing."""
    whole = answers(OPEN, api, stream=stream)
    assert b"one" in whole
    in_parts = b"transfer-encoding: chunked" in whole  # AG-UI has nothing but streams
    for text in (IN_TURN, IN_REPLY, AT_BEGIN, AT_END):
        assert answers(text, api, stream=stream) == whole
        with ServerThread(loads(text), ServerOptions(speed=0)) as server:
            with asked(server.url, api, stream=stream) as connection:
                waits(server)
                before = b""
                if in_parts and text is IN_REPLY:
                    before = until(connection, b"one")
                elif in_parts and text is AT_BEGIN:
                    before = until(connection, b"\r\n\r\n")
                    assert before.endswith(b"\r\n\r\n")
                elif in_parts and text is AT_END:
                    before = until(connection, b"two")
                before += at_once(connection)
                assert (b"two" in before) is (in_parts and text is AT_END)
                assert (b"one" in before) is (in_parts and text in (IN_REPLY, AT_END))
                release(server)
                assert before + to_end(connection) == whole
            assert bool(before) is (in_parts and text is not IN_TURN)
            (entry,) = server.settled_exchanges("default", GIVE_UP)
            (wait,) = entry.as_json()["gates"]
            assert (wait["gate"], wait["ended"]) == ("door", "released")
            assert wait["waited"] > 0
            assert (entry.problems, entry.arrived) == ((), True)


def test_pauses_and_latency_go_on_after_a_gate() -> None:
    """The clock of an answer stands still at a gate, and no pause is left out."""
    text = (
        "scenario: s\nmatch: any\nturns:\n- {reply: [{text: one}, {pause: 20ms}, {gate: door}, "
        "{pause: 30ms}, {text: two}], timing: {ttft: 10ms}}\n"
    )
    for rate in (1.0, 2.0):
        with ServerThread(loads(text), ServerOptions(speed=rate)) as server:
            began = time.monotonic()
            with asked(server.url, "chat") as connection:
                waits(server)
                assert time.monotonic() - began >= 0.030 / rate
                release(server)
                to_end(connection)
            assert time.monotonic() - began >= 0.060 / rate
            (entry,) = server.settled_exchanges("default", GIVE_UP)
            assert entry.sent.ended is not None
            assert entry.sent.times is None, "when it was written depends on the test"


@pytest.mark.parametrize("text", [IN_TURN, IN_REPLY, AT_BEGIN, AT_END])
def test_the_connection_stays_open(serve, text: str) -> None:
    """The next request on it is answered, also where the answer has times."""
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    for timing in ("", ", timing: {ttft: 2ms, every: 1ms}"):
        written = text.replace("]}", f"]{timing}}}") if text is not IN_TURN else text
        plain = serve(OPEN).http.post("/v1/chat/completions", json=body).content
        served = serve(written)
        for _ in range(2):
            release(served.thread)
            assert served.http.post("/v1/chat/completions", json=body).content == plain
        first, second = served.journal()
        assert first["connection"] == second["connection"]


def test_a_gate_may_be_opened_before_and_twice(serve) -> None:
    """It stays open, for this answer and for later ones; a reset closes it again."""
    served = serve(IN_REPLY)
    for _ in range(2):
        opened = served.http.post("/_mockllm/gates/door/release").json()
        assert opened == {"session": "default", "gate": "door", "open": True}
    for _ in range(2):
        with asked(served.url, "chat") as connection:
            assert b"two" in to_end(connection)
    found = served.http.get("/_mockllm/gates/door", params={"wait": "1m"}).json()
    assert found == {"session": "default", "gate": "door", "open": True, "waiting": []}
    assert served.http.get("/_mockllm/verify").json()["verdict"] == "good"
    waited = [entry["gates"][0]["waited"] for entry in served.journal()]
    assert waited == [0.0, 0.0]
    served.http.post("/_mockllm/sessions/default/reset")
    with asked(served.url, "chat") as connection:
        found = served.http.get("/_mockllm/gates/door", params={"wait": "1m"}).json()
        assert (found["open"], found["waiting"]) == (False, [1])
        served.http.post("/_mockllm/gates/door/release")
        assert b"two" in to_end(connection)


def test_each_session_has_its_own_gates(serve) -> None:
    """A release opens none of another session, and may name its session in the path."""
    served = serve(IN_REPLY)
    with asked(served.url, "chat", session="/s/a") as one:
        with asked(served.url, "chat", session="/s/b") as other:
            for name in "ab":
                found = served.http.get(f"/_mockllm/gates/door?session={name}&wait=1m").json()
                assert found["waiting"] == [1]
            served.http.post("/s/b/_mockllm/gates/door/release")
            assert b"two" in to_end(other)
        assert b"two" not in until(one, b"one") + at_once(one)
        assert served.http.get("/s/a/_mockllm/gates/door").json()["open"] is False
        served.http.post("/_mockllm/gates/door/release?session=a")
        assert b"two" in to_end(one)


def test_an_unknown_gate_is_refused(serve) -> None:
    """With the gates that there are: a release with a typing mistake would have no effect."""
    served = serve(IN_REPLY)
    for method, path in (("POST", "dor/release"), ("GET", "dor"), ("GET", "x?session=new")):
        answer = served.http.request(method, f"/_mockllm/gates/{path}")
        assert answer.status_code == 404
        message = answer.json()["error"]["message"]
        assert message.endswith(("did you mean 'door'?", "there are: door.")), message
    answer = served.http.get("/_mockllm/gates/door?wait=5")
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        400,
        "wait must be a duration such as 300ms, 2s, 500us or 1m, got '5'.",
    )
    assert served.http.get("/_mockllm/gates/door?wait=1ms").json()["waiting"] == []


LIMITED = IN_REPLY.replace("gate: door", "gate: {name: door, limit: 5ms}")


def test_a_gate_that_nobody_opens_is_reported(serve) -> None:
    """After its limit the answer goes on, whole; journal, log and verdict say what to do."""
    logged: list[Any] = []
    served = serve(LIMITED, log=logged.append)
    with asked(served.url, "chat") as connection:
        assert b"two" in to_end(connection)
    (entry,) = served.journal()
    assert entry["gates"][0]["ended"] == "expired"
    assert entry["gates"][0]["waited"] >= 0.005
    (problem,) = entry["problems"]
    assert problem.startswith("nobody opened the gate 'door' in 0.0")
    assert "mockllm_session.release('door') (POST /_mockllm/gates/door/release)" in problem
    found = served.http.get("/_mockllm/verify").json()
    assert (found["verdict"], found["unopened"]) == ("bad", [{"request": 1, "gate": "door"}])
    assert logged[0].problems == (problem,)
    assert logged[0].arrived


def test_a_client_that_leaves_at_a_gate_frees_everything(serve) -> None:
    """The wait ends with the client: the journal says so, and nothing is left of it."""
    for text in (IN_TURN, IN_REPLY):
        served = serve(text)
        with asked(served.url, "chat"):
            waits(served.thread)
        (entry,) = served.thread.settled_exchanges("default", GIVE_UP)
        assert (entry.in_use, entry.sent.client_gone, entry.expired_gates) == (False, True, ())
        assert entry.as_json()["gates"][0]["ended"] == "left"
        found = served.http.get("/_mockllm/gates/door").json()
        assert (found["open"], found["waiting"]) == (False, [])
        assert "mockllm_open_streams 0" in served.http.get("/metrics").text
        assert served.http.get("/_mockllm/verify").json()["verdict"] == "good"


def test_a_server_that_stops_ends_the_waits() -> None:
    """As it ends other streams, after its grace."""
    with ExitStack() as stack:
        with ServerThread(loads(IN_TURN), ServerOptions(grace=0.01)) as server:
            connection = stack.enter_context(asked(server.url, "chat"))
            waits(server)
        assert to_end(connection) == b""
        (entry,) = server.server.sessions.get("default").journal
        assert (entry.sent.stopped, entry.sent.gates[0].ended) == (True, "left")


def test_faults_strike_after_the_gate() -> None:
    """The test decides when a connection breaks: what is before the gate has arrived. A gate that
    a broken answer does not come to is left out."""
    cut = "fault: {cut: {after: 2 events, end: reset}}"
    one = IN_REPLY.replace("{text: two}]", "{text: two}], " + cut)
    with ServerThread(loads(one)) as server:
        with asked(server.url, "chat") as connection:
            waits(server)
            assert b"one" in until(connection, b"one")
            assert b"two" not in at_once(connection)
            release(server)
            with pytest.raises(ConnectionResetError):
                to_end(connection)
        (entry,) = server.settled_exchanges("default", GIVE_UP)
        assert entry.sent.struck is not None
        assert entry.sent.struck >= sum(entry.sent.gates[0][1:3])
    early = one.replace("2 events", "1 event")
    with ServerThread(loads(early)) as server:
        with asked(server.url, "chat") as connection, pytest.raises(ConnectionResetError):
            to_end(connection)
        (entry,) = server.settled_exchanges("default", GIVE_UP)
        assert entry.sent.gates == ()
    refused = IN_TURN.replace("gate: door", "gate: door, fault: refuse")
    with ServerThread(loads(refused)) as server, asked(server.url, "chat") as connection:
        waits(server)
        assert at_once(connection) == b""
        release(server)
        assert to_end(connection) == b""


ERRORS = """
scenario: s
match: any
turns:
- attempts: [{http: 429, gate: first}, {reply: [{text: one}, {gate: second}, {text: two}]}]
  http: 503
  gate: third
"""


def test_errors_and_earlier_tries_have_gates_of_their_own(serve) -> None:
    """The status waits, too."""
    served = serve(ERRORS)
    for gate, status in (("first", b" 429 "), ("second", b" 200 "), ("third", b" 503 ")):
        with asked(served.url, "chat") as connection:
            waits(served.thread, gate)
            release(served.thread, gate)
            assert status in to_end(connection).splitlines()[0]


ROUTES = """
scenario: r
route: GET /files/one
turns:
- {answer: {json: {a: 1}}, gate: door}
---
scenario: w
route: GET /talk
socket: text
turns:
- {service: [{text: hello}], gate: greeting}
- {client: [{text: go}], service: [{text: one}, {text: two}], gate: words}
"""


def test_routes_and_played_sockets_wait(serve) -> None:
    """A route answers when its gate is open; on a WebSocket the messages of a turn wait."""
    served = serve(ROUTES)
    host = urlsplit(served.url)
    with socket.create_connection((host.hostname, host.port), GIVE_UP) as connection:
        connection.sendall(
            b"GET /files/one HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
        )
        waits(served.thread)
        assert at_once(connection) == b""
        release(served.thread)
        assert to_end(connection).endswith(b'{"a":1}')
    with opened(served.url, "/talk") as client:
        for gate, messages in (("greeting", ["hello"]), ("words", ["one", "two"])):
            if gate == "words":
                client.send("go")
            waits(served.thread, gate)
            with pytest.raises(TimeoutError):
                client.recv(0)
            release(served.thread, gate)
            assert [client.recv(GIVE_UP) for _ in messages] == messages
        client.send("go")


def test_responses_over_a_websocket_wait() -> None:
    """Its messages are those without the gate; of an answer at a gate in the reply, the first ones
    have arrived."""
    sent: dict[str, list[Any]] = {}
    for text in (OPEN, IN_TURN, IN_REPLY):
        messages = sent[text] = []
        with ServerThread(loads(text)) as server, opened(server.url) as client:
            ask(client)
            if text is not OPEN:
                waits(server)
                while text is IN_REPLY and (not messages or "one" not in str(messages[-1])):
                    messages.append(receive(client))
                release(server)
            while not messages or messages[-1]["type"] != "response.completed":
                messages.append(receive(client))
    assert sent[IN_TURN] == sent[IN_REPLY] == sent[OPEN]


def test_a_realtime_answer_is_cancelled_at_a_gate(serve) -> None:
    """`response.cancel` ends the wait at once, and the connection goes on."""
    served = serve(IN_REPLY)
    with opened(served.url, "/v1/realtime?model=gpt-realtime") as socket:
        client = Client(socket)
        client.say()
        client.send("response.create")
        waits(served.thread)
        client.until("response.output_text.delta")
        client.send("response.cancel")
        done = client.until("response.done")[-1]["response"]
        assert done["status"] == "cancelled"
    entries = served.thread.settled_exchanges("default", GIVE_UP)
    (wait,) = [wait for entry in entries for wait in entry.sent.gates]
    assert wait.ended == "left"


def test_the_choices_beside_the_reply_are_not_held(serve) -> None:
    """Only the reply waits; where it comes again as a further choice, all of them."""
    own = IN_REPLY.replace("{text: two}]", "{text: two}], choices: [{reply: other}]")
    body = {"model": "m", "n": 2, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    for text, others in ((own, ["other"]), (IN_REPLY, ["one", "two"])):
        served, read = serve(text), b""
        with served.http.stream("POST", "/v1/chat/completions", json=body) as answer:
            parts = answer.iter_raw()
            waits(served.thread)
            while b"one" not in read or others[0].encode() not in read:
                read += next(parts)
            assert b"two" not in read
            release(served.thread)
            read += b"".join(parts)
        events = [json.loads(line[6:]) for line in read.decode().splitlines() if "{" in line]
        choices = [choice for event in events for choice in event["choices"]]
        texts = [[c["delta"].get("content") for c in choices if c["index"] == n] for n in range(2)]
        assert [[t for t in some if t] for some in texts] == [["one", "two"], others]


def test_an_answer_that_is_looked_up_waits_nowhere(serve) -> None:
    """The client has it already."""
    served = serve(IN_REPLY)
    with asked(served.url, "responses", stream=False) as connection:
        waits(served.thread)
        release(served.thread)
        id = json.loads(to_end(connection).partition(b"\r\n\r\n")[2])["id"]
    served.http.post("/_mockllm/sessions/default/reset")
    assert served.http.get(f"/v1/responses/{id}").status_code == 404
    held = serve(LIMITED.replace("5ms", "10m"))
    release(held.thread)
    with asked(held.url, "responses", stream=False) as connection:
        id = json.loads(to_end(connection).partition(b"\r\n\r\n")[2])["id"]
    assert held.http.get(f"/v1/responses/{id}").status_code == 200


def test_a_turn_of_live_waits_and_is_interrupted(serve) -> None:
    """Its first words have come; what the user says next ends the wait."""
    served = serve(IN_REPLY.replace("}]}", "}]}\n- {reply: bye}"))
    with live.opened(served.url) as client:
        live.begin(client)
        live.say(client)
        waits(served.thread)
        first = {"serverContent": {"modelTurn": {"parts": [{"text": "one"}]}}}
        live.receives(client, first)
        live.say(client, "Stop")
        assert live.rest(client) == live.ENDS
        assert live.text(live.rest(client)) == "bye"
    entries = served.thread.settled_exchanges("default", GIVE_UP)
    assert [wait.ended for entry in entries for wait in entry.sent.gates] == ["left"]
    open_one = serve(IN_REPLY)
    with live.opened(open_one.url) as client:
        live.begin(client)
        release(open_one.thread)
        live.say(client)
        assert live.text(live.rest(client)) == "onetwo"
