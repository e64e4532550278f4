"""The turns that a client should have requested, and did not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mockllm.checking.conversations.verification import SessionMistake
from mockllm.core.text import quantity
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Scenario


def missing_turns(
    session: Session, scenarios: Mapping[str, Scenario], must_begin: Iterable[str]
) -> Iterator[SessionMistake]:
    """The scenarios and turns that should have been played.

    Args:
        must_begin: the names of the scenarios of which no turn may be missing, also where none of
            their turns was played.
    """
    tapes = _played_tapes(session, scenarios)
    for name in must_begin:
        if name not in session.played and name in scenarios:
            indices = range(len(scenarios[name].turns))
            if any(_is_due(scenarios[name], index, tapes) for index in indices):
                turns = quantity(len(scenarios[name].turns), "turn")
                yield SessionMistake("unplayed", f"no turn of {name} was played ({turns})")
    for name, index in session.unplayed_turns(scenarios):
        if _is_due(scenarios[name], index, tapes):
            text = f"turn {index + 1} of {len(scenarios[name].turns)} of {name} was not played"
            yield SessionMistake("unplayed", text, subject=(name, index))


def _played_tapes(session: Session, scenarios: Mapping[str, Scenario]) -> set[str]:
    """The paths of the tapes that were played."""
    played = (
        scenarios[name].turns[index].recorded
        for name, turns in session.played.items()
        if name in scenarios
        for index in turns
    )
    return {recorded.path or recorded.file for recorded in played if recorded is not None}


def _is_due(scenario: Scenario, index: int, tapes: set[str]) -> bool:
    """Whether a turn that was not played should have been.

    A recorded turn need not be played if another scenario with the same beginning has played its
    tape. Nor need a turn before the first recorded one: it stands for the history that the client
    already had when the recording began.
    """
    recorded = scenario.turns[index].recorded
    if recorded is not None:
        return (recorded.path or recorded.file) not in tapes
    return all(turn.recorded is None for turn in scenario.turns[index:])
