"""Faults of the service: what reaches the client, what is recorded, and what the replay does."""

import asyncio
import socket
import threading
from contextlib import ExitStack

import httpx
import pytest

from tests.serve.server.recording.odd_upstream import CHUNKED, EVENTS, OddUpstream, text_events
from tests.serve.server.recording.recorded_server import PATH, chat, exchanges
from tests.timeouts import GIVE_UP

EVENT = text_events("one")[0]


def sent(client, seen=None):
    """The bytes of an answer, and the error with which it ended.

    Args:
        seen: set when bytes have come.
    """
    got = b""
    try:
        with client.stream("POST", PATH, json=chat()) as answer:
            for data in answer.iter_raw():
                got += data
                if seen is not None:
                    seen.set()
    except httpx.TransportError as error:
        return got, error
    return got, None


# Malformed bodies


MALFORMED = {
    "no size": b"zz\r\nhello\r\n",
    "a negative size": b"-5\r\nhello\r\n",
    "no line end": b"5\r\nhelloXX0\r\n\r\n",
    "a trailer without a colon": b"0\r\nno trailer\r\n\r\n",
}


@pytest.mark.parametrize("rest", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("together", [True, False], ids=["one write", "two writes"])
def test_a_malformed_chunk_ends_the_stream(recorder, rest, together):
    """The client gets what came before, and the end of its connection, although the service's stays
    open. The journal names the service's fault; tape and replay break off at the same byte. The
    client waited without an end."""
    seen = threading.Event()

    async def play(request, wire):
        begin = b"HTTP/1.1 200 OK\r\n%b\r\n%b\r\n\r\n" % (EVENTS.encode(), CHUNKED.encode())
        begin += b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
        await wire.raw(begin + rest if together else begin)
        if not together:
            await asyncio.to_thread(seen.wait, GIVE_UP)
            await wire.raw(rest)
        await wire.closed_by_peer()

    recorder.upstream.script = play
    with recorder.recording():
        got, error = sent(recorder.http, seen)
        (exchange,) = exchanges(recorder.http)
    assert got in (EVENT, EVENT + b"hello")
    assert isinstance(error, httpx.RemoteProtocolError)
    (problem,) = exchange["problems"]
    assert problem.startswith("The service's answer is malformed: its body cannot be read (")
    assert recorder.tape("hello").exchange.cut == "upstream"
    assert recorder.descriptions[0].endswith("cut by the upstream")
    with recorder.replaying(speed=0) as client:
        again, error = sent(client)
    assert again == got
    assert isinstance(error, httpx.RemoteProtocolError)


# Resets


@pytest.mark.parametrize("framing", ["chunked", "sized", "until the end"])
def test_a_reset_is_recorded_and_replayed(recorder, framing):
    """A reset of the service's connection is one of the client's, is recorded as a reset, and is
    replayed as one, whatever ends the body."""
    passed = threading.Event()
    headers = {"chunked": [CHUNKED], "sized": ["Content-Length: 9999"], "until the end": []}

    async def play(request, wire):
        await wire.head(EVENTS, *headers[framing])
        await (wire.chunk(EVENT) if framing == "chunked" else wire.raw(EVENT))
        await asyncio.to_thread(passed.wait, GIVE_UP)
        wire.reset()

    recorder.upstream.script = play
    with recorder.recording():
        got, error = raw_answer(recorder.url, passed)
        (exchange,) = exchanges(recorder.http)
    assert EVENT in got
    assert isinstance(error, ConnectionResetError)
    assert exchange["problems"] == [
        "The service reset the connection before the end of its answer."
    ]
    assert recorder.tape("hello").exchange.cut == "reset"
    assert recorder.descriptions[0].endswith("reset by the upstream")
    with recorder.replaying(speed=0) as client:
        again, error = raw_answer(str(client.base_url).rstrip("/"))
    assert EVENT in again
    assert isinstance(error, ConnectionResetError)


def raw_answer(url, passed=None):
    """The bytes of an answer, and the error with which its connection ended.

    Args:
        passed: set when the first event is there.
    """
    host, port = url.removeprefix("http://").split(":")
    content = httpx.Request("POST", url, json=chat()).content
    head = f"POST {PATH} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(content)}\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=GIVE_UP) as sock:
        sock.sendall(head.encode() + content)
        got = b""
        try:
            while data := sock.recv(65536):
                got += data
                if EVENT in got and passed is not None:
                    passed.set()
        except ConnectionResetError as error:
            return got, error
    return got, None


def test_an_end_is_an_end(recorder):
    """A connection that the service closes early is closed for the client, and in the replay."""

    async def play(request, wire):
        await wire.head(EVENTS, CHUNKED)
        await wire.chunk(EVENT)
        wire.writer.close()

    recorder.upstream.script = play
    with recorder.recording():
        got, error = raw_answer(recorder.url)
        (exchange,) = exchanges(recorder.http)
    assert EVENT in got
    assert error is None
    assert exchange["problems"] == [
        "The service closed the connection before the end of its answer."
    ]
    assert recorder.tape("hello").exchange.cut == "upstream"
    with recorder.replaying(speed=0) as client:
        again, error = raw_answer(str(client.base_url).rstrip("/"))
    assert EVENT in again
    assert error is None


# Trailers and reason phrases


def test_trailers_and_reason_phrases_are_replayed(recorder):
    """Both are on the tape, and on the wire again. A trailer with the name of a secret is not."""

    async def play(request, wire):
        await wire.head(EVENTS, CHUNKED, "Trailer: x-checksum, x-api-key", status="200 Quite Right")
        for event in text_events("hi"):
            await wire.chunk(event)
        await wire.end("X-Checksum: 0abc", "x-api-key: sesame-street-1")

    recorder.upstream.script = play
    with recorder.recording():
        first = raw_answer_closed(recorder.url)
    assert first.endswith(b"0\r\nX-Checksum: 0abc\r\nx-api-key: sesame-street-1\r\n\r\n")
    tape = recorder.tape("hello").exchange
    assert tape.reason == "Quite Right"
    assert tape.trailers == (("x-checksum", "0abc"), ("x-api-key", "REDACTED"))
    with recorder.replaying(speed=0) as client:
        again = raw_answer_closed(str(client.base_url).rstrip("/"))
    assert again.startswith(b"HTTP/1.1 200 Quite Right\r\n")
    assert again.endswith(b"\r\n0\r\nx-checksum: 0abc\r\nx-api-key: REDACTED\r\n\r\n")
    assert b"\r\ntrailer: x-checksum, x-api-key\r\n" in again


def raw_answer_closed(url):
    """The bytes of an answer after which the server closes the connection."""
    host, port = url.removeprefix("http://").split(":")
    content = httpx.Request("POST", url, json=chat()).content
    head = f"POST {PATH} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
    with socket.create_connection((host, int(port)), timeout=GIVE_UP) as sock:
        sock.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        got = b""
        while data := sock.recv(65536):
            got += data
    return got


@pytest.mark.parametrize(("status", "kept"), [("429 Too Many Requests", None), ("429 ", "")])
def test_usual_reason_phrases_are_not_kept(recorder, status, kept):
    """The usual phrase of a status is not on the tape; an empty one is."""

    async def play(request, wire):
        await wire.body('{"error": {"message": "slow"}}', status=status)

    recorder.upstream.script = play
    with recorder.recording():
        recorder.post(chat())
    assert recorder.tape("hello").exchange.reason == kept


# No answer


class NoTls(OddUpstream):
    """Answers each connection with text."""

    async def _connected(self, reader, writer):
        writer.write(b"this is no TLS\r\n")
        writer.close()


@pytest.mark.parametrize("fault", ["refused", "no TLS", "no HTTP", "closed", "reset"])
def test_faults_before_the_head_are_not_recorded(recorder, fault):
    """The client gets a 502 that names the address, and nothing is recorded."""

    async def play(request, wire):
        if fault == "no HTTP":
            await wire.raw("SSH-2.0-OpenSSH_9.6\r\n")
        elif fault == "reset":
            wire.reset()
        wire.writer.close()

    recorder.upstream.script = play
    url = recorder.upstream.url
    if fault == "refused":
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    with ExitStack() as stack:
        if fault == "no TLS":
            url = stack.enter_context(NoTls()).url.replace("http:", "https:")
        stack.enter_context(recorder.recording(upstreams={"chat": url}))
        answer = recorder.post(chat())
        route = recorder.http.post("/v1/embeddings", json={"input": "x"})
        journal = exchanges(recorder.http)
    assert [answer.status_code, route.status_code] == [502, 502]
    assert f"does not answer at {url}" in answer.json()["error"]["message"]
    assert [entry["outcome"] for entry in journal] == ["error", "error"]
    assert recorder.lines == []
    assert not list(recorder.folder.glob("*.yaml"))
