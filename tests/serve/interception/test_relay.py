"""Plain requests through the forward proxy: each goes to the host that it names, to no other."""

from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import pytest
import requests
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from mockllm.serve.interception.child import with_session
from mockllm.serve.interception.hosts import Hosts
from mockllm.serve.server.options import InterceptOptions, RecordOptions, ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.cases import for_all
from tests.serve.interception.conftest import Intercepting, intercepting
from tests.serve.server.recording.odd_upstream import CHUNKED, OddUpstream
from tests.timeouts import GIVE_UP


def service(name: str) -> OddUpstream:
    """A service on this machine that says its name."""

    async def script(request, wire):  # type: ignore[no-untyped-def]
        await wire.head(f"content-length: {len(name)}")
        await wire.raw("" if request.method == "HEAD" else name)

    return OddUpstream(script)


@pytest.fixture(scope="module")
def services() -> Iterator[dict[str, OddUpstream]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(service(name)) for name in ("A", "B")}


@pytest.fixture(scope="module")
def server() -> Iterator[Intercepting]:
    """A proxy that intercepts `llm.test`, and lets other hosts pass."""
    with intercepting("llm.test", tunnels=True) as made:
        yield made


def ask(connection: http.client.HTTPConnection, url: str, key: str) -> tuple[int, str]:
    """What a connection to a proxy answers to a request for a URL with a key."""
    connection.request(
        "GET", url, headers={"authorization": key, "proxy-authorization": "Basic eDp4"}
    )
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@given(st.lists(st.sampled_from(["A", "B", "intercepted"]), min_size=1, max_size=6))
def test_one_connection_for_many_hosts(
    server: Intercepting, services: dict[str, OddUpstream], order: list[str]
) -> None:
    """In any order, each host gets its own requests with their own keys, and nothing of the
    proxy's; what is intercepted is intercepted."""
    seen = {name: len(there.requests) for name, there in services.items()}
    proxy = urlsplit(server.thread.server.proxy_url)
    connection = http.client.HTTPConnection(proxy.hostname or "", proxy.port, timeout=GIVE_UP)
    for name in order:
        url = services[name].url if name in services else "http://llm.test"
        status, text = ask(connection, f"{url}/v1/models?of={name}", f"key of {name}")
        assert status == 200
        assert text == name or name == "intercepted"
    assert connection.sock is not None  # it was one connection
    connection.close()
    for name, there in services.items():
        got = there.requests[seen[name] :]
        assert len(got) == order.count(name)
        for request in got:
            assert request.target == f"/v1/models?of={name}"
            assert request.header("authorization") == [f"key of {name}"]
            assert request.header("host") == [urlsplit(there.url).netloc]
            assert request.header("proxy-authorization") == []


def _requests(proxy: str, urls: list[str]) -> list[str]:
    with requests.Session() as session:
        session.trust_env, session.proxies = False, {"http": proxy}
        return [session.get(url, timeout=GIVE_UP).text for url in urls]


def _httpx(proxy: str, urls: list[str]) -> list[str]:
    with httpx.Client(proxy=proxy, trust_env=False, timeout=GIVE_UP) as client:
        return [client.get(url).text for url in urls]


def _urllib3(proxy: str, urls: list[str]) -> list[str]:
    with urllib3.ProxyManager(proxy) as manager:
        return [manager.request("GET", url).data.decode() for url in urls]


def _curl(proxy: str, urls: list[str]) -> list[str]:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    ran = subprocess.run(["curl", "-s", "-x", proxy, *urls], capture_output=True, check=True)
    return list(ran.stdout.decode())


CLIENTS: dict[str, Callable[[str, list[str]], list[str]]] = {
    "curl": _curl,
    "httpx": _httpx,
    "requests": _requests,
    "urllib3": _urllib3,
}


@for_all("client", CLIENTS)
def test_clients_that_reuse_connections(
    server: Intercepting, services: dict[str, OddUpstream], client: str
) -> None:
    urls = [f"{services[name].url}/{name}" for name in "ABAB"]
    assert CLIENTS[client](server.thread.server.proxy_url, urls) == list("ABAB")


