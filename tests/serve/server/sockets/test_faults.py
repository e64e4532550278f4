"""Faults on a WebSocket: of its answers, counted in messages, and of the request that opens it."""

from __future__ import annotations

import json

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from mockllm import loads
from mockllm.core.errors import ScenarioError
from mockllm.play.replay.fault_plan import read_plan
from tests.serve.server.sockets.test_sockets import (
    PATH,
    TALK,
    answer,
    ask,
    is_end,
    opened,
    receive,
)
from tests.timeouts import GIVE_UP

WORDS = """
scenario: words
match: any
tools: [{name: look, parameters: {type: object, properties: {city: {type: string}}}}]
turns:
  - reply:
      - {text: one two three, split: words}
      - {tool: look, id: call_1, arguments: '{"city":"Oslo"}', split: 5}
    repeat: true
"""
TOOLS = [{"type": "function", "name": "look", "parameters": {}}]


def broken(served, fault, **options):
    """A WebSocket whose answers have a fault."""
    headers = {"x-mockllm-fault": fault}
    return opened(served.url, additional_headers=headers, **options)


def until_closed(socket):
    """The messages that come, and the close frame."""
    messages = []
    try:
        while True:
            messages.append(receive(socket))
    except ConnectionClosed as closed:
        return messages, closed.rcvd


def drain(socket):
    """Reads until the connection is over."""
    while True:
        receive(socket)


def verify(served):
    return served.http.get("/_mockllm/verify").json()


def whole(served):
    """The messages of the answer without a fault."""
    with opened(served.url, "/s/whole" + PATH) as socket:
        return answer(socket, tools=TOOLS)


@pytest.mark.parametrize("code", [1000, 1001, 1008, 1009, 1011, 1012, 1013, 4000, 4999])
def test_a_close_frame_has_its_code_and_its_reason(serve, code):
    served = serve(WORDS)
    with broken(served, f"cut:after=5 events,code={code},reason=going away now") as socket:
        ask(socket, tools=TOOLS)
        messages, closed = until_closed(socket)
    assert [message["sequence_number"] for message in messages] == [0, 1, 2, 3, 4]
    assert (closed.code, closed.reason) == (code, "going away now")
    (entry,) = served.journal()
    assert entry["fault"] == f"cut:after=5 events,code={code},reason=going away now"
    assert entry["struck"] is not None
    assert entry["struck_after"] > 0
    assert not entry["client_gone"]


def test_a_code_for_no_close_frame(serve):
    served = serve(WORDS)
    with broken(served, "cut:after=2 events,code=1006") as socket:
        ask(socket, tools=TOOLS)
        messages, closed = until_closed(socket)
    assert (len(messages), closed) == (2, None)


def test_a_close_after_the_whole_answer(serve):
    """Over HTTP an end after the last event would change nothing; a close frame ends a
    connection."""
    served = serve(WORDS)
    count = len(whole(served))
    with broken(served, f"cut:after={count} events,code=1001") as socket:
        ask(socket, tools=TOOLS)
        messages, closed = until_closed(socket)
    assert (len(messages), closed.code) == (count, 1001)


def test_a_close_at_a_time(serve):
    served = serve("""
scenario: slow
match: any
turns: [{reply: [{text: first}, {pause: 10m}, {text: never}]}]
""")
    with broken(served, "cut:after=50ms,code=1011") as socket:
        ask(socket)
        messages, closed = until_closed(socket)
    assert closed.code == 1011
    assert "first" in [message.get("delta") for message in messages]


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("inside=text", "response.output_text.delta"),
        ("inside=call_1 arguments", "response.function_call_arguments.delta"),
        ("before=finish", "response.completed"),
    ],
)
def test_places_are_among_the_messages(serve, place, kind):
    """A message in which the place is begins, and is not whole for any client."""
    served = serve(WORDS)
    kinds = [message["type"] for message in whole(served)]
    with broken(served, f"cut:{place},code=1011") as socket:
        ask(socket, tools=TOOLS)
        messages, _ = until_closed(socket)
    begun = len(messages)
    assert kinds[begun] == kind
    assert [message["type"] for message in messages] == kinds[:begun]


def test_a_message_that_breaks_off_has_begun_on_the_wire(serve):
    """In a frame that is not the last one of its message."""
    served = serve(WORDS)
    with broken(served, "cut:inside=event 1,end=close") as socket:
        ask(socket, tools=TOOLS)
        messages, closed = until_closed(socket)
        assert (messages, closed) == ([], None)
        assert socket.protocol.parser_exc is not None or socket.protocol.close_exc is not None
    (entry,) = served.journal()
    assert entry["bytes_sent"] > 20


