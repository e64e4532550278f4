"""Faults over sockets: what arrives, how the connection ends, and what the journal has."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest

from mockllm.checking.conversations.judge import verify
from mockllm.play.faults.places import SeenEvent, seen_events
from mockllm.play.replay.fault_plan import read_plan
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.protocols import PROTOCOLS
from tests.apis import CALLING
from tests.carried import payload
from tests.cases import for_all
from tests.play.faults.playing import (
    Received,
    ask,
    connect,
    journal,
    receive,
    request_bytes,
    served,
)
from tests.timeouts import GIVE_UP

APIS = sorted(PROTOCOLS.over_http)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with served() as thread:
        yield thread


def events_of(api: str, body: bytes) -> list[SeenEvent]:
    return seen_events(PROTOCOLS[api], body, PROTOCOLS[api].usual)


def events(api: str, answer: Received) -> int:
    return len(events_of(api, answer.body))


@for_all(
    ("end", "ended", "whole"),
    [
        ("close", "closed", False),
        ("reset", "reset", False),
        ("chunk", "closed", False),
        ("orderly", "complete", True),
    ],
)
@for_all("api", APIS)
def test_a_cut_after_events(
    server: ServerThread, api: str, end: str, ended: str, whole: bool
) -> None:
    """Exactly the events before it arrive, also before a reset."""
    plain = ask(server, api)
    cut = ask(server, api, f"cut:after=3 events,end={end}")
    assert plain.ended == "complete"
    assert (cut.ended, cut.whole, events(api, cut)) == (ended, whole, 3)
    assert plain.body.startswith(cut.body)
    entry = journal(server)[-1]
    assert entry.fault.startswith("cut:after=3 events")
    assert entry.sent.struck_after == entry.sent.bytes == len(cut.body)
    assert entry.sent.struck is not None
    assert not entry.sent.complete


@for_all("api", APIS)
@for_all("stream", [True, False])
def test_a_cut_after_bytes(server: ServerThread, api: str, stream: bool) -> None:
    """So many bytes of the body arrive."""
    plain = ask(server, api, stream=stream)
    cut = ask(server, api, "cut:after=120 bytes", stream=stream)
    assert (cut.body, cut.ended, cut.whole) == (plain.body[:120], "closed", False)


@pytest.mark.parametrize("api", sorted({*CALLING} & {*APIS}))
def test_a_cut_in_arguments(server: ServerThread, api: str) -> None:
    """It is in the middle of an event with arguments: no event is complete after it."""
    plain = ask(server, api)
    cut = ask(server, api, "cut:inside=call_1 arguments")
    found = events_of(api, plain.body)
    (event,) = (one for one in found if one.begin < len(cut.body) < one.end)
    assert b"ty" in plain.body[event.begin : event.end] or api == "gemini"


@pytest.mark.parametrize("api", APIS)
def test_a_cut_before_the_end(server: ServerThread, api: str) -> None:
    """All content has arrived, and not what ends the answer."""
    plain = ask(server, api)
    ends = [event.is_end for event in events_of(api, plain.body)]
    done = ask(server, api, "cut:before=done,end=orderly")
    assert events(api, done) == ends.index(True)
    finish = ask(server, api, "cut:before=finish")
    assert events(api, finish) <= events(api, done)


def test_a_cut_in_a_character(server: ServerThread) -> None:
    """It is inside of one."""
    cut = ask(server, "chat", "cut:inside=character")
    with pytest.raises(UnicodeDecodeError, match="unexpected end of data"):
        cut.body.decode()


@pytest.mark.parametrize(("end", "ended"), [("close", "closed"), ("reset", "reset")])
def test_a_refused_connection(server: ServerThread, end: str, ended: str) -> None:
    """No byte comes."""
    refused = ask(server, "chat", f"refuse:end={end}")
    assert (refused.status, refused.wire, refused.ended) == (0, b"", ended)
    entry = journal(server)[-1]
    assert (entry.fault, entry.status, entry.sent.bytes) == (f"refuse:end={end}", 0, 0)


@for_all("api", APIS)
@for_all("kind", ["overloaded", "rate_limit", "server_error"])
def test_an_error_in_a_stream(server: ServerThread, api: str, kind: str) -> None:
    """The service's own error comes after the events, in a stream that HTTP completes."""
    failed = ask(server, api, f"error:after=2 events,kind={kind}")
    found = events_of(api, failed.body)
    assert (failed.status, failed.ended) == (200, "complete")
    assert [one.finishes for one in found[:3]] == [False, False, True]
    assert PROTOCOLS[api].service_errors[kind].error.message in found[2].data


