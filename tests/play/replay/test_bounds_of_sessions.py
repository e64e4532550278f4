"""Sessions, their journals and the cache of decisions at their exact bounds."""

from __future__ import annotations

from mockllm.core.request import Request
from mockllm.play.matching.conversation import Selection
from mockllm.play.replay.decision import Decision, RequestCache
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.session import Session, Sessions
from mockllm.scenario.model import Scenario, TurnSpec
from mockllm.scenario.part_model import TextPart
from tests.entries import journal_entry

TURN = TurnSpec(reply=(TextPart("x"),))
SCENARIO = Scenario("s", (TURN, TURN))


def exchange(size: int = 0) -> Exchange:
    """An exchange that counts as so many bytes beyond the usual."""
    return journal_entry("POST", "/", {}, b"x" * size)


def test_the_size_of_an_exchange() -> None:
    """1 KiB, its body and its problems."""
    one = journal_entry("POST", "/", {}, b"abc", problems=("four", "six666"))
    assert one.enter("s", 1) == 1024 + 3 + 10


def test_an_exchange_is_numbered_in_its_session() -> None:
    """From 1 on, whatever is forgotten."""
    session = Session("name", max_exchanges=1)
    for number in (1, 2, 3):
        one = exchange()
        session.record(one)
        assert (one.session, one.number, session.count) == ("name", number, number)
    assert list(session.journal) == [one]


def test_a_journal_may_have_just_its_bound() -> None:
    """In number and in bytes; one byte more, and the oldest goes."""
    session = Session("s", max_exchanges=2, max_bytes=2 * 1024 + 10)
    session.record(exchange(4))
    session.record(exchange(6))
    assert (len(session.journal), session.size) == (2, 2 * 1024 + 10)
    session.record(exchange(7))
    assert [len(entry.body) for entry in session.journal] == [7]
    assert session.size == 1024 + 7
    session.record(exchange(0))
    session.record(exchange(0))
    assert (len(session.journal), session.size) == (2, 2 * 1024)


def test_a_session_has_bounds_by_itself() -> None:
    """A thousand exchanges, sixteen megabytes."""
    session = Session("s")
    assert (session.max_exchanges, session.max_bytes) == (1000, 16 * 1024 * 1024)


def test_a_later_answer_with_the_same_id_stays() -> None:
    """The older exchange leaves the journal; the answer is that of the newer one."""
    session = Session("s", max_exchanges=2)
    first, second = journal_entry(answer_id="resp_1"), journal_entry(answer_id="resp_1")
    for one in (first, second):
        session.record(one)
    assert session.answer("resp_1") is second
    session.record(exchange())
    assert session.answer("resp_1") is second
    session.record(exchange())
    assert session.answer("resp_1") is None
    assert not session.drop_answer("resp_1")


def test_turns_of_scenarios_that_are_gone() -> None:
    """Turns of scenarios that are no longer served are not listed as unplayed."""
    session = Session("s")
    session.note_played(SCENARIO.name, 0)
    session.note_played(SCENARIO.name, 0)
    session.note_played("gone", 0)
    assert list(session.unplayed_turns({"s": SCENARIO})) == [("s", 1)]
    session.note_played(SCENARIO.name, 1)
    assert list(session.unplayed_turns({"s": SCENARIO})) == []


def names(sessions: Sessions) -> list[str]:
    return [session.name for session in sessions]


def test_sessions_are_made_once() -> None:
    """Using one makes it the last to go; looking for one does not."""
    sessions = Sessions(max_sessions=2)
    first = sessions.get("a")
    sessions.get("b")
    assert sessions.find("a") is first
    assert sessions.find("c") is None
    assert names(sessions) == ["a", "b"]
    assert sessions.get("a") is first
    assert names(sessions) == ["b", "a"]
    sessions.get("c")
    assert (names(sessions), len(sessions)) == (["a", "c"], 2)


def test_all_sessions_may_have_just_their_bound() -> None:
    """One byte more, and the largest session gives up its oldest entry; if none has more than one,
    the least recently used session goes. The last one never does."""
    sessions = Sessions(max_bytes=3 * 1024 + 10)
    sessions.record(sessions.get("a"), exchange(4))
    sessions.record(sessions.get("b"), exchange(3))
    sessions.record(sessions.get("b"), exchange(3))
    assert [len(session.journal) for session in sessions] == [1, 2]
    sessions.record(sessions.get("b"), exchange(0))
    assert names(sessions) == ["a", "b"]
    assert [len(session.journal) for session in sessions] == [1, 1]
    sessions.record(sessions.get("c"), exchange(9000))
    assert names(sessions) == ["c"]
    sessions.record(sessions.get("c"), exchange(9000))
    assert names(sessions) == ["c"]


def test_the_size_of_what_was_deleted_does_not_count() -> None:
    """Nor does what is recorded in a session that is no longer there."""
    sessions = Sessions(max_bytes=10_000)
    first = sessions.get("a")
    sessions.record(first, exchange(5_000))
    assert sessions.delete("a")
    assert sessions._size == 0
    sessions.record(first, exchange(5_000))
    assert sessions._size == 0
    sessions.record(sessions.get("a"), exchange(1))
    assert sessions._size == 1025


def decision() -> Decision:
    request = Request("chat", "m", {})
    return Decision(request, Selection(SCENARIO, 0, 0), TURN)


def test_decisions_are_kept_by_key() -> None:
    """Up to 1,024, then all are forgotten; requests of more than 64 KiB are never kept."""
    cache, first = RequestCache(), decision()
    cache.keep(("a", b"bc", None, "def"), first)
    assert cache.decisions.get(("a", b"bc", None, "def")) == first
    assert cache.decisions.get(("a", b"bc", "", "def")) is None
    for number in range(1023):
        cache.keep((str(number),), first)
    assert cache.decisions.get(("a", b"bc", None, "def")) == cache.decisions.get(("0",)) == first
    cache.keep(("last",), first)
    assert [cache.decisions.get((key,)) for key in ("0", "last")] == [None, first]
    for size, kept in ((64 * 1024, first), (64 * 1024 + 1, None)):
        for _ in range(2):
            cache.keep((b"x" * size,), first)
        assert cache.decisions.get((b"x" * size,)) == kept


def test_large_requests_are_kept_when_they_come_again() -> None:
    """Most requests of more than 2 KiB never do. 16,384 are remembered, then all are forgotten."""
    cache, first = RequestCache(), decision()
    cache.keep(("a", b"b" * 2047), first)
    assert cache.decisions.get(("a", b"b" * 2047)) == first
    cache.keep(("a", b"b" * 2048), first)
    assert cache.decisions.get(("a", b"b" * 2048)) is None
    cache.keep(("a", b"b" * 2048), first)
    assert cache.decisions.get(("a", b"b" * 2048)) == first
    bodies = [b"%2049d" % number for number in range(16_384)]
    for body in (*bodies, bodies[0]):
        cache.keep((body,), first)
    assert cache.decisions.get((bodies[0],)) is None


def test_what_is_kept_by_itself() -> None:
    """A thousand and twenty-four decisions, keys of 64 KiB."""
    assert (RequestCache._MAX_DECISIONS, RequestCache._MAX_KEY) == (1024, 64 * 1024)
    new = decision()
    assert (new.quirks, new.lasting, new.answered) == ((), True, None)
