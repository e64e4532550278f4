"""Connections that a recorder joins after an upgrade, as bytes. Sockets alone: it runs with the
oldest aiohttp, too."""

import socket
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from mockllm.serve.server.options import RecordOptions, ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.timeouts import GIVE_UP


@contextmanager
def recorder(url, tmp_path, max_recorded=2**28, **more):
    """A recorder in front of a service, and the lines that it reports."""
    lines = []
    options = RecordOptions(
        tmp_path / "recorded",
        {"chat": url},
        "add",
        report=lines.append,
        max_recorded=max_recorded,
    )
    with ServerThread((), ServerOptions(record=options, grace=0, **more)) as thread:
        yield thread, lines


def raw(url, behind=b"", connection="keep-alive, Upgrade"):
    """All that a client gets that asks for a WebSocket and does not end the connection."""
    parts = urlsplit(url)
    head = f"GET /v1/realtime HTTP/1.1\r\nhost: x\r\nconnection: {connection}\r\n"
    head += "upgrade: WebSocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: eA==\r\n\r\n"
    received = b""
    with socket.create_connection((parts.hostname, parts.port), GIVE_UP) as client:
        client.sendall(head.encode() + behind)
        while data := client.recv(65536):
            received += data
    return received


@pytest.mark.parametrize("waits", [True, False])
def test_what_comes_together_with_the_heads(tmp_path, waits):
    """Bytes behind the request, and behind the answer of a service that may be gone at once,
    arrive. That they are no frames is reported."""
    received = b""

    def answer(listening):
        nonlocal received
        connection, _ = listening.accept()
        with connection:
            while b"\r\n\r\n" not in received:
                received += connection.recv(65536)
            connection.sendall(
                b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n"
                b"upgrade: websocket\r\nsec-websocket-accept: x\r\n\r\nlate"
            )
            while waits and not received.endswith(b"early"):
                received += connection.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer, args=(listening,))
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with recorder(url, tmp_path) as (server, lines):
            head, _, rest = raw(server.url, b"early").partition(b"\r\n\r\n")
        thread.join()
    assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert {b"Connection: Upgrade", b"Upgrade: websocket", b"sec-websocket-accept: x"} <= set(
        head.split(b"\r\n")
    )
    assert rest == b"late"
    assert b"\r\nUpgrade: websocket\r\n" in received
    reports = [line.description for line in lines if line.outcome == "skipped"]
    assert len(reports) == 1
    assert reports[0].endswith("the last one breaks off")


def test_an_upgrade_that_is_none():
    """Without `Connection: upgrade` the header `Upgrade` concerns nobody (RFC 9110, section 7.8):
    such a request is one over HTTP."""
    with ServerThread((), ServerOptions(grace=0)) as thread:
        assert raw(thread.url, connection="close").startswith(b"HTTP/1.1 426 ")