def test_the_end_of_the_lifetime(serve):
    """The service's own error, and its close."""
    served = serve(WORDS)
    with broken(served, "cut:after=3 events,end=expired") as socket:
        ask(socket, tools=TOOLS)
        messages, closed = until_closed(socket)
    assert messages[-1]["error"]["code"] == "websocket_connection_limit_reached"
    assert (len(messages), closed.code) == (4, 1008)


def test_a_stall_that_answers_no_ping(serve):
    """The client's own timeout of pings ends such a connection."""
    served = serve(WORDS)
    with broken(
        served, "stall:after=2 events,pings=false", ping_interval=0.05, ping_timeout=0.1
    ) as socket:
        ask(socket, tools=TOOLS)
        with pytest.raises(ConnectionClosed, match="keepalive ping timeout"):
            drain(socket)
    (entry,) = served.journal()
    assert entry["fault"] == "stall:after=2 events,pings=false"


def test_pings_are_answered_until_the_fault_and_in_a_stall_that_says_nothing_of_them(serve):
    served = serve(WORDS)
    with broken(served, "stall:after=2 events") as socket:
        assert socket.ping().wait(GIVE_UP)
        ask(socket, tools=TOOLS)
        receive(socket)
        receive(socket)
        assert socket.ping().wait(GIVE_UP)


@pytest.mark.parametrize(
    ("fault", "order"),
    [
        ("duplicate:event=2", [0, 1, 1, 2]),
        ("reorder:event=2", [0, 2, 1, 3]),
        ("fragment:event=2,bytes=3", [0, 1, 2, 3]),
        ("fragment", [0, 1, 2, 3]),
        ("burst:pause=10ms", [0, 1, 2, 3]),
        ("drip:rate=1000000", [0, 1, 2, 3]),
    ],
)
def test_changes_that_leave_the_connection_open(serve, fault, order):
    served = serve(WORDS)
    with broken(served, fault) as socket:
        for _ in range(2):
            numbers = [message["sequence_number"] for message in answer(socket, tools=TOOLS)]
            assert numbers[:4] == order
    assert {entry["fault"] for entry in served.journal()} == {fault}


def test_a_message_in_fragments_comes_in_frames(serve):
    """As a client sees them that asks for frames."""
    served = serve(WORDS)
    with broken(served, "fragment:event=1,bytes=16") as socket:
        ask(socket, tools=TOOLS)
        frames = list(socket.recv_streaming())
        assert len(frames) > 10
        assert {len(frame) for frame in frames[:-1]} == {16}
        assert json.loads("".join(frames))["type"] == "response.created"
        assert len(list(socket.recv_streaming())) == 1


@pytest.mark.parametrize(
    ("fault", "binary"),
    [("garble:what=opcode", {True}), ("garble:what=opcode,event=1", {True, False})],
)
def test_the_wrong_opcode(serve, fault, binary):
    served = serve(WORDS)
    with broken(served, fault) as socket:
        ask(socket, tools=TOOLS)
        messages = [socket.recv(GIVE_UP)]
        while not is_end(json.loads(messages[-1])):
            messages.append(socket.recv(GIVE_UP))
    assert isinstance(messages[0], bytes)
    assert {isinstance(message, bytes) for message in messages} == binary


def test_a_message_that_is_no_json(serve):
    served = serve(WORDS)
    with broken(served, "garble:what=json,event=2") as socket:
        ask(socket, tools=TOOLS)
        receive(socket)
        with pytest.raises(json.JSONDecodeError):
            receive(socket)
        assert receive(socket)["sequence_number"] == 2


def test_an_error_in_place_of_an_answer_leaves_the_connection_open(serve):
    served = serve(WORDS)
    with broken(served, "status:status=429,retry_after=2s") as socket:
        for _ in range(2):
            (error,) = answer(socket, tools=TOOLS)
            assert (error["status"], error["headers"]["retry-after"]) == (429, "2")


def test_a_connection_that_is_closed_when_the_next_message_comes(serve):
    served = serve(WORDS)
    with broken(served, "keepalive-closed") as socket:
        assert answer(socket, tools=TOOLS)[-1]["type"] == "response.completed"
        ask(socket, tools=TOOLS)
        assert until_closed(socket) == ([], None)
    (entry,) = served.journal()
    assert entry["struck"] is not None


