"""A WebSocket on the live page: both sides on one time axis."""

from __future__ import annotations

import httpx
from websockets.exceptions import ConnectionClosed

from tests.serve.server.sockets.test_sockets import PATH, answer, ask, opened, receive
from tests.timeouts import GIVE_UP

TALK = """
scenario: talk
match: {user: hi}
turns:
  - reply: {text: one two three, split: words, every: 5ms}
    repeat: true
"""


def shown(served, number):
    answered = served.http.get(f"/_mockllm/ui/request/default/{number}")
    assert answered.status_code == 200, answered.text
    return answered.json()["socket"]


def test_both_sides_in_the_order_of_their_times(serve):
    """Every request of the connection, whichever is looked at; kinds that repeat are counted."""
    served = serve(TALK)
    with opened(served.url) as socket:
        for _ in range(2):
            answer(socket)
    with opened(served.url) as socket:
        answer(socket)
    items = shown(served, 1)["items"]
    assert items == shown(served, 2)["items"]
    assert {item["number"] for item in items} == {1, 2}
    assert [item["at"] for item in items] == sorted(item["at"] for item in items)
    first = [item for item in items if item["number"] == 1]
    assert (first[0]["side"], first[0]["kind"], first[0]["text"]) == (
        "client",
        "asks",
        "hi",
    )
    kinds = {item["kind"]: item["count"] for item in first if item["side"] == "service"}
    assert kinds["response.output_text.delta"] == 3
    assert list(kinds)[-1] == "response.completed"
    assert {item["number"] for item in shown(served, 3)["items"]} == {3}


def test_messages_have_the_times_at_which_they_were_sent(serve):
    """And not those at which they were due, which are earlier."""
    served = serve(TALK)
    with opened(served.url) as socket:
        answer(socket)
    (entry,) = served.server.sessions.get("default").journal
    sent = list(entry.sent.marks)[1::2]
    assert sent
    items = [item for item in shown(served, 1)["items"] if item["side"] == "service"]
    assert {item["at"] for item in items} <= {round(at * 1e6) / 1e6 for at in sent}


def test_the_stream_is_not_measured_by_messages(serve):
    """Its bytes are those of the answer over HTTP: a whole answer does not look cut off."""
    served = serve(TALK)
    with opened(served.url) as socket:
        answer(socket)
    stream = served.http.get("/_mockllm/ui/request/default/1").json()["answer"]
    assert stream["gone_after"] is None
    assert not any(part["left"] for part in stream["parts"])
    assert "Connection has its messages" in stream["note"]


def test_what_broke_is_on_it(serve):
    served = serve(TALK)
    fault = "handshake:pause=1ms; cut:after=6 events,code=1011"
    with opened(served.url, additional_headers={"x-mockllm-fault": fault}) as socket:
        ask(socket)
        try:
            while True:
                receive(socket)
        except ConnectionClosed:
            pass
    items = shown(served, 2)["items"]
    said = [(item["side"], item["kind"], item["text"]) for item in items]
    assert said[:3] == [
        ("client", "opens", ""),
        ("service", "fault", "handshake:pause=1ms"),
        ("service", "status 101", ""),
    ]
    assert said[-1] == ("service", "fault", "cut:after=6 events,code=1011")
    assert not any(item["kind"] == "response.completed" for item in items)


def test_a_request_over_http_has_none(serve):
    served = serve(TALK)
    httpx.post(served.url + PATH, json={"model": "m", "input": "hi"}, timeout=GIVE_UP)
    assert shown(served, 1) is None
