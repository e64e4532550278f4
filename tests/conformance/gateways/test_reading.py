"""How an answer ends for a client of its API."""

from __future__ import annotations

import gzip
import json

from mockllm.conformance.gateways.reading import HttpReply, Transfer, read_reply
from mockllm.core.http import TimedBytes
from mockllm.wire.protocols import PROTOCOLS

CHAT = PROTOCOLS["chat"]
EVENTS = (("content-type", "text/event-stream"),)
JSON = (("content-type", "application/json"),)


def _event(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'id': 'c', 'model': 'm', 'choices': [choice]})}\n\n".encode()


HELLO = _event({"content": "Hello"})
END = _event({}, "stop")
ERROR = b'data: {"error": {"message": "no more"}}\n\n'
BODY = json.dumps(
    {"choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}]}
).encode()


def _reply(
    body: bytes,
    *,
    status: int = 200,
    transfer: Transfer = "whole",
    headers: tuple[tuple[str, str], ...] = EVENTS,
) -> HttpReply:
    return HttpReply(status, headers, [TimedBytes(0, body)], transfer)


def test_endings_of_streams() -> None:
    """An answer is whole with its finish reason only; the connection alone says little."""
    endings = {
        "whole": _reply(HELLO + END + b"data: [DONE]\n\n"),
        "whole without [DONE]": _reply(HELLO + END),
        "unfinished": _reply(HELLO),
        "unfinished with [DONE]": _reply(HELLO + b"data: [DONE]\n\n"),
        "error": _reply(HELLO + ERROR),
        "error on a connection that breaks": _reply(HELLO + ERROR, transfer="broken"),
        "broken": _reply(HELLO, transfer="broken"),
        "broken before an answer": HttpReply(transfer="broken"),
        "late": _reply(HELLO, transfer="late"),
        "late before an answer": HttpReply(transfer="late"),
        "refused": _reply(b'{"error": {"message": "no"}}', status=503, headers=JSON),
    }
    read = {name: read_reply(reply, CHAT, streamed=True).ending for name, reply in endings.items()}
    assert read == {name: name.split()[0] for name in endings}


def test_bodies_are_read_as_bodies() -> None:
    """A body with a finish reason is whole; one that is none of the API is unfinished."""
    whole = read_reply(_reply(BODY, headers=JSON), CHAT, streamed=False)
    assert (whole.ending, whole.turn.text) == ("whole", "Hello")
    assert read_reply(_reply(b"<html>", headers=JSON), CHAT, streamed=False).ending == "error"
    assert read_reply(_reply(b"{}", headers=JSON), CHAT, streamed=False).ending != "whole"


def test_a_compressed_answer_is_read() -> None:
    """Gateways compress where a client accepts it."""
    headers = (*EVENTS, ("content-encoding", "gzip"))
    reading = read_reply(_reply(gzip.compress(HELLO + END), headers=headers), CHAT, streamed=True)
    assert (reading.ending, reading.turn.text) == ("whole", "Hello")


def test_an_http_error_is_read_in_the_form_of_its_api() -> None:
    """With its message, and the time to wait."""
    body = b'{"error": {"message": "slowly", "type": "rate_limit"}}'
    headers = (*JSON, ("retry-after", "2"))
    reading = read_reply(_reply(body, status=429, headers=headers), CHAT, streamed=True)
    assert reading.error is not None
    assert reading.error.error is not None
    assert (reading.error.error.message, reading.error.retry_after) == ("slowly", 2_000_000)
