"""No byte breaks the server: each ends as an error in the form of an API, in log and journal."""

from __future__ import annotations

import gzip
import json
import logging
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mockllm import loads
from mockllm.cli.serving.server_log import LineOutput, ServerLog
from mockllm.play.replay.client_requests import first_body
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.timeouts import GIVE_UP

TEXT = "scenario: s\nmatch: {user: hello}\nturns:\n- {reply: [{text: hi}], repeat: true}\n"
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
HOST = b"host: 127.0.0.1\r\nconnection: close"


@dataclass
class Served:
    """A server, and what its log has."""

    thread: ServerThread
    log: list[Exchange] = field(default_factory=list)

    def send(self, data: bytes) -> tuple[int, str, bytes]:
        """Status, content type and body of the answer to bytes on a new connection."""
        port = int(self.thread.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), GIVE_UP) as connection:
            connection.sendall(data)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        head, _, body = answer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        return int(lines[0].split()[1]), headers.get("content-type", ""), body

    def control(self, path: str) -> Any:
        """The JSON body of a control route."""
        status, kind, body = self.send(get(f"/_mockllm/{path}"))
        assert (status, kind) == (200, "application/json"), body
        if b'"exchanges"' in body:  # it comes in HTTP chunks
            body = body[body.index(b"{") :].rpartition(b"\r\n0\r\n")[0]
            body = b"".join(body.split(b"\r\n")[::2])
        return json.loads(body)


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """One server for all tests: what one request does must not break the next."""
    log: list[Exchange] = []
    with ServerThread(loads(TEXT), ServerOptions(log=log.append, fallback=True)) as thread:
        yield Served(thread, log)


@pytest.fixture(autouse=True)
def no_traceback(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """aiohttp and asyncio have nothing to log."""
    with caplog.at_level(logging.WARNING):
        yield
    assert caplog.records == []


def get(path: str, *headers: bytes) -> bytes:
    """A GET request."""
    return b"\r\n".join([f"GET {path} HTTP/1.1".encode(), HOST, *headers, b"", b""])


def post(path: str, body: Any, *headers: bytes) -> bytes:
    """A POST request; `body` is bytes, or a JSON value."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"POST {path} HTTP/1.1".encode(), HOST, b"content-type: application/json"]
    return b"\r\n".join([*head, *headers, b"content-length: %d" % len(data), b"", b""]) + data


def chat(*headers: bytes, body: Any = CHAT) -> bytes:
    """A request to Chat Completions."""
    return post("/v1/chat/completions", body, *headers)


def test_a_latin_1_header_is_readable_in_the_journal(server: Served) -> None:
    """Node's fetch sends `X-Title: Café` as Latin-1."""
    assert server.send(chat("X-Title: Café".encode("latin-1")))[0] == 200
    assert server.send(chat("X-Title: Käse".encode()))[0] == 200
    titles = [entry["headers"].get("x-title") for entry in journal(server)]
    assert titles[-2:] == ["Café", "Käse"]


def journal(server: Served) -> list[Any]:
    """The entries of the default session."""
    return list(server.control("journal?session=default")["exchanges"])


@pytest.mark.parametrize("name", ["Café".encode("latin-1"), b"a b", b"../x", b"x" * 129])
def test_a_name_of_a_session_is_checked(server: Served, name: bytes) -> None:
    """No such session is made; the request is refused, and stands in the default one."""
    status, _, body = server.send(chat(b"x-mockllm-session: " + name))
    assert status == 400
    assert "is no name of a session" in json.loads(body)["error"]["message"]
    assert journal(server)[-1]["outcome"] == "invalid"
    sessions = {session["session"] for session in server.control("sessions")["sessions"]}
    assert sessions <= {"default", "mistake"}


@for_all("stream", [False, True])
@for_all("api", [name for name in PROTOCOLS.over_http if name != "echo"])
def test_half_an_emoji_is_echoed_as_json_has_it(server: Served, api: str, stream: bool) -> None:
    """`'party 🎉'.slice(0, 7)`: the answer is UTF-8, and its JSON has the same half."""
    protocol = PROTOCOLS[api]
    path = protocol.client.path_of("m", stream=stream)
    body = dict(first_body(protocol, "m\ud83c", "party \ud83c"))
    if not stream and body.get("stream"):
        del body["stream"]
    keys = [f"{name}: {value}".encode() for name, value in protocol.client.headers.items()]
    keys += [b"authorization: Bearer k", b"x-api-key: k", b"x-goog-api-key: k"]
    status, _, answer = server.send(post(path, body, *keys))
    assert status == 200, answer
    assert b"\\ud83c" in answer
    if not stream or protocol.usual.name != "eventstream":
        answer.decode()  # strictly UTF-8
    assert server.log[-1].outcome == "played"
    assert server.control("journal")
    assert server.control("verify")["failed"] == []


ENCODED = gzip.compress(json.dumps(CHAT).encode())


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"zstd"])
def test_a_body_that_is_not_coded_as_it_says(server: Served, coding: bytes) -> None:
    """The error has the form of the API, and says which header is wrong."""
    status, kind, body = server.send(chat(b"content-encoding: " + coding))
    if status == 200 and coding == b"zstd":
        pytest.skip("this aiohttp does not know the coding, and passes the body on as it is")
    assert (status, kind.partition(";")[0]) == (400, "application/json")
    assert coding.decode() in json.loads(body)["error"]["message"].lower()
    assert (server.log[-1].outcome, server.log[-1].status) == ("invalid", 400)
    assert server.send(chat(b"content-encoding: gzip", body=ENCODED))[0] == 200


