"""Entries that a journal dropped: they are kept for the verdict, within bounds."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from mockllm.play.replay.sessions.dropped_entries import Dropped
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.session import Session, Sessions
from mockllm.play.replay.sessions.shortened_bodies import MAX_BODY
from tests.entries import journal_entry


def exchange(body: bytes = b"{}", **fields) -> Exchange:
    return journal_entry("POST", "/", {"accept": "*/*"}, body, **fields)


def test_a_dropped_entry_keeps_its_body():
    """Small and large bodies come back as they were; the entry itself gives up what is large."""
    bodies = [b"", b"{}", b"x" * 5000, os.urandom(5000)]
    dropped, entries = Dropped(10**6), [exchange(body) for body in bodies]
    for entry in entries:
        dropped.add(entry)
    assert [one.body for one in dropped.exchanges()] == bodies
    assert all((entry.body, entry.headers) == (b"", {}) for entry in entries)


@given(st.lists(st.binary(max_size=200) | st.binary(min_size=2048, max_size=2100), max_size=8))
def test_any_bodies_come_back(bodies: list[bytes]) -> None:
    """Equal ones, too, and whatever they are."""
    dropped = Dropped(10**7)
    for body in bodies:
        dropped.add(exchange(body))
    assert [one.body for one in dropped.exchanges()] == bodies


def test_an_entry_that_is_still_answered_keeps_its_body_until_the_end():
    """A recorder needs the body until the answer is over; what changes meanwhile is seen."""
    dropped, one = Dropped(10**6), exchange(b"x" * 5000, in_use=True)
    dropped.add(one)
    assert (len(one.body), one.headers) == (5000, {"accept": "*/*"})
    one.sent.leave()
    one.settle()
    assert (one.body, one.headers) == (b"", {})
    (kept,) = dropped.exchanges()
    assert (kept.sent.client_gone, len(kept.body)) == (True, 5000)


def test_equal_bodies_count_once():
    """A client that repeats a request fills the memory more slowly."""
    equal, different = Dropped(10**6), Dropped(10**6)
    for number in range(10):
        equal.add(exchange(b"x" * 1000))
        different.add(exchange(b"%d" % number * 1000))
    assert different.size - equal.size == 9 * 1000


def test_the_oldest_is_forgotten_beyond_the_bound():
    """What is forgotten is counted, with its outcome; the last entry stays."""
    dropped = Dropped(2 * (768 + 10))
    for number in range(5):
        dropped.add(exchange(b"%d" % number * 10, outcome="played" if number else "unmatched"))
    assert [one.body[:1] for one in dropped.exchanges()] == [b"3", b"4"]
    assert (dropped.forgotten, len(dropped), dropped.size) == (3, 2, 2 * 778)
    assert dropped.outcomes() == {"played": 4, "unmatched": 1}
    dropped.add(exchange(os.urandom(9000)))
    assert (dropped.forgotten, len(dropped)) == (5, 1)


def test_a_session_covers_what_its_journal_dropped():
    """`exchanges` has all entries in their order, and `outcomes` counts all of them."""
    session = Session("s", max_exchanges=2)
    for number in range(4):
        session.record(exchange(b"%d" % number, outcome="played"))
    assert [entry.number for entry in session.journal] == [3, 4]
    assert [(one.number, one.body) for one in session.exchanges()] == [
        (1, b"0"),
        (2, b"1"),
        (3, b"2"),
        (4, b"3"),
    ]
    assert (session.dropped, session.forgotten, session.outcomes()) == (2, 0, {"played": 4})


def test_a_settled_body_is_bounded():
    """The journal has the full size; the size that counts is that of what is kept."""
    one = exchange(b'"' + b"x" * (3 * MAX_BODY) + b'"')
    assert one.enter("s", 1) == 1024 + MAX_BODY
    one.settle()
    assert len(one.body) < MAX_BODY
    assert one.as_json()["body_size"] == 3 * MAX_BODY + 2
    small = exchange()
    small.settle()
    assert small.body == b"{}"
    assert "body_size" not in small.as_json()


def test_large_bodies_evict_no_other_session():
    """The largest session gives up its own entries; the others keep theirs."""
    sessions = Sessions(max_bytes=200 * 2048)
    for number in range(100):
        sessions.record(sessions.get(f"s{number}"), exchange(outcome="played"))
    for _ in range(20):
        sessions.record(sessions.get("large"), exchange(os.urandom(64 * 1024)))
    assert (len(sessions), sessions.evicted) == (101, ())
    assert all(session.dropped == 0 for session in sessions if session.name != "large")
    assert sessions.get("large").dropped == 19
    assert sessions.get("large").forgotten > 0


def test_an_evicted_session_that_comes_back_reports_so():
    """It is marked until it is deleted; meanwhile its name leads to an empty session."""
    sessions = Sessions(max_sessions=1)
    sessions.record(sessions.get("a"), exchange())
    sessions.get("b")
    assert sessions.evicted == ("a",)
    found = sessions.find("a")
    assert found is not None
    assert (found.evicted, found.count) == (True, 0)
    back = sessions.get("a")
    assert (back.evicted, sessions.evicted) == (True, ("b",))
    assert sessions.delete("a")
    assert sessions.delete("b")
    assert not sessions.delete("b")
    assert not sessions.get("a").evicted
