"""When a connection ends: after a body that is too large, where the client leaves, where an answer
breaks off."""

from __future__ import annotations

import asyncio
import json
import queue
import socket
import struct
from collections.abc import Callable

import pytest
from aiohttp.test_utils import make_mocked_request

from mockllm.core.http import TimedBytes
from mockllm.play.replay.compilation.http_answer import HttpAnswer, bytes_answer
from mockllm.play.replay.sessions.exchange import Exchange, Sent
from mockllm.serve.server.http.delivery import CLOSE, deliver
from mockllm.serve.server.http.sending import send
from tests.conftest import Served
from tests.timeouts import GIVE_UP

PATH = "/v1/chat/completions"
SCENARIOS = """
scenario: waits
match: {user: waits}
turns:
  - reply: [{text: first}, {pause: 10m}, {text: never}]
---
scenario: ends
match: {user: ends}
turns:
  - reply: {text: abcdef, split: chars}
"""
ENDS = SCENARIOS.replace("split: chars}", "split: chars}\n    wire: {quirks: ['sse-cut:ENDING']}")


def connect(served: Served) -> socket.socket:
    host, port = served.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=GIVE_UP)


def posted(path: str, body: bytes) -> bytes:
    head = "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    return (head % (path, len(body))).encode() + body


def streamed(user: str) -> bytes:
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": user}]}
    return posted(PATH, json.dumps(body).encode())


def head_of(sock: socket.socket) -> tuple[list[bytes], bytes]:
    """The lines of an answer's head, and what of its body came with it."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += sock.recv(65536)
    head, _, rest = data.partition(b"\r\n\r\n")
    return head.lower().split(b"\r\n"), rest


def rest_of(sock: socket.socket) -> tuple[bytes, str]:
    """What comes until the connection ends, and how it ends."""
    data = b""
    try:
        while part := sock.recv(65536):
            data += part
    except ConnectionResetError:
        return data, "reset"
    return data, "closed"


@pytest.mark.parametrize("path", [PATH, "/_mockllm/scenarios"])
def test_a_413_closes_the_connection(serve: Callable[..., Served], path: str) -> None:
    """The body is not read, so that no other request can follow on the connection; control routes
    are no exception."""
    served = serve(SCENARIOS, max_body=100)
    with connect(served) as sock:
        sock.sendall(posted(path, b"x" * 101))
        head, _ = head_of(sock)
        assert head[0] == b"http/1.1 413 request entity too large"
        assert b"connection: close" in head
        assert rest_of(sock)[1] == "closed"


@pytest.mark.parametrize(
    ("path", "status"), [(PATH, b"400 bad request"), ("/_mockllm/no", b"404 not found")]
)
def test_another_refusal_keeps_the_connection(
    serve: Callable[..., Served], path: str, status: bytes
) -> None:
    """A body of just the allowed size is read, and the next request is answered."""
    served = serve(SCENARIOS, max_body=100)
    with connect(served) as sock:
        for _ in range(2):
            sock.sendall(posted(path, b"x" * 100))
            head, _ = head_of(sock)
            assert head[0] == b"http/1.1 " + status
            assert b"connection: close" not in head


def test_a_client_that_leaves_ends_its_stream(serve: Callable[..., Served]) -> None:
    """A stream in a pause of ten minutes ends when its client goes away: its task is gone, and the
    journal has the reason."""
    ended: queue.Queue[Exchange] = queue.Queue()
    served = serve(SCENARIOS, log=ended.put)
    with connect(served) as sock:
        sock.sendall(streamed("waits"))
        _, rest = head_of(sock)
        while b"first" not in rest:
            rest += sock.recv(65536)
        assert len(served.server._parts.streaming) == 1
    exchange = ended.get(timeout=GIVE_UP)
    assert (exchange.sent.client_gone, exchange.sent.ended) == (True, None)
    assert exchange.sent.bytes > 0
    assert not served.server._parts.streaming


def test_a_client_that_ends_its_side_is_answered(serve: Callable[..., Served]) -> None:
    """It has sent all that it has to send; the answer comes whole, and then the connection ends."""
    served = serve(SCENARIOS)
    with connect(served) as sock:
        sock.sendall(streamed("ends"))
        sock.shutdown(socket.SHUT_WR)
        data, end = rest_of(sock)
    assert data.endswith(b"0\r\n\r\n")
    assert end == "closed"


@pytest.mark.parametrize("ending", ["eof", "closed", "reset"])
def test_a_stream_that_breaks_off(serve: Callable[..., Served], ending: str) -> None:
    """What was written arrives. Where the connection breaks, the last chunk of the body is missing,
    which alone would say that this was all."""
    served = serve(ENDS.replace("ENDING", ending))
    with connect(served) as sock:
        sock.sendall(streamed("ends"))
        head, data = head_of(sock)
        assert head[0] == b"http/1.1 200 ok"
        assert b"transfer-encoding: chunked" in head
        if ending == "eof":
            while not data.endswith(b"\r\n0\r\n\r\n"):
                data += sock.recv(65536)
            sock.sendall(streamed("ends"))
            assert head_of(sock)[0][0] == b"http/1.1 200 ok"
            return
        rest, end = rest_of(sock)
    assert end == ending
    data += rest
    assert b'"content":"a"' in data
    assert data.endswith(b"\r\n")
    assert not data.endswith(b"0\r\n\r\n")


class Transport(asyncio.Transport):
    """A connection that keeps what is written to it, and may be closed by the other side."""

    def __init__(self, *, closing: bool = False) -> None:
        super().__init__()
        self.written = b""
        self.closing = closing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closing


def sent() -> Sent:
    return Sent()


def answer(*times: int) -> HttpAnswer:
    parts = [TimedBytes(at, b"data: x\n\n") for at in times]
    return bytes_answer(200, [], parts, streamed=True)


@pytest.mark.parametrize("times", [(0, 0), (0, 600_000_000)])
def test_nothing_is_written_to_a_client_that_has_left(times: tuple[int, ...]) -> None:
    """An answer to a client that is gone is not sent, and the exchange has `client_gone`."""
    transport, one = Transport(closing=True), sent()

    async def run() -> object:
        request = make_mocked_request("POST", PATH, transport=transport)
        return await deliver(request, answer(*times), one)

    assert asyncio.run(run()) is CLOSE
    assert (transport.written, one.client_gone, one.bytes) == (b"", True, 0)
    assert one.ended is None


def test_a_part_for_a_client_that_has_left_ends_the_answer() -> None:
    """Without a connection the next part raises, so that the stream does not go on."""
    transport, one = Transport(), sent()

    async def run() -> None:
        request = make_mocked_request("POST", PATH, transport=transport)
        await send(request, b"one", one)
        transport.closing = True
        with pytest.raises(ConnectionResetError):
            await send(request, b"two", one)

    asyncio.run(run())
    assert (transport.written, one.client_gone) == (b"one", True)


def test_a_reset_in_a_pause_ends_the_stream(serve: Callable[..., Served]) -> None:
    """A client that is killed, and whose system resets the connection, is noticed as well."""
    ended: queue.Queue[Exchange] = queue.Queue()
    served = serve(SCENARIOS, log=ended.put)
    with connect(served) as sock:
        sock.sendall(streamed("waits"))
        head_of(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert ended.get(timeout=GIVE_UP).sent.client_gone
