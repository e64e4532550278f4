"""Requests of which a part arrives, and then nothing more."""

import json
import queue
import socket
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import httpx
import pytest

from mockllm import ServerOptions, ServerThread
from mockllm.serve.server.options import RecordOptions
from mockllm.wire.protocols import PROTOCOLS
from tests.serve.server.recording.odd_upstream import OddUpstream
from tests.timeouts import GIVE_UP
from tests.wire.framing.test_content_coding import PACKED

HELLO = """
scenario: hello
match: {user: hello}
turns:
  - reply: {text: Hello.}
    repeat: true
"""
BODY = b'{"model": "mock/hello", "messages": [{"role": "user", "content": "hello"}]}'
CHAT = "/v1/chat/completions"
SHORT = 0.05
"""The patience of a server whose client sends nothing more: any time is long enough."""


@contextmanager
def connected(served):
    where = urlsplit(served.url)
    with socket.create_connection((where.hostname, where.port), GIVE_UP) as sock:
        yield sock


def head(path, length, *lines):
    return "\r\n".join(
        [f"POST {path} HTTP/1.1", "host: localhost", f"content-length: {length}", *lines, "", ""]
    ).encode()


def until_closed(sock):
    data = b""
    try:
        while part := sock.recv(65536):
            data += part
    except ConnectionResetError:
        pass
    return data


def journal_entry(logged):
    exchange = logged.get(timeout=GIVE_UP)
    return exchange.status, exchange.outcome, exchange.problems[0]


@pytest.mark.parametrize("sent", [b"P", b"POST /v1/chat/comp", head(CHAT, 5)[:-2]])
def test_half_a_head_closes_the_connection(serve, sent):
    """Nothing is known of the request, so there is no answer; the journal has an entry."""
    logged = queue.Queue()
    served = serve(HELLO, patience=SHORT, log=logged.put)
    with connected(served) as sock:
        sock.sendall(sent)
        assert until_closed(sock) == b""
    status, outcome, problem = journal_entry(logged)
    assert (status, outcome) == (0, "invalid")
    assert problem.startswith("The head of the request did not arrive whole: nothing more came")
    assert [entry["problems"] for entry in served.journal()] == [[problem]]
    assert served.http.get("/_mockllm/verify").json()["invalid"] == [1]


@pytest.mark.parametrize("api", [pytest.param(name) for name in PROTOCOLS])
@pytest.mark.parametrize("length", [len(BODY) + 1, None], ids=["length", "chunked"])
def test_half_a_body_is_answered(serve, api, length):
    """The answer is a 408 in the shape of the API, then the connection ends."""
    logged = queue.Queue()
    served = serve(HELLO, patience=SHORT, log=logged.put)
    path = PROTOCOLS[api].client.path_of("hello", stream=False)
    with connected(served) as sock:
        if length is None:
            chunked = head(path, 0).replace(b"content-length: 0", b"transfer-encoding: chunked")
            sock.sendall(chunked + b"%x\r\n" % len(BODY) + BODY + b"\r\n")
        else:
            sock.sendall(head(path, length) + BODY)
        answered, _, rest = sock.recv(65536).partition(b"\r\n\r\n")
        assert answered.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in answered
        message = json.loads(rest)
    assert "did not arrive whole" in json.dumps(message)
    status, outcome, problem = journal_entry(logged)
    assert (status, outcome) == (408, "invalid")
    assert "The body of the request" in problem
    assert served.journal()[0]["status"] == 408


def _chunked(data):
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data) if data else b"0\r\n\r\n"