@pytest.mark.parametrize("api", APIS)
def test_an_error_of_a_plain_answer(server: ServerThread, api: str) -> None:
    """It is an HTTP error in the form of the service."""
    failed = ask(server, api, "error:kind=overloaded", stream=False)
    if api != "agui":  # every answer of AG-UI is a stream
        error = PROTOCOLS[api].service_errors["overloaded"]
        assert failed.status == error.status
        assert error.error.message in failed.body.decode()


def test_forms_of_retry_after(server: ServerThread) -> None:
    """Each form alone, or as the service sends it."""

    def headers(form: str) -> dict[str, str]:
        text = f"status:status=429,retry_after=1500ms,retry_form={form},should_retry=false"
        answer = ask(server, "chat", text)
        assert (answer.status, answer.headers["x-should-retry"]) == (429, "false")
        return {name: value for name, value in answer.headers.items() if name.startswith("retry")}

    assert headers("service") == {"retry-after": "2", "retry-after-ms": "1500"}
    assert headers("seconds") == {"retry-after": "1.5"}
    assert headers("ms") == {"retry-after-ms": "1500"}
    assert headers("date")["retry-after"].endswith(" GMT")


@pytest.mark.parametrize(
    ("body", "kind", "begins"),
    [
        ("json", "application/json", b'{"error":{'),
        ("html", "text/html", b"<html>"),
        ("other", "application/json", b'{"message":'),
        ("empty", None, b""),
    ],
)
def test_bodies_of_errors(server: ServerThread, body: str, kind: str | None, begins: bytes) -> None:
    """The service's own, and those of what stands in front of it."""
    answer = ask(server, "chat", f"status:status=502,body={body}")
    assert (answer.status, answer.headers.get("content-type")) == (502, kind)
    assert answer.body.startswith(begins)
    assert bool(answer.body) is bool(begins)


