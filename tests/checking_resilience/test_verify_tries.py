"""Rules about tries that `verify` judges where they are required."""

from __future__ import annotations

import pytest

from mockllm.checking.conversations.judge import Verification, verify
from mockllm.checking.conversations.retries import RETRY_RULES
from mockllm.server.thread import ServerThread
from tests.faults.playing import connect, receive, request_bytes, served

TRIES = """
scenario: tries
match: any
turns:
  - attempts: [ATTEMPTS]
    reply: {text: It works.}
"""


def sent(thread: ServerThread, *requests: bytes) -> Verification:
    """Sends requests one after the other, and judges the tries."""
    for request in requests:
        with connect(thread) as sock:
            sock.sendall(request)
            receive(sock)
    server = thread.server

    def verdict() -> Verification:
        session = server.sessions.get("default")
        scenarios = server.player.served.by_name
        return verify(session, scenarios, require=frozenset(RETRY_RULES))

    return thread.ask(verdict)


def rules(found: Verification) -> set[str]:
    return {one.invariant for one in found.violations}


SAME = request_bytes("chat")
OTHER = SAME.replace(b"Hello", b"Hallo")


@pytest.mark.parametrize(
    ("attempts", "requests", "broken"),
    [
        ("{http: 503}", [SAME, SAME], set()),
        ("{http: 503}", [SAME, OTHER], {"retry-same"}),
        ("{http: 401}", [SAME, SAME], {"no-retry-where-useless"}),
        ("{http: 401}", [SAME, OTHER], {"retry-same"}),
        ("{http: 429, retry_after: 60s}", [SAME, SAME], {"retry-after-honoured"}),
        ("{fault: {cut: {after: 1 event}}}", [SAME, SAME], set()),
        (", ".join(["{http: 503}"] * 11), [SAME] * 12, {"retry-bounded"}),
    ],
)
def test_tries_are_judged(attempts: str, requests: list[bytes], broken: set[str]) -> None:
    """Each rule by itself, and a retry that is right."""
    with served(TRIES.replace("ATTEMPTS", attempts)) as thread:
        found = rules(sent(thread, *requests))
    assert found - {"backoff-grows"} == broken


def test_a_request_after_a_whole_answer_is_no_try() -> None:
    """It may differ."""
    with served(TRIES.replace("attempts: [ATTEMPTS]\n    ", "")) as thread:
        assert rules(sent(thread, SAME, OTHER)) == set()


def test_they_are_judged_on_request_only() -> None:
    """Without `require` a try is no mistake."""
    with served(TRIES.replace("ATTEMPTS", "{http: 401}")) as thread:
        assert rules(sent(thread, SAME, SAME)) == {"no-retry-where-useless"}
        server = thread.server
        session = thread.ask(server.sessions.get, "default")
        assert verify(session, server.player.served.by_name).good