def raw_exchange(server: Intercepting, data: bytes) -> bytes:
    """What the proxy sends to a client that then ends its side."""
    proxy = urlsplit(server.thread.server.proxy_url)
    received = b""
    with socket.create_connection((proxy.hostname, proxy.port), GIVE_UP) as raw:
        raw.sendall(data)
        raw.shutdown(socket.SHUT_WR)
        while piece := raw.recv(65536):
            received += piece
    return received


def test_fields_of_one_connection_stay_here(server: Intercepting) -> None:
    """Those of the specification, and those that `Connection` names, in both directions; all others
    pass as they are, in their order."""

    async def script(request, wire):  # type: ignore[no-untyped-def]
        await wire.head(
            "X-Kept: a", "x-KEPT: b", "Connection: x-hop", "X-Hop: 1", "content-length: 0"
        )

    with OddUpstream(script) as upstream:
        head = (
            f"GET {upstream.url}/a//b?c=%2F&c=d HTTP/1.1\r\nHost: other.test\r\nX-Sent: 1\r\n"
            "Connection: keep-alive, x-mine\r\nX-Mine: 2\r\nProxy-Connection: keep-alive\r\n"
            "Proxy-Authorization: Basic eDp4\r\nTE: trailers\r\nCookie: c\r\n\r\n"
        )
        answer = raw_exchange(server, head.encode())
        (request,) = upstream.requests
    names = {name.lower() for name, _ in request.headers}
    assert request.target == "/a//b?c=%2F&c=d"
    assert names == {"host", "x-sent", "cookie"}
    assert request.header("host") == [urlsplit(upstream.url).netloc]
    lines = answer.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert [line for line in lines if b"kept" in line.lower()] == [b"X-Kept: a", b"x-KEPT: b"]
    assert b"X-Hop" not in answer


