"""Which turns of a session should have been played."""

from __future__ import annotations

from dataclasses import replace

from mockllm.checking.conversations.judge import verify
from mockllm.play.replay.loading import loads
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Recorded, Scenario
from tests.checking.conversations.bad_clients import Conversation
from tests.checking.conversations.request_bodies import AssistantMessage
from tests.entries import journal_entry

YAML = """
scenario: {name}
match: {{user: hi}}
turns:
  - reply: {{text: one}}
  - reply: {{text: two}}
"""


def _scenario(name: str, *tapes: str | None) -> Scenario:
    (scenario,) = loads(YAML.format(name=name))
    turns = zip(scenario.turns, tapes, strict=True)
    recorded = (replace(turn, recorded=tape and Recorded(tape)) for turn, tape in turns)
    return replace(scenario, turns=tuple(recorded))


def _session(*played: tuple[str, int]) -> Session:
    session = Session("s")
    for name, turn in played:
        session.record(journal_entry("POST", outcome="played"))
        session.note_played(name, turn)
    return session


def test_a_tape_that_another_scenario_played_is_not_missing() -> None:
    """Recordings of conversations with the same beginning share its tapes."""
    scenarios = {"a": _scenario("a", "1", "2"), "b": _scenario("b", "2", "3")}
    assert verify(_session(("a", 0), ("b", 0)), scenarios).unplayed == (("b", 1),)


def test_a_turn_before_the_first_recorded_one_is_not_missing() -> None:
    """It stands for the history that the client had when the recording began."""
    scenarios = {"a": _scenario("a", None, "1"), "b": _scenario("b", "2", None)}
    found = verify(_session(("a", 1)), scenarios, must_begin=["a", "b"])
    assert [mistake.text for mistake in found.mistakes] == ["no turn of b was played (2 turns)"]
    assert (found.verdict, found.unplayed) == ("bad", ())


def test_a_session_without_a_request_is_not_good() -> None:
    """Unless none is expected; and where earlier requests may be missing, nobody knows."""
    scenarios = {"a": _scenario("a", None, None)}
    nothing = verify(Session("s"), scenarios, must_begin=["a"], allow_unplayed=True)
    assert (nothing.verdict, nothing.no_requests) == ("bad", True)
    assert nothing.as_json()["no_requests"]
    (mistake,) = nothing.mistakes
    assert mistake.text.startswith("no request came; does the client read its base URL ")
    assert verify(Session("s"), scenarios, must_begin=["a"], allow_no_requests=True).good
    unknown = (Session("s", evicted=True), Session("s", gaps=("a process was killed",)))
    for session in unknown:
        found = verify(session, scenarios)
        assert (found.verdict, found.no_requests) == ("unknown", False)


REPEATS = """
scenario: repeats
match: {user: hi}
turns:
  - reply: {text: Working.}
    times: 3
  - reply: {text: Done.}
"""


def _ask(conversation: Conversation, answers: int) -> None:
    working = (AssistantMessage("Working."), "And?") * answers
    conversation.request("hi", *working)


def test_a_turn_that_repeats_is_played_so_often() -> None:
    """Asked for less often, it is named with its number; further answers may follow it."""
    conversation = Conversation(REPEATS, "chat")
    for answers, times in ((0, 1), (1, 2)):
        _ask(conversation, answers)
        first, *_ = (mistake.text for mistake in conversation.verify().mistakes)
        _, second = (mistake.text for mistake in conversation.verify().mistakes)
        assert first == "turn 2 of 2 of repeats was not played"
        assert second == f"turn 1 of 2 of repeats was played {times} of 3 times (`times`)"
    assert conversation.verify(allow_unplayed=True).good
    _ask(conversation, 2)
    _ask(conversation, 3)
    assert conversation.verify().good


def test_a_history_that_has_some_of_the_repeated_turns() -> None:
    """They were played elsewhere."""
    conversation = Conversation(REPEATS, "chat")
    _ask(conversation, 2)
    _ask(conversation, 3)
    assert conversation.verify().good
