"""Sessions keep attempts and exchanges, within bounds."""

from mockllm.play.replay.sessions.session import Session, Sessions
from mockllm.scenario.model import Scenario, TurnSpec
from mockllm.scenario.part_model import TextPart
from tests.entries import journal_entry

TURN = TurnSpec(reply=(TextPart("x"),))
SCENARIO = Scenario("s", (TURN, TURN, TURN))


def exchange(body=b"{}", **fields):
    return journal_entry("POST", "/v1/chat/completions", {}, body, **fields)


def test_attempts_count_up_and_begin_again_after_a_period():
    """Two failures, then the answer, then the failures again."""
    session = Session("s")
    assert [session.attempt(SCENARIO, 0, 3) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]
    assert [session.attempt(SCENARIO, 1) for _ in range(5)] == [0, 1, 2, 3, 4]


def test_attempts_are_counted_for_each_turn():
    """An attempt at one turn does not count for another."""
    session = Session("s")
    assert session.attempt(SCENARIO, 0) == 0
    assert session.attempt(SCENARIO, 1) == 0
    assert session.attempt(SCENARIO, 0) == 1


def test_the_journal_is_bounded_in_number():
    """The oldest exchanges are dropped first; the numbers go on."""
    session = Session("s", max_exchanges=3)
    for _ in range(10):
        session.record(exchange())
    assert [entry.number for entry in session.journal] == [8, 9, 10]
    assert session.size == sum(entry.charged for entry in session.journal)


def test_the_journal_is_bounded_in_bytes():
    """Large bodies evict older exchanges; the latest is always kept."""
    session = Session("s", max_bytes=10_000)
    for _ in range(5):
        session.record(exchange(b"x" * 4_000))
    assert len(session.journal) == 1
    session.record(exchange(b"x" * 40_000))
    assert len(session.journal) == 1
    assert session.journal[0].number == 6


def test_an_answer_is_known_while_its_exchange_is_in_the_journal():
    """An answer cannot be looked up after its exchange was dropped."""
    session = Session("s", max_exchanges=2)
    first = exchange(answer_id="resp_1")
    session.record(first)
    assert session.answer("resp_1") is first
    session.record(exchange())
    session.record(exchange())
    assert session.answer("resp_1") is None
    second = exchange(answer_id="resp_2")
    session.record(second)
    assert session.drop_answer("resp_2")
    assert not session.drop_answer("resp_2")


def test_unplayed_turns_of_scenarios_that_were_begun():
    """Scenarios that were never begun are not listed."""
    session = Session("s")
    other = Scenario("other", (TURN,))
    session.note_played(SCENARIO.name, 0)
    session.note_played(SCENARIO.name, 2)
    scenarios = {"s": SCENARIO, "other": other}
    assert list(session.unplayed_turns(scenarios)) == [("s", 1)]


def test_sessions_are_bounded_in_number():
    """The least recently used session is dropped first."""
    sessions = Sessions(max_sessions=2)
    sessions.get("a")
    sessions.get("b")
    sessions.get("a")
    sessions.get("c")
    assert [session.name for session in sessions] == ["a", "c"]


def test_sessions_are_bounded_in_bytes():
    """The journals of all sessions together stay within the bound."""
    sessions = Sessions(max_bytes=100_000)
    for name in "abcdefghij":
        sessions.record(sessions.get(name), exchange(b"x" * 30_000))
    assert [session.name for session in sessions] == ["h", "i", "j"]
    assert sessions.delete("h")
    assert not sessions.delete("h")
    sessions.record(sessions.get("k"), exchange(b"x" * 30_000))
    assert len(sessions) == 3


def test_the_body_of_an_exchange_in_json():
    """It is text where it is UTF-8, and base64 elsewhere."""
    assert exchange("é".encode()).as_json()["body"] == "é"
    as_json = exchange(b"\xff").as_json()
    assert as_json["body_base64"] == "/w=="
    assert "body" not in as_json


def test_failures_outlive_the_requests_that_follow_them():
    """What nothing answered can be read when the journal has dropped it; the bounds hold."""
    session = Session("s", max_exchanges=3, max_failures=2, max_failure_bytes=6_000)
    for outcome in ("played", "unmatched", "invalid", "error", "unmatched", *["played"] * 5):
        session.record(exchange(b'{"said": "hi"}', outcome=outcome))
    assert [entry.number for entry in session.entries] == [3, 5, 8, 9, 10]
    assert session.entries[0].body == b'{"said": "hi"}'
    assert not session.entries[0].dropped
    assert session.dropped == 5
    assert session.outcomes() == {"played": 6, "unmatched": 2, "invalid": 1, "error": 1}
    assert [entry.number for entry in session.exchanges()] == [*range(1, 11)]
    for _ in range(4):
        session.record(exchange(b"x" * 4_000, outcome="unmatched"))
    for _ in range(3):
        session.record(exchange(outcome="played"))
    assert [entry.number for entry in session.failures] == [14]
    assert session.failure_size == sum(entry.charged for entry in session.failures)


def test_failures_are_given_up_where_memory_is_short():
    """Shedding a session frees its journal, its failures and what it dropped."""
    session = Session("s", max_exchanges=2)
    for _ in range(5):
        session.record(exchange(outcome="unmatched"))
    while session.shed():
        pass
    assert (len(session.journal), len(session.failures), session.failure_size) == (1, 0, 0)