@pytest.mark.parametrize("status", [401, 403, 426, 429, 503])
@pytest.mark.parametrize("end", ["", ",retry_after=2s,retry_form=seconds", ",body=html,pause=20ms"])
def test_an_opening_that_is_refused(serve, status, end):
    served = serve(WORDS)
    with pytest.raises(InvalidStatus) as caught, broken(served, f"handshake:status={status}{end}"):
        pass
    response = caught.value.response
    assert response.status_code == status
    assert response.headers.get("upgrade") == ("websocket" if status == 426 else None)
    assert ("retry-after" in response.headers) == ("retry_after" in end)
    assert (b"<html>" in response.body) == ("html" in end)
    (entry,) = served.journal()
    assert (entry["method"], entry["path"], entry["status"]) == ("GET", PATH, status)
    assert entry["outcome"] == "error"
    assert entry["fault"].startswith(f"handshake:status={status}")
    assert entry["struck"] is not None


def test_an_opening_that_is_slow(serve):
    """The connection is like others then; the fault is not one of its messages."""
    served = serve(WORDS)
    with broken(served, "handshake:pause=30ms; duplicate:event=1") as socket:
        messages = answer(socket, tools=TOOLS)
        assert [message["sequence_number"] for message in messages[:3]] == [0, 0, 1]
    opening, asked = served.journal()
    assert (opening["status"], opening["fault"]) == (101, "handshake:pause=30ms")
    assert opening["struck"] >= 0.03
    assert asked["fault"] == "duplicate:event=1"
    assert verify(served)["good"]


@pytest.mark.parametrize(("code", "seen"), [(4000, 4000), (1006, None)])
def test_a_connection_that_ends_as_soon_as_it_is_open(serve, code, seen):
    served = serve(WORDS)
    with broken(served, f"handshake:code={code},reason=model not found") as socket:
        with pytest.raises(ConnectionClosed) as caught:
            socket.recv(GIVE_UP)
        assert (caught.value.rcvd and caught.value.rcvd.code) == seen
    (entry,) = served.journal()
    assert entry["fault"] == f"handshake:code={code},reason=model not found"


def test_a_plan_has_faults_of_openings_and_of_answers(serve):
    """Each is drawn for its own kind of request: an opening takes none of an answer."""
    plan = read_plan(["handshake:pause=1ms", "duplicate:event=1"])
    served = serve(WORDS, faults=plan)
    with opened(served.url) as socket:
        assert [m["sequence_number"] for m in answer(socket, tools=TOOLS)[:2]] == [0, 0]
    assert [entry["fault"] for entry in served.journal()] == [
        "handshake:pause=1ms",
        "duplicate:event=1",
    ]
    (fault,) = read_plan(["handshake:status=503"]).openings
    shares = read_plan(["handshake:status=503"], rate=0.25, seed="7")
    drawn = [shares.draw_opening("mine", number, 0) for number in range(1, 401)]
    assert set(drawn) == {fault, None}
    assert 70 < drawn.count(fault) < 130
    assert shares.draw("mine", 1, 0) == ()


def test_a_header_that_names_no_fault_refuses_the_opening(serve):
    served = serve(WORDS)
    with pytest.raises(InvalidStatus) as caught, broken(served, "handshak:status=401"):
        pass
    assert caught.value.response.status_code == 400
    assert b"did you mean 'handshake'" in caught.value.response.body


@pytest.mark.parametrize(
    "fault",
    [
        "cut:after=2 events,code=1011",
        "cut:after=2 events,end=expired",
        "stall:after=2 events,pings=false,for=1ms",
        "fragment",
        "garble:what=opcode",
        "handshake:status=426",
    ],
)
def test_over_http_they_are_explained(serve, fault):
    """The answer is whole; journal and verdict say why the fault did not strike."""
    served = serve(WORDS)
    body = {"model": "m", "input": "hi", "tools": TOOLS, "stream": True}
    sent = httpx.post(
        served.url + PATH, json=body, headers={"x-mockllm-fault": fault}, timeout=GIVE_UP
    )
    assert "response.completed" in sent.text
    (entry,) = served.journal()
    assert entry["struck"] is None
    assert any("WebSocket" in problem for problem in entry["problems"])
    assert verify(served)["missed_faults"] == [1]


@pytest.mark.parametrize(
    "fault", ["redirect", "garble:what=gzip", "garble:what=content-type", "garble:what=checksum"]
)
def test_faults_of_http_are_explained_on_a_socket(serve, fault):
    served = serve(WORDS)
    with broken(served, fault) as socket:
        assert answer(socket, tools=TOOLS)[-1]["type"] == "response.completed"
    (entry,) = served.journal()
    assert "goes over a WebSocket" in entry["problems"][0]


