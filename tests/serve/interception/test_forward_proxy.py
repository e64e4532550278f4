"""The forward proxy: what it intercepts, what it lets pass, and what it refuses."""

from __future__ import annotations

import json
import socket
import ssl
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from mockllm.play.replay.loading import loads
from mockllm.serve.interception.authority import Authority
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.cases import for_all
from tests.serve.interception.conftest import ASKED, OPENAI, SCENARIO, Intercepting, intercepting
from tests.timeouts import GIVE_UP

CONNECT = b"CONNECT %s HTTP/1.1\r\nhost: llm.test\r\n\r\n"


def client(server: Intercepting) -> httpx.Client:
    """A client with the proxy and the certificates of a program that is led there."""
    return httpx.Client(
        proxy=server.environment["HTTPS_PROXY"],
        verify=ssl.create_default_context(cafile=server.trusted),
        timeout=GIVE_UP,
    )


def test_tls_to_a_known_service_ends_here(server: Intercepting) -> None:
    """The client sees the URL that it asked for, the server the host, and the session's journal."""
    with client(server) as http:
        answer = http.post(OPENAI, json=ASKED)
        streamed = http.post(OPENAI, json={**ASKED, "stream": True})
    assert answer.json()["choices"][0]["message"]["content"] == "Hi there."
    assert str(answer.url) == OPENAI
    assert streamed.text.endswith("data: [DONE]\n\n")
    assert [entry.headers["host"] for entry in server.journal[-2:]] == ["api.openai.com"] * 2


def test_connections_get_no_tickets(server: Intercepting) -> None:
    """They break clients that read and write in two threads."""
    trusting = ssl.create_default_context(cafile=server.trusted)
    body = request("api.openai.com")
    with socket.create_connection(proxy_of(server), GIVE_UP) as raw:
        raw.sendall(CONNECT % b"api.openai.com:443")
        assert raw.recv(65536) == b"HTTP/1.1 200 Connection established\r\n\r\n"
        with trusting.wrap_socket(raw, server_hostname="api.openai.com") as secured:
            secured.sendall(body)
            assert secured.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")
            assert secured.version() == "TLSv1.3"
            assert secured.session is None or not secured.session.has_ticket


def test_plain_http_is_intercepted_too() -> None:
    """By an absolute target, and by CONNECT, as `curl -p` and WebSockets have it."""
    with intercepting("llm.test") as server, client(server) as http:
        assert http.post("http://llm.test/v1/chat/completions", json=ASKED).status_code == 200
        for port in (80, 8080):
            asked = request(f"llm.test:{port}")
            data = exchange(server, CONNECT % (b"llm.test:%d" % port), asked)
            begin = b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n"
            assert data.startswith(begin)


def request(host: str) -> bytes:
    body = json.dumps(ASKED).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def proxy_of(server: Intercepting) -> tuple[str, int]:
    """Where the forward proxy listens."""
    host, port = server.thread.server.proxy_url.removeprefix("http://").split(":")
    return host, int(port)


def exchange(server: Intercepting, *pieces: bytes) -> bytes:
    """What a raw client gets until the proxy closes the connection."""
    received = b""
    with socket.create_connection(proxy_of(server), GIVE_UP) as raw:
        for piece in pieces:
            raw.sendall(piece)
        while data := raw.recv(65536):
            received += data
    return received


@for_all(
    ("line", "status", "message"),
    [
        ("CONNECT example.com:443", 403, "does not reach example.com"),
        ("GET http://example.com/", 403, "--intercept example.com"),
        ("GET /", 400, "This is a proxy"),
        ("GET https://api.openai.com/", 400, "This is a proxy"),
        ("GET ftp://api.openai.com/", 400, "This is a proxy"),
        ("OPTIONS *", 400, "This is a proxy"),
        ("CONNECT :443", 400, "no URL"),
        ("CONNECT a:99999", 400, "no URL"),
        ("CONNECT me@api.openai.com:443", 400, "user name"),
        ("GET http://me:key@api.openai.com/", 400, "user name"),
        ("CONNECT x..openai.azure.com:443", 400, "neither the name nor the address"),
        (f"CONNECT {'a' * 64}.openai.azure.com:443", 400, "neither the name nor the address"),
        (f"CONNECT {'a.' * 130}openai.azure.com:443", 400, "neither the name nor the address"),
        ("GET http://-a.openai.azure.com/", 400, "neither the name nor the address"),
        *(
            (f"{begin}{host}{end}", 400, message)
            for begin, end in (("CONNECT ", ":443"), ("GET http://", "/"))
            for host, message in (
                ("0.0.0.0", "no address to connect to"),
                ("[::]", "no address to connect to"),
                ("[::ffff:127.0.0.1]", "no address to connect to"),
                ("127.1", "neither the name nor the address"),
                ("2130706433", "neither the name nor the address"),
                ("0x7f000001", "neither the name nor the address"),
                ("0177.0.0.1", "neither the name nor the address"),
            )
        ),
    ],
)
@pytest.mark.parametrize("tunnels", [False, True], ids=["", "tunnels"])
def test_what_is_refused(tunnels: bool, line: str, status: int, message: str) -> None:
    """With a reason, and nothing is reached; also where other hosts pass."""
    if tunnels and status == 403:
        return
    with intercepting(tunnels=tunnels) as server:
        answer = exchange(server, f"{line} HTTP/1.1\r\nhost: a.test\r\n\r\n".encode())
    assert answer.split(b" ", 2)[1] == b"%d" % status
    assert message in answer.decode()


