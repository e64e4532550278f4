"""Answers that end against HTTP's rules, and answers that leave in separate writes."""

import asyncio
import json
import socket
import struct
import threading

import httpx
import pytest
from aiohttp.test_utils import make_mocked_request

from mockllm.core.http import TimedBytes
from mockllm.play import quirks
from mockllm.play.quirks.base import Quirk, Variant
from mockllm.play.quirks.samples import TEXT
from mockllm.play.replay.compilation.http_answer import chunk
from mockllm.play.replay.sessions.exchange import Sent
from mockllm.serve.server.http.delivery import deliver
from tests.play.quirks.playing import play
from tests.serve.server.test_server import chat, http_chunks
from tests.timeouts import GIVE_UP

BREAKS = Quirk(
    name="breaks",
    sample=TEXT,
    variants=(
        Variant("closed", ending="closed"),
        Variant("reset", ending="reset"),
        Variant(
            "threes",
            bytes=lambda timed, _: [
                TimedBytes(part.at, part.data[at : at + 3])
                for part in timed
                for at in range(0, len(part.data), 3)
            ],
            writes=True,
        ),
    ),
)
PATH = "/v1/chat/completions"


def scenario(*wire, reply="{text: abcdefghij, split: chars}", timing=""):
    """A scenario named `ends` with these `wire` options, and one named `fine`."""
    wire_line = f"\n    wire: {{{', '.join(wire)}}}" if wire else ""
    return f"""
scenario: ends
match: {{user: ends}}
turns:
  - reply: {reply}{wire_line}
    {timing}
---
scenario: fine
match: {{user: fine}}
turns: [{{reply: {{text: fine}}}}]
"""


TIMED = "timing: {ttft: 2ms, every: 1ms}"


@pytest.fixture(autouse=True)
def table(monkeypatch):
    """Adds the quirk of these tests to the table of quirks."""
    monkeypatch.setitem(quirks.QUIRKS, "breaks", BREAKS)


def connect(url, *, buffer=0):
    host, port = url.removeprefix("http://").split(":")
    sock = socket.socket()
    if buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    sock.settimeout(GIVE_UP)
    sock.connect((host, int(port)))
    return sock


def send(sock, user="ends", version=b"1.1"):
    body = json.dumps(chat(user, stream=True)).encode()
    sock.sendall(
        b"POST %b HTTP/%b\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b"
        % (PATH.encode(), version, len(body), body)
    )


def read(sock):
    """The body, and how the connection ended: `closed` or `reset`."""
    data, end = b"", "closed"
    try:
        while part := sock.recv(65536):
            data += part
    except ConnectionResetError:
        end = "reset"
    head, _, rest = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    return rest, end


def whole(serve, **options):
    """The parts of the same answer without a break."""
    served = serve(scenario(**options))
    with httpx.stream(
        "POST", served.url + PATH, json=chat("ends", stream=True), timeout=GIVE_UP
    ) as answer:
        return list(answer.iter_raw())


@pytest.mark.parametrize("ending", ["closed", "reset"])
@pytest.mark.parametrize("timing", ["", TIMED])
def test_everything_arrives_and_then_the_connection_ends(serve, ending, timing):
    """All events arrive, but not the last chunk, which marks the body as complete."""
    served = serve(scenario(f"quirks: ['breaks:{ending}']", timing=timing))
    with connect(served.url) as sock:
        send(sock)
        data, end = read(sock)
    assert end == ending
    assert b"".join(http_chunks(data + b"0\r\n\r\n")) == b"".join(whole(serve))
    assert data.endswith(b"data: [DONE]\n\n\r\n")


@pytest.mark.parametrize(
    ("ending", "error"), [("closed", httpx.RemoteProtocolError), ("reset", httpx.ReadError)]
)
@pytest.mark.parametrize("timing", ["", TIMED])
def test_an_http_client_gets_all_and_an_error(serve, ending, error, timing):
    """The client receives each event before it gets the error."""
    served = serve(scenario(f"quirks: ['breaks:{ending}']", timing=timing))
    with served.http.stream("POST", PATH, json=chat("ends", stream=True)) as answer:
        parts, ended = exhaust(answer)
    assert type(ended) is error
    assert b"".join(parts) == b"".join(whole(serve))


def exhaust(answer):
    """The parts of a body until it ends, and the error that it ends in."""
    parts = []
    try:
        for part in answer.iter_raw():
            parts.append(part)
    except httpx.HTTPError as error:
        return parts, error
    return parts, None


