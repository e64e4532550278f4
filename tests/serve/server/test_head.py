"""An answer to HEAD has no body, whatever answers (RFC 9110, section 9.3.2)."""

from __future__ import annotations

import socket

import pytest

from mockllm import ServerOptions, ServerThread, loads
from mockllm.serve.ui import live_page
from tests.fuzz.playing import _port
from tests.fuzz.valid import SCENARIOS, control_routes, requests
from tests.timeouts import GIVE_UP

_TARGETS = (
    "/",
    "/nope",
    "/metrics",
    "/files/one",
    "/_mockllm",
    "/_mockllm/",
    "/_mockllm/nope",
    "/_mockllm/journal?session=unknown",
    "/_mockllm/journal?after=x",
    "/_mockllm/sessions/unknown",
    "/_mockllm/ui",
    "/_mockllm/ui/",
    "/_mockllm/ui/events",
    "/_mockllm/ui/nope",
    "/_mockllm/ui/scenarios",
    "/_mockllm/ui/scenario/greets",
    "/_mockllm/ui/play/greets?api=chat",
    "/_mockllm/ui/play/greets?turn=9",
    "/_mockllm/ui/request/default/1",
    "/_mockllm/ui/recording",
    "/s/x/_mockllm/health",
)
_ROUTES = sorted({*_TARGETS, *(one.target for one in (*requests(), *control_routes("default")))})
_HEADS = {
    "close": "connection: close\r\n",
    "keep-alive": "",
    "a foreign page": "origin: http://evil.test\r\nconnection: close\r\n",
    "no session": "x-mockllm-session: a/b\r\nconnection: close\r\n",
    "no HTTP": "a b c\r\n",
    "a body that is too large": "content-length: 99999999999\r\n",
    "broken chunks": "transfer-encoding: chunked\r\n",
    "a fault": "x-mockllm-fault: cut:after=1events\r\nconnection: close\r\n",
}


def _answer(port: int, head: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), GIVE_UP) as connection:
        connection.sendall(head.encode() + b"\r\nzz\r\n")
        connection.shutdown(socket.SHUT_WR)
        data = b""
        try:
            while part := connection.recv(65536):
                data += part
        except ConnectionResetError:  # it did not read all
            pass
        return data


@pytest.mark.parametrize("kind", _HEADS)
@pytest.mark.parametrize("fallback", [True, False], ids=["fallback", "scenarios only"])
def test_no_answer_to_head_has_a_body(kind: str, fallback: bool) -> None:
    """Of all routes, errors, too. Of what comes behind the first answer, nothing is one to HEAD."""
    options = ServerOptions(fallback=fallback, grace=0, speed=0, page=live_page)
    with ServerThread(loads(SCENARIOS), options) as server:
        for target in _ROUTES:
            head = f"HEAD {target} HTTP/1.1\r\nhost: 127.0.0.1\r\n{_HEADS[kind]}"
            answer = _answer(_port(server), head)
            begin, _, body = answer.partition(b"\r\n\r\n")
            assert not answer or begin.startswith(b"HTTP/1."), (target, answer)
            assert body == b"" or body.startswith(b"HTTP/1."), (target, body[:200])


@pytest.mark.parametrize("target", ["health", "journal", "sessions", "scenarios", "verify"])
def test_control_routes_answer_head_as_get(target: str) -> None:
    """With the status, and the length where it is known."""
    with ServerThread(loads(SCENARIOS), ServerOptions(grace=0)) as server:
        found = [
            _answer(
                _port(server),
                f"{method} /_mockllm/{target} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n",
            )
            for method in ("GET", "HEAD")
        ]
    first, second = (answer.partition(b"\r\n\r\n")[0] for answer in found)
    assert first.split(b"\r\n")[0] == second.split(b"\r\n")[0]