def test_the_same_request_over_http_and_on_a_socket(serve):
    """What is kept for one is not played to the other."""
    served = serve(WORDS)
    headers = {"x-mockllm-fault": "cut:after=2 events,code=1011"}
    body = {"model": "m", "input": "hi", "tools": TOOLS, "stream": True}
    for _ in range(2):
        sent = httpx.post(served.url + PATH, json=body, headers=headers, timeout=GIVE_UP)
        assert "response.completed" in sent.text
        with broken(served, headers["x-mockllm-fault"]) as socket:
            socket.send(json.dumps({"type": "response.create", **body}))
            messages, closed = until_closed(socket)
            assert (len(messages), closed.code) == (2, 1011)


def test_in_a_scenario():
    """A fault of WebSockets is possible where an API has them; one of openings is in no turn."""
    loads(WORDS.replace("repeat: true", "fault: {cut: {after: 3 events, code: 1011}}"))
    closed = WORDS.replace("match: any", "apis: [chat]\nmatch: any")
    with pytest.raises(ScenarioError, match="goes over HTTP, not over a WebSocket"):
        loads(closed.replace("repeat: true", "fault: {cut: {after: 3 events, code: 1011}}"))
    with pytest.raises(ScenarioError, match="before a scenario answers"):
        loads(WORDS.replace("repeat: true", "fault: {handshake: {status: 426}}"))


def test_a_scenario_plays_it(serve):
    served = serve(WORDS.replace("repeat: true", "fault: {cut: {after: 3 events, code: 4001}}"))
    with opened(served.url) as socket:
        ask(socket, tools=TOOLS)
        messages, closed = until_closed(socket)
    assert (len(messages), closed.code) == (3, 4001)


def test_a_talk_goes_on_after_a_close(serve):
    served = serve(
        TALK.replace(
            "- {reply: {text: one two, split: words}}",
            """
  - attempts: [{fault: {cut: {after: 4 events, code: 1012}}}]
    reply: {text: one two, split: words}
""",
        )
    )
    with opened(served.url) as socket:
        ask(socket)
        assert until_closed(socket)[1].code == 1012
    with opened(served.url) as socket:
        assert answer(socket)[-1]["type"] == "response.completed"


def test_a_route_says_that_it_has_no_faults(serve):
    """Its session is written message by message; a fault of a header is not left out in silence."""
    served = serve("""
scenario: live
route: GET /live
socket: text
turns:
  - service: [{json: {type: hello}}]
""")
    for fault in ("handshake:status=426", "cut:after=1 event,code=1011"):
        headers = {"x-mockllm-fault": fault}
        with opened(served.url, "/live", additional_headers=headers) as socket:
            assert receive(socket) == {"type": "hello"}
    problems = [entry["problems"] for entry in served.journal()]
    assert problems
    for told in problems:
        assert told == ["a fault did not strike: the route calls no model"]


REALTIME = [
    {"type": "session.update", "session": {"type": "realtime", "output_modalities": ["text"]}},
    {
        "type": "conversation.item.create",
        "item": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "a"}],
        },
    },
    {"type": "response.create"},
]
LIVE = [
    {"setup": {"model": "models/m", "generationConfig": {"responseModalities": ["TEXT"]}}},
    {
        "clientContent": {
            "turns": [{"parts": [{"text": "a"}], "role": "user"}],
            "turnComplete": True,
        }
    },
]
VOICES = [
    ("/v1/realtime?model=m", REALTIME),
    ("/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=k", LIVE),
]


@pytest.mark.parametrize(("path", "said"), VOICES, ids=["realtime", "live"])
def test_other_apis_over_sockets(serve, path, said):
    """A close frame, the service's own end, and an opening that is refused."""
    served = serve("""
scenario: talk
match: any
turns: [{reply: {text: one two three, split: words}, repeat: true}]
""")
    counts = []
    for fault, code in (
        ("cut:after=3 events,code=4001", 4001),
        ("cut:after=3 events,end=expired", 0),
    ):
        headers = {"x-mockllm-fault": fault}
        with opened(served.url, path, additional_headers=headers) as socket:
            for message in said:
                socket.send(json.dumps(message))
            messages, closed = until_closed(socket)
            counts.append(len(messages))
            assert code in (0, closed.code)
    assert counts[0] >= 3
    assert {entry["struck"] is not None for entry in served.journal()} == {True}
    headers = {"x-mockllm-fault": "handshake:status=503"}
    with (
        pytest.raises(InvalidStatus, match="503"),
        opened(served.url, path, additional_headers=headers),
    ):
        pass
