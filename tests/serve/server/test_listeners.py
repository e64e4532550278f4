"""Each way to a server passes the same list: how long, how much, what is said when it fails."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mockllm.serve.interception.hosts import Hosts
from mockllm.serve.server.options import InterceptOptions, RecordOptions, ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.cases import for_all
from tests.timeouts import GIVE_UP

pytestmark = pytest.mark.slow

SHORT = 0.05
"""The patience of a server whose client sends nothing more: any time is long enough."""
MOST = 1000
HOST = "llm.test"

Connect = Callable[[ServerThread], socket.socket]


def to(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), GIVE_UP)


def secure(raw: socket.socket, thread: ServerThread, host: str) -> ssl.SSLSocket:
    authority = thread.server.authority
    assert authority is not None
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    return context.wrap_socket(raw, server_hostname=host)


def tunnel(thread: ServerThread, port: int) -> socket.socket:
    """A connection to the proxy, behind its answer to CONNECT."""
    raw = to(thread.server.proxy_url)
    raw.sendall(f"CONNECT {HOST}:{port} HTTP/1.1\r\nhost: {HOST}\r\n\r\n".encode())
    established = b"HTTP/1.1 200 Connection established\r\n\r\n"
    assert raw.recv(len(established), socket.MSG_WAITALL) == established
    return raw


LISTENERS: dict[str, Connect] = {
    "server": lambda thread: to(thread.url),
    "server, recording": lambda thread: to(thread.url),
    "server, TLS": lambda thread: secure(to(thread.url), thread, "localhost"),
    "server, either, TLS": lambda thread: secure(to(thread.url), thread, "localhost"),
    "server, either, plain": lambda thread: to(thread.url),
    "proxy": lambda thread: to(thread.server.proxy_url),
    "proxy, CONNECT": lambda thread: tunnel(thread, 80),
    "proxy, CONNECT, TLS": lambda thread: secure(tunnel(thread, 443), thread, HOST),
}

SILENT: dict[str, Connect] = {
    "server": lambda thread: to(thread.url),
    "server, TLS": lambda thread: to(thread.url),
    "server, either, TLS": lambda thread: to(thread.url),
    "proxy": lambda thread: to(thread.server.proxy_url),
    "proxy, CONNECT": lambda thread: tunnel(thread, 80),
    "proxy, CONNECT, TLS": lambda thread: tunnel(thread, 443),
}
"""Connections on which nothing has arrived yet, of TLS neither."""


@contextmanager
def reached(way: str, folder: Path, patience: float = GIVE_UP) -> Iterator[ServerThread]:
    """A server that is reached in one of these ways."""
    record = RecordOptions(folder, {"chat": "http://127.0.0.1:9"}) if "recording" in way else None
    intercept = InterceptOptions(Hosts((HOST,)), 0) if "proxy" in way else None
    options = ServerOptions(
        grace=0,
        tls="server, TLS" in way,
        record=record,
        intercept=intercept,
        patience=patience,
        max_body=MOST,
    )
    with ServerThread((), options) as thread:
        if "either" in way:
            thread.wait(thread.server.take_tls)
        yield thread


def until_closed(sock: socket.socket, end: bytes = b"\0") -> bytes:
    """What arrives until the server closes the connection, or until this end."""
    data = b""
    try:
        while end not in data and (part := sock.recv(65536)):
            data += part
    except (ConnectionResetError, ssl.SSLError):
        pass
    return data


def head(way: str, length: int) -> bytes:
    target = "/v1/chat/completions"
    if way == "proxy":
        target = f"http://{HOST}{target}"
    return (
        f"POST {target} HTTP/1.1\r\nhost: {HOST}\r\ncontent-type: application/json\r\n"
        f"content-length: {length}\r\n\r\n"
    ).encode()


@for_all("way", SILENT)
def test_silence_ends(way: str, tmp_path: Path) -> None:
    """A connection on which nothing arrives is closed, and nothing is noted: browsers open some
    that they may need."""
    with reached(way, tmp_path, SHORT) as thread, closing(SILENT[way](thread)) as sock:
        assert until_closed(sock) == b""
        if "CONNECT" not in way:
            assert thread.exchanges("default") == ()


@for_all("way", [way for way in SILENT if "TLS" in way])
@pytest.mark.parametrize("begin", [b"\x16", b"\x16\x03\x01\x02\x00\x01\x00"])
def test_half_a_handshake_ends(way: str, tmp_path: Path, begin: bytes) -> None:
    with reached(way, tmp_path, SHORT) as thread, closing(SILENT[way](thread)) as sock:
        sock.sendall(begin)
        assert until_closed(sock) == b""


@for_all("way", LISTENERS)
def test_half_a_head_ends(way: str, tmp_path: Path) -> None:
    """And stands in the journal of the default session, as nothing is known of its own."""
    with reached(way, tmp_path, 1.0) as thread, closing(LISTENERS[way](thread)) as sock:
        sock.sendall(head(way, 5)[:-2])
        assert until_closed(sock) == b""
        (entry,) = thread.exchanges("default")
    assert entry.played.problems[0].startswith("The head of the request did not arrive whole")


REFUSED = {
    "half a body": (408, "nothing more came"),
    "too much": (413, f"larger than {MOST} bytes"),
    "no request": (400, "This is no HTTP request"),
    "a long line": (400, "This is no HTTP request"),
}


@for_all("way,sent", [(way, sent) for way in LISTENERS for sent in REFUSED])
def test_what_is_refused(way: str, sent: str, tmp_path: Path) -> None:
    """With the same words, however the client came."""
    if way == "server, recording" and sent == "too much":
        return  # what is recorded passes at any size, and `max_recorded` bounds the copy
    status, message = REFUSED[sent]
    data = {
        "half a body": head(way, 5) + b"{",
        "too much": head(way, MOST + 1) + b"x" * (MOST + 1),
        "no request": b"\x01\x02\r\n\r\n",
        "a long line": b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    }[sent]
    with ExitStack() as stack:
        thread = stack.enter_context(
            reached(way, tmp_path, 1.0 if sent == "half a body" else GIVE_UP)
        )
        sock = stack.enter_context(closing(LISTENERS[way](thread)))
        sock.sendall(data)
        # After its answer the server reads on for a while: a reset could overtake it.
        answer = until_closed(sock, message.encode()).decode()
    assert answer.split(" ", 2)[1] == str(status)
    assert message in answer


@for_all(
    "name", ["x..test", "-a.test", "a" * 64, "a." * 130 + "test", "*.test", "a b", "\x7f", "1.2"]
)
@pytest.mark.filterwarnings("error")
def test_a_name_that_gets_no_certificate(name: str, tmp_path: Path) -> None:
    """The handshake ends with an alert, and no traceback; the server goes on."""
    with reached("server, TLS", tmp_path) as thread:
        with closing(to(thread.url)) as raw:
            raw.sendall(hello(name.encode()))
            assert until_closed(raw)[:1] in (b"", b"\x15")  # an alert (RFC 8446, section 6)
        with closing(LISTENERS["server, TLS"](thread)) as sock:
            sock.sendall(b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            assert until_closed(sock).startswith(b"HTTP/1.1 200 ")


def test_a_server_with_and_without_tls_at_its_end(tmp_path: Path) -> None:
    """Connections that have not begun end with the server, which does not wait for them."""
    with reached("either", tmp_path) as thread:
        silent = to(thread.url)
        with closing(LISTENERS["server, either, plain"](thread)) as sock:
            sock.sendall(b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            assert until_closed(sock).startswith(b"HTTP/1.1 200 ")
    with closing(silent):
        assert until_closed(silent) == b""


def test_a_client_that_trusts_others_is_noted() -> None:
    notices: list[str] = []
    with ServerThread((), ServerOptions(grace=0, notice=notices.append)) as thread:
        thread.wait(thread.server.take_tls)
        with closing(to(thread.url)) as raw, pytest.raises(ssl.SSLCertVerificationError):
            ssl.create_default_context().wrap_socket(raw, server_hostname="localhost")
    assert [line.partition(" (")[0] for line in notices] == [
        "a client of this server does not take the certificate of this process"
    ]


def hello(name: bytes) -> bytes:
    """The beginning of TLS 1.2 with a name that no library would send."""

    def sized(data: bytes, bytes_of_size: int) -> bytes:
        return len(data).to_bytes(bytes_of_size, "big") + data

    server_name = sized(b"\0" + sized(name, 2), 2)
    extensions = b"\0\0" + sized(server_name, 2) + b"\0\x0a" + sized(sized(b"\0\x17", 2), 2)
    extensions += b"\0\x0d" + sized(sized(b"\x04\x03\x08\x04", 2), 2)
    body = b"\x03\x03" + b"r" * 32 + b"\0" + sized(b"\xc0\x2b\xc0\x2f", 2) + b"\x01\0"
    message = b"\x01" + sized(body + sized(extensions, 2), 3)
    return b"\x16\x03\x01" + sized(message, 2)
