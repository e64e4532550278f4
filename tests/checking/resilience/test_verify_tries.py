"""Rules about tries that `verify` judges where they are required."""

from __future__ import annotations

import pytest

from mockllm.checking.conversations.judge import Verification, verify
from mockllm.checking.conversations.retries import RETRY_RULES
from mockllm.checking.conversations.session_history import JudgedSession, SessionHistory
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.serve.server.thread import ServerThread
from tests.entries import journal_entry
from tests.play.faults.playing import connect, receive, request_bytes, served

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
    return {violation.invariant for violation in found.violations}


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


def test_requests_at_the_same_time_are_no_tries() -> None:
    """They are of two conversations, of which each may fail."""
    stalls = TRIES.replace("ATTEMPTS", "{fault: {stall: {before: headers}}}")
    with served(stalls) as thread, connect(thread) as first:
        first.sendall(SAME)
        while thread.ask(_begun, thread) == 0:
            pass
        assert rules(sent(thread, OTHER)) == set()


def _begun(thread: ServerThread) -> int:
    return len(thread.server.sessions.get("default").journal)


@pytest.mark.parametrize(
    ("waits", "broken"),
    [
        ((0.5, 1.0, 2.0), False),
        ((0.5, 0.9, 0.3), False),  # random waits up to a bound that grows
        ((0.5, 0.3), False),
        ((0.5, 0.5, 0.5), True),
        ((2.0, 1.0, 0.5), True),
    ],
)
def test_waits_that_do_not_grow(waits: tuple[float, ...], broken: bool) -> None:
    """At least three, of which none is longer than the first."""
    journal, at = [], 10.0
    for number, wait in enumerate((0.0, *waits), 1):
        at += wait
        one = journal_entry(
            "POST", "/v1", {}, b"{}", "chat", number=number, outcome="error", status=503, clock=at
        )
        journal.append(one)
    record = JudgedSession(tuple(journal), SessionHistory((), {}), 50)
    assert bool(list(RETRY_RULES["backoff-grows"](record))) == broken


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


def beyond_quota(clock: float, body: bytes) -> Exchange:
    """A request that is told to wait for two seconds."""
    values = {"outcome": "error", "status": 429, "retry_after": 2.0, "clock": clock}
    return journal_entry("POST", "/v1", {}, body, "chat", **values)


def let_through(clock: float, body: bytes) -> Exchange:
    values = {"outcome": "played", "status": 200, "clock": clock}
    return journal_entry(
        "POST", "/v1", {}, body, "chat", scenario="s", position=len(body), **values
    )


ONE, TWO = b"{}", b'{"n":2}'


@pytest.mark.parametrize(
    ("journal", "broken"),
    [
        # Again and again, each time until it gets through.
        (
            [
                f(at, ONE)
                for n in range(12)
                for at, f in ((9 * n + 1, beyond_quota), (9 * n + 4, let_through))
            ],
            set(),
        ),
        # Two conversations, in turn.
        (
            [beyond_quota(1, ONE), beyond_quota(2, TWO), let_through(4, ONE), let_through(5, TWO)],
            set(),
        ),
        (
            [beyond_quota(1, ONE), beyond_quota(2, ONE), let_through(6, ONE)],
            {"retry-after-honoured"},
        ),
        ([beyond_quota(1, ONE), beyond_quota(2, ONE)], {"retry-after-honoured"}),
    ],
)
def test_requests_beyond_a_quota(journal: list[Exchange], broken: set[str]) -> None:
    """They have no turn: each is a try of the next request with its body that is let through."""
    record = JudgedSession(tuple(journal), SessionHistory((), {}), 50)
    assert {name for name, judge in RETRY_RULES.items() if list(judge(record))} == broken