@for_all("api", APIS)
@for_all("what", ["json", "content-type", "html", "error", "gzip", "empty"])
def test_garbled(server: ServerThread, api: str, what: str) -> None:
    """Status 200, and not what it promises."""
    plain = ask(server, api)
    answer = ask(server, api, f"garble:what={what}")
    assert (answer.status, answer.ended) == (200, "complete")
    if what == "json":
        assert len(answer.body) == len(plain.body) - 1
        found = events_of(api, answer.body)
        blocks = [answer.body[one.begin : one.end] for one in found]
        broken = [_is_broken(payload(PROTOCOLS[api].usual, block)) for block in blocks]
        assert broken.count(True) == 1
    elif what == "content-type":
        assert answer.body == plain.body
        assert answer.headers["content-type"].startswith("text/html")
    elif what == "error":
        assert b"error" in answer.body
        assert answer.headers["content-type"] == "application/json"
    elif what == "gzip":
        assert answer.headers["content-encoding"] == "gzip"
        unpacked = zlib.decompressobj(wbits=31)
        half = unpacked.decompress(answer.body[:-1])
        assert half == plain.body[: len(plain.body) // 2]
        with pytest.raises(zlib.error, match="invalid block type"):
            unpacked.decompress(answer.body[-1:])
    else:
        assert answer.body.startswith(b"<!DOCTYPE html>") if what == "html" else not answer.body


def _is_broken(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return data != b"[DONE]"
    return False


@pytest.mark.parametrize("api", APIS)
def test_events_that_move(server: ServerThread, api: str) -> None:
    """One comes twice, or after the next one; all others stay."""

    def data(fault: str = "") -> list[str]:
        return [event.data for event in events_of(api, ask(server, api, fault).body)]

    plain = data()
    assert data("duplicate:event=2") == [plain[0], plain[1], *plain[1:]]
    assert data("reorder:event=2") == [plain[0], plain[2], plain[1], *plain[3:]]


def test_a_slow_answer_is_whole(server: ServerThread) -> None:
    """The bytes of drips and bursts are those of the answer."""
    plain = ask(server, "chat").body
    for fault in ("drip:rate=100000", "burst:pause=20ms", "stall:after=2 events,for=20ms"):
        assert ask(server, "chat", fault).body == plain
    entry = journal(server)[-1]
    assert entry.sent.struck is not None
    assert entry.sent.ended is not None
    assert entry.sent.ended > entry.sent.struck


def test_a_stall_without_end(server: ServerThread) -> None:
    """The connection is open, and nothing comes; the client leaves."""
    with connect(server) as sock:
        sock.sendall(request_bytes("chat", x_mockllm_fault="stall:after=1 event"))
        begun = b""
        while b"data:" not in begun:
            begun = sock.recv(65536)
            assert begun
        entry = journal(server)[-1]
        assert (entry.sent.client_gone, entry.sent.ended) == (False, None)
    limit = monotonic() + GIVE_UP
    while not entry.sent.client_gone and monotonic() < limit:
        ask(server, "chat")
    assert (entry.sent.client_gone, entry.sent.ended) == (True, None)


def test_a_connection_that_is_closed_when_it_is_used(server: ServerThread) -> None:
    """The answer is complete; the next request on its connection gets none."""
    with connect(server) as sock:
        sock.sendall(request_bytes("chat", x_mockllm_fault="keepalive-closed"))
        assert receive(sock).whole
        assert journal(server)[-1].sent.struck is None
        number = len(journal(server))
        sock.sendall(request_bytes("chat"))
        assert receive(sock).ended in ("closed", "reset")
    assert len(journal(server)) == number
    assert journal(server)[-1].sent.struck is not None


def test_a_pipelined_request_finds_the_connection_closed(server: ServerThread) -> None:
    """A request that came before the answer was over gets no answer either."""
    with connect(server) as sock:
        idle_closed = request_bytes("chat", x_mockllm_fault="keepalive-closed")
        sock.sendall(idle_closed + request_bytes("chat"))
        assert receive(sock).whole
        assert sock.recv(65536) == b""
    assert journal(server)[-1].sent.struck is not None


def test_a_burst_begins_with_the_headers(server: ServerThread) -> None:
    """Also where the answer is not streamed; the body comes after the pause."""
    for stream in (True, False):
        with connect(server) as sock:
            fault = "burst:pause=10m"
            sock.sendall(request_bytes("chat", stream=stream, x_mockllm_fault=fault))
            data = sock.recv(65536)
            assert data.startswith(b"HTTP/1.1 200")
            assert data.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("prefix", ["", "/s/mine"])
def test_a_redirect(server: ServerThread, status: int, prefix: str) -> None:
    """It leads to a path that answers, or in a circle."""
    path = f"{prefix}/v1/chat/completions"
    answer = ask(server, "chat", f"redirect:status={status}", path=path)
    assert (answer.status, answer.body) == (status, b"")
    to = answer.headers["location"]
    assert to == f"{prefix}/redirected/v1/chat/completions"
    assert ask(server, "chat", f"redirect:status={status}", path=to).status == 200
    circle = ask(server, "chat", "redirect:circle=true", path=path)
    assert circle.headers["location"] == path


def test_old_clients(server: ServerThread) -> None:
    """HTTP/1.0 and `Connection: close` get the same bytes, and a closed connection."""
    plain = ask(server, "chat").body
    short = ask(server, "chat", "cut:after=2 events").body
    old: list[tuple[str, dict[str, Any]]] = [("1.0", {}), ("1.1", {"connection": "close"})]
    for version, more in old:
        faults = {"cut:after=2 events,end=chunk": short, "burst:pause=1ms": plain}
        for fault, expected in faults.items():
            with connect(server) as sock:
                sent = request_bytes("chat", x_mockllm_fault=fault, **more)
                sock.sendall(sent.replace(b"HTTP/1.1", f"HTTP/{version}".encode(), 1))
                answer = receive(sock)
                assert answer.body == expected
                assert not sock.recv(1)


def test_a_place_that_does_not_come(server: ServerThread) -> None:
    """The answer is whole, and the journal has why."""
    answer = ask(server, "chat", "cut:after=5000 events")
    assert answer.ended == "complete"
    entry = journal(server)[-1]
    assert entry.sent.struck is None
    reason = "did not strike: cut:after=5000 events: nothing is after 5000 events"
    assert reason in entry.problems[0]
    session = server.ask(server.server.sessions.get, "default")
    found = verify(session, server.server.player.served.by_name)
    assert entry.number in found.missed_faults
    assert not found.good


def test_a_wrong_header_is_refused(server: ServerThread) -> None:
    """The error has what is wrong."""
    answer = ask(server, "chat", "cutt")
    assert answer.status == 400
    assert "there is no fault 'cutt'; did you mean 'cut'?" in answer.body.decode()
    assert "--fault limit:number=2" in ask(server, "chat", "limit:number=2").body.decode()


RETRIED = """
scenario: retried
match: any
turns:
  - attempts:
      - {fault: {cut: {after: 2 events, end: reset}}}
      - {reply: {text: Sorry}, finish: length}
      - {http: 429, retry_after: 50ms, fault: {cut: {after: 10 bytes}}}
    reply: {text: It works.}
"""


@pytest.mark.parametrize("api", APIS)
def test_tries_with_answers_of_their_own(api: str) -> None:
    """The first dies, the second has another reply, the third an error that is cut."""
    with served(RETRIED) as server:
        first, second, third, last = (ask(server, api) for _ in range(4))
        assert (first.ended, events(api, first)) == ("reset", 2)
        assert (second.ended, b"Sorry" in second.body) == ("complete", True)
        assert (third.status, third.ended, len(third.body)) == (429, "closed", 10)
        assert (last.ended, b"works" in last.body) == ("complete", True)
        entries = journal(server)
        assert [entry.outcome for entry in entries] == ["error", "error", "error", "played"]
        assert [entry.played.attempt for entry in entries] == [1, 2, 3, 4]


def test_a_try_of_a_turn_that_is_an_error() -> None:
    """An attempt with a fault alone plays the turn's own error; a file with it can be loaded."""
    tries = "attempts: [{fault: {drip: {every: 2ms}}}]"
    text = f"scenario: s\nmatch: any\nturns:\n- {tries}\n  http: 400\n"
    with served(text) as server:
        first, second = ask(server, "chat"), ask(server, "chat")
        assert (first.status, second.status) == (400, 400)
        assert [bool(entry.fault) for entry in journal(server)] == [True, False]


def test_a_rate_repeats() -> None:
    """The same seed, session and order give the same faults; another seed gives others."""
    texts = ("cut:after=1 event", "status:status=503")

    def run(seed: str) -> list[str]:
        with served(faults=read_plan(texts, rate=0.4, seed=seed)) as server:
            for _ in range(20):
                ask(server, "chat")
            return [entry.fault for entry in journal(server)]

    first = run("7")
    assert first == run("7") != run("8")
    assert set(first) == {"", *texts}


@pytest.mark.parametrize(
    ("burst", "struck"),
    [("rate=100% every=1us for=1440m", True), ("rate=100% every=1440m for=1440m", False)],
)
def test_bursts(burst: str, struck: bool) -> None:
    """Within one, its rate holds; outside, none has a fault. Times are since the server started."""
    with served(faults=read_plan(["status:status=503"], burst=burst)) as server:
        assert {ask(server, "chat").status for _ in range(5)} == {503 if struck else 200}


def test_a_session_with_faults(server: ServerThread) -> None:
    """Its answers have them, and no others."""
    thread = server
    scenarios = thread.ask(lambda: thread.server.player.served.scenarios)
    thread.ask(lambda: thread.server.assign("broken", scenarios, faults=["refuse"]))
    assert ask(server, "chat", path="/s/broken/v1/chat/completions").ended == "closed"
    assert ask(server, "chat").ended == "complete"


def test_connections_beyond_a_limit() -> None:
    """They are reset; the others go on."""
    with served(faults=read_plan(["limit:number=1"])) as server, connect(server) as first:
        first.sendall(request_bytes("chat"))
        assert receive(first).whole
        try:
            with connect(server) as second:
                second.sendall(request_bytes("chat"))
                answered = second.recv(1)
        except ConnectionError:
            answered = b""
        assert not answered
        first.sendall(request_bytes("chat"))
        assert receive(first).whole


def test_connections_that_wait() -> None:
    """They are served as soon as another one ends."""
    with served(faults=read_plan(["slow-accept:number=1"])) as server, connect(server) as first:
        first.sendall(request_bytes("chat"))
        assert receive(first).whole
        with connect(server) as second:
            second.sendall(request_bytes("chat"))
            first.sendall(request_bytes("chat"))
            assert receive(first).whole
            assert len(journal(server)) == 2
            first.close()
            assert receive(second).whole