@for_all(
    ("method", "lines", "body", "expected"),
    [
        ("GET", ("content-length: 3",), b"abc", b"abc"),
        ("GET", (CHUNKED,), b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", b"abc"),
        (
            "GET",
            ("content-length: 9", "content-encoding: gzip"),
            b"\x1f\x8b no gzi",
            b"\x1f\x8b no gzi",
        ),
        ("HEAD", ("content-length: 3",), b"", b""),
        ("POST", ("content-length: 3", "location: http://else.test/"), b"abc", b"abc"),
    ],
)
def test_answers_pass_unchanged(
    server: Intercepting, method: str, lines: tuple[str, ...], body: bytes, expected: bytes
) -> None:
    """No redirect is followed, and nothing decompressed."""

    async def script(request, wire):  # type: ignore[no-untyped-def]
        await wire.head(*lines, status="302 Look elsewhere")
        await wire.raw(body)

    with (
        OddUpstream(script) as upstream,
        httpx.Client(
            proxy=server.thread.server.proxy_url, trust_env=False, timeout=GIVE_UP
        ) as client,
    ):
        sent = b"x" * 3_000_000 if method == "POST" else None
        with client.stream(method, upstream.url, content=sent) as answer:
            assert b"".join(answer.iter_raw()) == expected
        (request,) = upstream.requests
    assert (answer.status_code, answer.reason_phrase) == (302, "Look elsewhere")
    assert request.body == (sent or b"")


def test_an_answer_that_breaks_off(server: Intercepting) -> None:
    """The client is not told that it is whole."""

    async def script(request, wire):  # type: ignore[no-untyped-def]
        await wire.head("content-length: 10")
        await wire.raw("abc")
        wire.writer.close()

    with (
        OddUpstream(script) as upstream,
        httpx.Client(
            proxy=server.thread.server.proxy_url, trust_env=False, timeout=GIVE_UP
        ) as client,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        client.get(upstream.url)


def test_a_websocket_passes(server: Intercepting) -> None:
    """After the heads, bytes in both directions."""

    async def script(request, wire):  # type: ignore[no-untyped-def]
        assert request.header("upgrade") == ["websocket"]
        await wire.head(
            "Upgrade: websocket", "Connection: Upgrade", status="101 Switching Protocols"
        )
        await wire.raw(await wire.reader.read(3))
        wire.writer.close()

    with OddUpstream(script) as upstream:
        place = urlsplit(upstream.url).netloc
        head = f"GET http://{place}/ HTTP/1.1\r\nHost: {place}\r\n"
        head += "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        proxy = urlsplit(server.thread.server.proxy_url)
        with socket.create_connection((proxy.hostname, proxy.port), GIVE_UP) as raw:
            raw.sendall(head.encode())
            received = b""
            while not received.endswith(b"\r\n\r\n"):
                received += raw.recv(65536)
            raw.sendall(b"abc")
            while piece := raw.recv(65536):
                received += piece
    assert received.startswith(b"HTTP/1.1 101 ")
    assert received.endswith(b"\r\n\r\nabc")


def test_a_service_that_is_away(server: Intercepting) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    answer = raw_exchange(
        server, f"GET http://127.0.0.1:{port}/ HTTP/1.1\r\nhost: a\r\n\r\n".encode()
    )
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert f"http://127.0.0.1:{port} does not answer".encode() in answer


@for_all("host", ["127.0.0.1", "localhost", "127.0.0.2", "a.localhost", socket.gethostname()])
@pytest.mark.parametrize("line", ["CONNECT {place}", "GET http://{place}/_mockllm/journal"])
@pytest.mark.parametrize("port", ["server", "proxy"])
def test_mockllm_itself_is_not_reached(
    server: Intercepting, port: str, line: str, host: str
) -> None:
    """By no name, on neither port: its rules about who may speak to it would not hold."""
    url = server.thread.url if port == "server" else server.thread.server.proxy_url
    place = f"{host}:{urlsplit(url).port}"
    head = f"{line.format(place=place)} HTTP/1.1\r\nhost: {place}\r\n\r\n"
    answer = raw_exchange(server, head.encode())
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"is mockllm itself" in answer


def test_a_password(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Where the proxy has one, nothing passes without it; the user name stays the session."""
    intercept = InterceptOptions(Hosts(("llm.test",)), 0, tunnels=True, password="wörd")
    options = ServerOptions(
        intercept=intercept, grace=0, record=RecordOptions(tmp_path, mode="none")
    )
    with ServerThread((), options) as thread, service("A") as there:
        url = thread.server.proxy_url
        for proxy in (url, with_session(url, "mine", "word"), with_session(url, "mine")):
            with httpx.Client(proxy=proxy, trust_env=False, timeout=GIVE_UP) as client:
                for asked in (there.url, "http://llm.test/v1/models"):
                    answer = client.get(asked)
                    assert answer.status_code == 407
                    assert answer.headers["proxy-authenticate"] == 'Basic realm="mockllm"'
                with pytest.raises(httpx.ProxyError, match="407"):
                    client.get("https://llm.test/")
        right = with_session(url, "mine", "wörd")
        with httpx.Client(proxy=right, trust_env=False, timeout=GIVE_UP) as client:
            assert client.get(there.url).text == "A"
            assert client.get("http://llm.test/v1/models").status_code == 200
        assert [entry.path for entry in thread.exchanges("mine")] == ["/v1/models"]
        assert "proxy-authorization" not in thread.exchanges("mine")[0].headers
        assert len(there.requests) == 1


@for_all("host", ["0.0.0.0", "::"])
def test_a_proxy_for_the_network_needs_a_password(host: str) -> None:
    from mockllm.core.errors import UsageError
    from mockllm.serve.server.forward_proxy import check_reach

    with pytest.raises(UsageError, match="MOCKLLM_PROXY_PASSWORD"):
        check_reach(host, "")
    check_reach(host, "a password")