@pytest.mark.parametrize("ending", ["closed", "reset"])
def test_the_server_goes_on(serve, ending):
    """Open connections are served after a break, and so are new ones."""
    served = serve(scenario(f"quirks: ['breaks:{ending}']"))
    assert served.http.post(PATH, json=chat("fine")).status_code == 200
    for _ in range(20):
        with connect(served.url) as sock:
            send(sock)
            assert read(sock)[1] == ending
        assert served.http.post(PATH, json=chat("fine")).status_code == 200
    outcomes = {(entry["outcome"], entry["client_gone"]) for entry in served.journal()}
    assert outcomes == {("played", False)}
    sent = {entry["bytes_sent"] for entry in served.journal() if entry["scenario"] == "ends"}
    assert sent == {len(b"".join(whole(serve)))}


@pytest.mark.large
@pytest.mark.slow
@pytest.mark.parametrize("ending", ["closed", "reset"])
def test_a_slow_reader_gets_all(serve, ending):
    """Bytes that the kernel still holds when the connection ends are not lost."""
    reply = "{text: '" + "0123456789abcdef" * 200_000 + "'}"
    served = serve(scenario(f"quirks: ['breaks:{ending}']", reply=reply))
    with connect(served.url, buffer=4096) as sock:
        send(sock)
        assert served.http.post(PATH, json=chat("fine")).status_code == 200
        data, end = read(sock)
    assert end == ending
    assert b"".join(http_chunks(data + b"0\r\n\r\n")) == b"".join(whole(serve, reply=reply))


@pytest.mark.large
@pytest.mark.slow
@pytest.mark.parametrize("ending", ["closed", "reset"])
def test_a_reader_that_goes_away_is_not_waited_for(serve, ending):
    """A client that leaves during an answer that would break frees everything."""
    gone = threading.Event()
    reply = "{text: '" + "0123456789abcdef" * 500_000 + "'}"
    served = serve(
        scenario(f"quirks: ['breaks:{ending}']", reply=reply), log=lambda exchange: gone.set()
    )
    with connect(served.url, buffer=4096) as sock:
        send(sock)
        assert sock.recv(10) == b"HTTP/1.1 2"
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert gone.wait(GIVE_UP)
    assert served.http.post(PATH, json=chat("fine")).status_code == 200


@pytest.mark.parametrize("ending", ["closed", "reset"])
def test_http_1_0_is_broken_too(serve, ending):
    """An HTTP/1.0 body has no chunks; the end of the connection is its only end."""
    served = serve(scenario(f"quirks: ['breaks:{ending}']"))
    with connect(served.url) as sock:
        send(sock, version=b"1.0")
        assert read(sock) == (b"".join(whole(serve)), ending)


@pytest.mark.parametrize("ending", ["closed", "reset"])
def test_breaks_with_segments(serve, ending):
    """All segments of an answer that breaks arrive, each in its own chunk."""
    served = serve(scenario(f"quirks: ['breaks:{ending}']", "segments: 7"))
    with connect(served.url) as sock:
        send(sock)
        data, end = read(sock)
    parts = http_chunks(data + b"0\r\n\r\n")
    assert end == ending
    assert {len(part) for part in parts[:-1]} == {7}
    assert b"".join(parts) == b"".join(whole(serve))


def test_a_quirk_decides_on_the_writes(serve):
    """The parts that a quirk cuts arrive as chunks of their own."""
    served = serve(scenario("quirks: ['breaks:threes']"))
    with httpx.stream(
        "POST", served.url + PATH, json=chat("ends", stream=True), timeout=GIVE_UP
    ) as answer:
        parts = list(answer.iter_raw())
    events = whole(serve)
    assert b"".join(parts) == b"".join(events)
    assert len(parts) == sum(-(-len(event) // 3) for event in events)


class Recording(asyncio.Transport):
    """A transport that keeps each write."""

    def __init__(self):
        super().__init__()
        self.writes = []

    def write(self, data):
        self.writes.append(bytes(data))

    def get_write_buffer_size(self):
        return 0

    def is_closing(self):
        return False


def written(answer):
    """The writes in which an answer is sent."""
    transport = Recording()

    async def run():
        request = make_mocked_request("POST", PATH, transport=transport)
        await deliver(request, answer, Sent())

    asyncio.run(run())
    return transport.writes


def test_separate_writes():
    """An answer that a quirk cuts is sent write by write; another one is sent in one."""
    cut = play(BREAKS, BREAKS.variant("threes"), "chat")
    head, *body = written(cut)
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert body == [*map(chunk, cut.data), b"0\r\n\r\n"]
    assert max(map(len, cut.data)) == 3