MALFORMED = {
    "content type twice": chat(b"content-type: text/plain"),
    "a header of 70 KB": chat(b"x-long: " + b"a" * 70_000),
    "a target of 70 KB": get("/v1/models/" + "a" * 70_000),
    "no host": b"POST /v1/chat/completions HTTP/1.1\r\nconnection: close\r\n\r\n",
    "a negative length": b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
    b"content-length: -1\r\n\r\n",
    "two lengths": b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n"
    b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk without a size": b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"
    b"transfer-encoding: chunked\r\n\r\nzz\r\n",
    "Latin-1 in the path": "GET /v1/modèls HTTP/1.1\r\nhost: x\r\n\r\n".encode("latin-1"),
    "HTTPS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
}


TAKEN = ("content type twice", "no host")
"""Requests that the oldest aiohttp takes for good ones."""


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_http(server: Served, name: str) -> None:
    """JSON with the reason, one line in the log, an entry in the journal; no bytes are quoted."""
    before = len(server.log)
    status, kind, body = server.send(MALFORMED[name])
    if name in TAKEN and b"This is no HTTP request" not in body:
        pytest.skip("this aiohttp takes it")
    assert (status, kind.partition(";")[0]) == (400, "application/json")
    message = json.loads(body)["error"]["message"]
    assert "aaaa" not in message
    (entry,) = server.log[before:]
    assert (entry.outcome, entry.status) == ("invalid", 400)
    assert message in journal(server)[-1]["problems"][0]


def test_a_malformed_request_is_answered_in_the_form_of_its_api(server: Served) -> None:
    """The path is known where the request line could be read."""
    request = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n"
    status, _, body = server.send(request)
    assert status == 400
    assert json.loads(body)["type"] == "error"  # as Anthropic writes it


@for_all("rest", [b"", b"\x00\x00\x00\x04\x00\x00\x00\x00\x00", b"\x00" * 5000])
def test_http_2_with_prior_knowledge_is_answered_with_the_way_out(
    rest: bytes, tmp_path: Path
) -> None:
    """The AWS SDK for JavaScript begins so: one line in the log names what makes it speak HTTP/1.1,
    and the connection is closed."""
    with (tmp_path / "log").open("wb") as file:
        log = ServerLog(output=LineOutput(file.fileno()))
        with ServerThread(loads(TEXT), ServerOptions(log=log.requests)) as thread:
            status, _, body = Served(thread).send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + rest)
    assert status == 400
    (line,) = (tmp_path / "log").read_text().splitlines()
    for text in (line, body.decode()):
        assert "`requestHandler: new NodeHttpHandler()` from `@smithy/node-http-handler`" in text


def test_two_user_agents(server: Served) -> None:
    """As google-genai sends them: they are one, with a comma."""
    assert server.send(chat(b"User-Agent: sdk/1\r\nuser-agent:httpx/2"))[0] == 200
    assert journal(server)[-1]["headers"]["user-agent"] == "sdk/1, httpx/2"


def test_a_header_of_9_kb(server: Served) -> None:
    """Cookies of browsers are as long as that."""
    assert server.send(chat(b"cookie: " + b"a" * 9000))[0] == 200


def test_brackets_in_host_and_origin(server: Served) -> None:
    """Neither is a URL, and both are refused."""
    for headers in (b"host: [", b"host: 127.0.0.1\r\norigin: http://["):
        request = b"GET /_mockllm/journal HTTP/1.1\r\nconnection: close\r\n%b\r\n\r\n" % headers
        assert server.send(request)[0] == 403


OWN = b"x-mockllm-session: mistake"


def test_a_mistake_of_mockllm_is_seen(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gets a 500 in the form of the API; log, journal and verdict have it, and the
    next request is answered."""
    player = server.thread.ask(lambda: server.thread.server.player)

    def broken(_: object) -> None:
        raise KeyError("a mistake")

    with monkeypatch.context() as patch:
        patch.setattr(player, "play", broken)
        for stream in (False, True):
            status, kind, body = server.send(chat(OWN, body={**CHAT, "stream": stream}))
            assert (status, kind) == (500, "application/json")
            message = json.loads(body)["error"]["message"]
            assert "KeyError at mockllm/serve/server/answers.py" in message
            assert "a mistake in mockllm" in message
    entry = server.control("journal?session=mistake")["exchanges"][-1]
    assert (entry["outcome"], entry["status"]) == ("failed", 500)
    assert server.log[-1].outcome == "failed"
    found = server.control("verify?session=mistake")
    assert (found["verdict"], entry["number"] in found["failed"]) == ("bad", True)
    assert server.send(chat())[0] == 200
