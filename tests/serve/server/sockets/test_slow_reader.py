"""A client that sends and does not read: what waits for it is bounded."""

import json
import socket
from select import select

from mockllm.play.replay.loading import loads
from mockllm.serve.server.http.sending import WATER
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.framing.websocket import encode_message
from tests.timeouts import GIVE_UP

LONG = "x" * 100_000
SCENARIO = f"scenario: long\nmatch: any\nturns: [{{reply: {{text: {LONG}, split: 5000}}}}]"
OPENING = (
    b"GET /v1/responses HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
MOST_MESSAGES = 20_000
"""More than any buffer on the way takes: 60 MB of questions."""


def masked(message):
    """A frame of a client, with a mask of zeros."""
    frame = encode_message(message)
    head = frame[: len(frame) - len(message)]
    return bytes((head[0], head[1] | 0x80)) + head[2:] + bytes(4) + message


def test_a_client_that_does_not_read_is_not_read():
    question = {"type": "response.create", "model": "m", "input": "why? " * 600, "store": False}
    frame = masked(json.dumps(question).encode())
    with (
        ServerThread(loads(SCENARIO), ServerOptions(speed=0)) as server,
        socket.create_connection(
            ("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=GIVE_UP
        ) as client,
    ):
        client.sendall(OPENING)
        assert client.recv(65536).startswith(b"HTTP/1.1 101 ")
        (transport,) = (one.transport for one in server.server._server.connections)
        client.setblocking(False)
        sent, left = 0, frame
        while sent < MOST_MESSAGES:
            if select([], [client], [], 0.01)[1]:
                left = left[client.send(left) :]
                if not left:
                    sent, left = sent + 1, frame
            elif not transport.is_reading():
                break
        assert sent < MOST_MESSAGES, "the server reads on"
        (session,) = server.server.sessions
        assert len(session.journal) < sent
        assert transport.get_write_buffer_size() < 2 * len(LONG) + WATER