UNREADABLE = {
    "chunk size": ("", b"5\r\nhello\r\nzz\r\n"),
    "chunk end": ("", b"5\r\nhelloXX"),
    "garbage after a chunk without data": ("gzip", b"1\r\n\x1f\r\n1\r\nx\r\n"),
    **{
        f"{name}, {kind}": (coding, _chunked(change(pack(BODY))))
        for name, (coding, pack) in PACKED.items()
        for kind, change in {
            "cut": lambda packed: packed[: len(packed) // 2],
            "without its last byte": lambda packed: packed[:-1],
            "a byte": lambda packed: packed[:1],
            "garbage": lambda packed: b"\x01 garbage",
        }.items()
        if coding in ("deflate", "gzip", "br") and (coding, kind[0]) != ("gzip", "w")
    },
}


@pytest.mark.parametrize("how", ["head first", "at once", "byte by byte"])
@pytest.mark.parametrize("case", UNREADABLE)
def test_a_body_that_cannot_be_read_is_refused_at_once(serve, case, how):
    """Its framing is wrong, or it cannot be unpacked: the patience is for what may still come."""
    coding, body = UNREADABLE[case]
    served = serve(HELLO, patience=10 * GIVE_UP)
    sent = head(CHAT, 0, f"content-encoding: {coding or 'identity'}")
    sent = sent.replace(b"content-length: 0", b"transfer-encoding: chunked")
    with connected(served) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if how == "at once":
            sock.sendall(sent + body)
        else:
            sock.sendall(sent.replace(b"\r\n\r\n", b"\r\nexpect: 100-continue\r\n\r\n"))
            assert sock.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
            step = 1 if how == "byte by byte" else len(body)
            with suppress(ConnectionError):
                for at in range(0, len(body), step):
                    sock.sendall(body[at : at + step])
        answered, _, rest = sock.recv(65536).partition(b"\r\n\r\n")
    assert answered.split(b" ")[1] == b"400"
    assert json.loads(rest)["error"]["code"] in ("unreadable_body", "malformed", "invalid_json")


def test_control_routes_are_no_exception(serve):
    """Half a body for a control route is answered with its error."""
    served = serve(HELLO, patience=SHORT)
    with connected(served) as sock:
        sock.sendall(head("/_mockllm/sessions", 10) + b"{")
        data = sock.recv(65536)
    assert data.startswith(b"HTTP/1.1 408 ")
    assert b'{"error":{"message":"The body' in data


def test_what_goes_on_is_waited_for(serve):
    """A request that arrives byte by byte is answered, whatever its whole time is: the server has
    handled each part when the next one is sent."""
    served = serve(HELLO, patience=GIVE_UP)
    with connected(served) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in head(CHAT, len(BODY), "expect: 100-continue"):
            sock.sendall(bytes([byte]))
        assert sock.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        for byte in BODY:
            sock.sendall(bytes([byte]))
        assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
    assert served.journal()[0]["body"] == BODY.decode()


def test_a_connection_that_is_idle_stays(serve):
    """Between two requests, and before the first, a connection may be idle for longer; so may one
    on which only empty lines came. A head that began after that is watched again."""
    served = serve(HELLO, patience=SHORT)
    with connected(served) as idle, connected(served) as sock, connected(served) as other:
        idle.sendall(b"\r\n")
        for _ in range(2):
            sock.sendall(head(CHAT, len(BODY)) + BODY)
            assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
            other.sendall(b"GET")  # it is closed after the time for which the others are idle
            assert until_closed(other) == b""
            other.close()
            other = socket.create_connection(other_address(served), GIVE_UP)
        sock.sendall(b"POST ")
        assert until_closed(sock) == b""
        idle.sendall(head(CHAT, len(BODY)) + BODY)
        assert idle.recv(65536).startswith(b"HTTP/1.1 200 ")
        other.close()


def other_address(served):
    where = urlsplit(served.url)
    return where.hostname, where.port


@pytest.mark.parametrize("limit", ["limit:number=5", "slow-accept:number=5"])
def test_limited_connections_are_watched_too(serve, limit):
    """With a fault of connections, half a head is dropped as well."""
    from mockllm.play.replay.fault_plan import read_plan

    served = serve(HELLO, patience=SHORT, faults=read_plan([limit]))
    with connected(served) as sock:
        sock.sendall(b"POST ")
        assert until_closed(sock) == b""


@pytest.mark.slow
@pytest.mark.parametrize("size", [10, 2 * 1024 * 1024], ids=["small", "large"])
def test_a_recorder_does_not_wait_either(tmp_path, size):
    """Half a body for a path that the service answers is answered with a 408; a large one is on its
    way to the service already, and nothing of it is recorded."""

    async def play(request, wire):
        await wire.body("{}", "Content-Type: application/json")

    with OddUpstream(play) as upstream:
        record = RecordOptions(tmp_path / "recorded", {"chat": upstream.url}, "add")
        options = ServerOptions(record=record, patience=SHORT)
        with ServerThread((), options) as thread, connected(thread) as sock:
            sock.sendall(head("/v1/files", size + 1) + b"x" * size)
            assert sock.recv(65536).startswith(b"HTTP/1.1 408 ")
            journal = httpx.get(f"{thread.url}/_mockllm/journal", timeout=GIVE_UP).json()
    (entry,) = journal["exchanges"]
    assert (entry["status"], entry["outcome"]) == (408, "error")
    assert "did not arrive whole" in entry["problems"][0]
    assert not list((tmp_path / "recorded").glob("*.yaml"))