@for_all(
    ("sent", "message"),
    [
        (b"\x16\x03\x01\r\n\r\n", b"This is no HTTP request"),
        (b"GET http://api.openai.com/ HTTP/1.1\r\n\r\n", b"Missing 'Host' header"),
        (b"CONNECT api.openai.com:443 HTTP/1.1\r\n\r\n\x16\x03", b"after the answer"),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", b"This is no HTTP request"),
        (b"CONNECT api.openai.com:443 HTTP/1.1\r\nhost: a\r\n\r\n\x16\x03", b"after the answer"),
    ],
)
def test_what_is_no_request(server: Intercepting, sent: bytes, message: bytes) -> None:
    answer = exchange(server, sent)
    assert answer.split(b" ", 2)[1] == b"400"
    assert message in answer


def test_a_refused_host_is_said() -> None:
    """The client may hide it: the server says it, too."""
    with intercepting() as server:
        exchange(server, b"CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n")
        notice = server.notices.get(timeout=GIVE_UP)
    assert "does not reach example.com" in notice


def test_a_client_that_does_not_trust_is_said() -> None:
    with intercepting() as server:
        with (
            httpx.Client(proxy=server.environment["HTTPS_PROXY"], timeout=GIVE_UP) as http,
            pytest.raises(httpx.ConnectError, match="certificate"),
        ):
            http.get("https://api.openai.com/v1/models")
        notice = server.notices.get(timeout=GIVE_UP)
    assert "a client of api.openai.com does not take the certificate" in notice


@pytest.fixture
def far() -> Iterator[int]:
    """The port of a service that sends back what it gets, in upper case, until its client ends."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                while data := connection.recv(65536):
                    connection.sendall(data.upper())

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def test_other_hosts_are_tunnelled_untouched(far: int) -> None:
    """Bytes pass in both directions, more than buffers hold, and so does the end of one side."""
    with intercepting(tunnels=True) as server:
        host, port = server.thread.server.proxy_url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), GIVE_UP) as raw:
            raw.sendall(CONNECT % (b"127.0.0.1:%d" % far))
            established = b"HTTP/1.1 200 Connection established\r\n\r\n"
            assert raw.recv(len(established), socket.MSG_WAITALL) == established
            data = b"some bytes " * 300_000
            sender = threading.Thread(
                target=lambda: (raw.sendall(data), raw.shutdown(socket.SHUT_WR))
            )
            sender.start()
            received = bytearray()
            while piece := raw.recv(65536):
                received += piece
            sender.join()
    assert received == data.upper()


def test_a_host_that_cannot_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with intercepting(tunnels=True) as server:
        answer = exchange(server, CONNECT % (b"127.0.0.1:%d" % port))
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert f"127.0.0.1:{port} cannot be reached" in server.notices.get(timeout=GIVE_UP)


def test_keys_are_on_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of a host lies in a folder that only this user may read, and only for a moment."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen: list[int] = []

    class Watched(ssl.SSLContext):
        def load_cert_chain(self, certfile, *args, **options):  # type: ignore[no-untyped-def]
            folder = Path(certfile).parent
            seen.append(stat.S_IMODE(folder.stat().st_mode))
            super().load_cert_chain(certfile, *args, **options)

    monkeypatch.setattr(ssl, "SSLContext", Watched)
    authority = Authority()
    context = authority.context("api.openai.com")
    assert authority.context("api.openai.com") is context
    assert seen == [0o700]
    assert list(tmp_path.iterdir()) == []
    assert b"PRIVATE KEY" not in authority.trust_bundle() + authority.certificate


def test_a_server_with_tls() -> None:
    """It has a certificate for each name that a client gives, and its own URLs say so."""
    with ServerThread(loads(SCENARIO, "hello.yaml"), ServerOptions(tls=True, grace=0)) as thread:
        assert thread.url.startswith("https://127.0.0.1:")
        authority = thread.server.authority
        assert authority is not None
        context = ssl.create_default_context(cadata=authority.certificate.decode())
        port = int(thread.url.rpartition(":")[2])
        with httpx.Client(verify=context, timeout=GIVE_UP) as http:
            for host in ("127.0.0.1", "localhost"):
                url = f"https://{host}:{port}/v1/chat/completions"
                assert http.post(url, json=ASKED).status_code == 200
            made = http.post(f"{thread.url}/_mockllm/sessions", json={}).json()
            assert made["url"].startswith(thread.url)
        with (
            socket.create_connection(("127.0.0.1", port), GIVE_UP) as raw,
            context.wrap_socket(raw, server_hostname="api.cohere.com") as secured,
        ):
            assert secured.getpeercert()
