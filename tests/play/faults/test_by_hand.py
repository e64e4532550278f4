"""What was wrong when each fault was tried by hand, with `mockllm serve`, curl and SDKs."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from mockllm import loads
from mockllm.core.errors import ScenarioError
from mockllm.serve.server.thread import ServerThread
from tests.play.faults.playing import (
    TURNS,
    Received,
    ask,
    connect,
    journal,
    receive,
    request_bytes,
    served,
)
from tests.timeouts import GIVE_UP

NEEDS_UVLOOP = pytest.mark.skipif(not find_spec("uvloop"), reason="uvloop is not installed")


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with served() as thread:
        yield thread


@contextmanager
def with_uvloop(folder: Path, *options: str) -> Iterator[int]:
    """A `mockllm serve` of its own; its port."""
    config = folder / "mockllm.toml"
    config.write_text('[serve]\nloop = "uvloop"\n')
    scenario = folder / "forecast.yaml"
    scenario.write_text(TURNS.replace("- ATTEMPTS\n    ", "- "))
    words = ["--config", str(config), "serve", str(scenario), "--port", "0", *options]
    command = [sys.executable, "-m", "mockllm", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        found = re.search(r":(\d+)$", process.stdout.readline().strip())
        assert found is not None
        try:
            yield int(found[1])
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=GIVE_UP)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=GIVE_UP)


def answered(sock: socket.socket, fault: str = "") -> Received:
    """What comes of one more request on a connection."""
    headers = {"x_mockllm_fault": fault} if fault else {}
    sock.sendall(request_bytes("chat", **headers))  # type: ignore[arg-type]  # of headers
    return receive(sock)


def is_refused(port: int) -> bool:
    """Whether a further connection ends without an answer; its end may be seen at any step."""
    try:
        with connected(port) as sock:
            return answered(sock).status == 0
    except ConnectionError:
        return True


@pytest.mark.slow
@NEEDS_UVLOOP
def test_an_idle_connection_is_closed_with_uvloop(tmp_path: Path) -> None:
    """With uvloop, whose transports are no `asyncio.Transport`, nothing happened."""
    with with_uvloop(tmp_path) as port, connected(port) as sock:
        first = answered(sock, "keepalive-closed")
        assert (first.status, first.ended) == (200, "complete")
        assert answered(sock).status == 0
        with connected(port) as other:
            assert answered(other).status == 200


@pytest.mark.slow
@NEEDS_UVLOOP
def test_connections_are_limited_with_uvloop(tmp_path: Path) -> None:
    """With uvloop, an assertion failed in each connection, also in those within the limit."""
    options = ("--fault", "limit:number=1")
    with with_uvloop(tmp_path, *options) as port, connected(port) as first:
        assert answered(first).status == 200
        assert is_refused(port)
        assert answered(first).status == 200


@pytest.mark.slow
@NEEDS_UVLOOP
def test_connections_wait_with_uvloop(tmp_path: Path) -> None:
    """The request of the second one is answered as soon as the first one ends."""
    options = ("--fault", "slow-accept:number=1")
    with (
        with_uvloop(tmp_path, *options) as port,
        connected(port) as first,
        connected(port) as second,
    ):
        assert answered(first).status == 200
        second.sendall(request_bytes("chat"))
        first.close()
        assert receive(second).status == 200


def test_a_cut_before_done(server: ServerThread) -> None:
    """Over Chat Completions this is the line `[DONE]`: the finish reason has arrived."""
    cut = ask(server, "chat", "cut:before=done")
    assert b'"finish_reason":"tool_calls"' in cut.body
    assert b"[DONE]" not in cut.body


def data(answer: Received) -> list[Any]:
    """The JSON of the events of a stream."""
    found = re.findall(rb"^data: (\{.*\})\s*$", answer.body, re.MULTILINE)
    return [json.loads(one) for one in found]


ANTHROPIC = {
    "overloaded": (529, "overloaded_error"),
    "rate_limit": (429, "rate_limit_error"),
    "server_error": (500, "api_error"),
}
GEMINI = {
    "overloaded": (503, "UNAVAILABLE"),
    "rate_limit": (429, "RESOURCE_EXHAUSTED"),
    "server_error": (500, "INTERNAL"),
}


@pytest.mark.parametrize("kind", ANTHROPIC)
def test_errors_of_anthropic(server: ServerThread, kind: str) -> None:
    """An overload in a stream is an `overloaded_error`, and a status of 529 otherwise."""
    status, type = ANTHROPIC[kind]
    streamed = ask(server, "anthropic", f"error:after=4 events,kind={kind}")
    assert data(streamed)[-1]["error"]["type"] == type
    plain = ask(server, "anthropic", f"error:kind={kind}", stream=False)
    assert (plain.status, json.loads(plain.body)["error"]["type"]) == (status, type)


@pytest.mark.parametrize("kind", GEMINI)
def test_errors_of_gemini(server: ServerThread, kind: str) -> None:
    """The error object in a stream has the code and status that the HTTP answer would have."""
    status, name = GEMINI[kind]
    streamed = ask(server, "gemini", f"error:after=2 events,kind={kind}")
    error = data(streamed)[-1]["error"]
    assert (error["code"], error["status"]) == (status, name)
    plain = ask(server, "gemini", f"error:kind={kind}", stream=False)
    assert (plain.status, json.loads(plain.body)["error"]["status"]) == (status, name)


def test_an_error_of_responses(server: ServerThread) -> None:
    """The response has failed, with the error, and the numbers of the events go on."""
    found = data(ask(server, "responses", "error:after=4 events"))
    assert [one["sequence_number"] for one in found] == list(range(len(found)))
    failed = found[-1]
    assert failed["type"] == "response.failed"
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"]["message"]


def test_a_rate_limit_of_chat(server: ServerThread) -> None:
    """In a stream it has the type and code that it has with status 429."""
    streamed = data(ask(server, "chat", "error:after=2 events,kind=rate_limit"))[-1]["error"]
    plain = json.loads(ask(server, "chat", "error:kind=rate_limit", stream=False).body)["error"]
    assert (streamed["type"], streamed["code"]) == (plain["type"], plain["code"])
    assert plain["type"] != "server_error"


ARRAY = "/v1beta/models/mock-model:streamGenerateContent"


@pytest.mark.parametrize("fault", ["cut:after=1 event", "error:after=1 event", "duplicate:event=1"])
def test_the_json_array_of_gemini(server: ServerThread, fault: str) -> None:
    """Without `alt=sse` the answer is an array whose elements arrive one by one: its events."""
    answer = ask(server, "gemini", fault, path=ARRAY)
    assert answer.body != ask(server, "gemini", path=ARRAY).body
    assert not journal(server)[-2].problems
    if fault.startswith("error"):
        assert json.loads(answer.body)[-1]["error"]["status"] == "UNAVAILABLE"


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_a_connection_that_is_not_reused(server: ServerThread, version: str) -> None:
    """Where the answer ends its connection, `keepalive-closed` cannot strike, and the journal has
    that."""
    request = request_bytes("chat", x_mockllm_fault="keepalive-closed", connection="close")
    with connect(server) as sock:
        sock.sendall(request.replace(b"HTTP/1.1", version.encode(), 1))
        while sock.recv(65536):
            pass
    entry = journal(server)[-1]
    assert entry.sent.struck is None
    assert entry.problems


ROUTE = """
scenario: embeddings
route: POST /v1/embeddings
turns:
  - answer: {json: {data: [1, 2, 3]}}
"""


def test_a_turn_of_a_route_has_no_fault() -> None:
    """It is an error at load: the fault was ignored."""
    with pytest.raises(
        ScenarioError, match=r"turns\[0\].fault: has no meaning in a turn of a route"
    ):
        loads(ROUTE + "    fault: {cut: {after: 5 bytes}}")


def test_a_request_to_a_route_gets_no_fault() -> None:
    """The journal has that: the header was ignored."""
    lines = ["POST /v1/embeddings HTTP/1.1", "host: x", "x-mockllm-fault: refuse"]
    with served(ROUTE) as thread, connect(thread) as sock:
        sock.sendall("\r\n".join([*lines, "content-length: 2", "", "{}"]).encode())
        assert receive(sock).status == 200
        assert "did not strike" in journal(thread)[-1].problems[0]
