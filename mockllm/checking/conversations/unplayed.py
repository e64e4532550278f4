"""The turns and the answers of jobs that a client should have requested, and did not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mockllm.checking.conversations.session_history import JudgedSession, Violations, violation
from mockllm.checking.conversations.verification import SessionMistake
from mockllm.core.text import quantity
from mockllm.play.replay.sessions.exchange import Exchange
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import Scenario, TurnSpec


def answers_fetched(record: JudgedSession) -> Violations:
    """The jobs whose answers nobody asked for: responses in the background, batches, jobs of
    routes. A client that did not get the answer to its creation knows of none."""
    settled = {id for entry in record.journal for id in entry.played.settles}
    for exchange in record.journal:
        id = exchange.played.answer_id
        if not exchange.played.begins or id is None or id in settled:
            continue
        sent = exchange.sent
        # A scenario may have a route of its own for the polls.
        is_routed = any(id in entry.path for entry in record.journal if entry.played.api is None)
        if sent.complete and not sent.client_gone and exchange.status < 400 and not is_routed:
            yield violation("never-fetched", exchange, what=id)


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
            yield SessionMistake(
                "unplayed", f"{_turn(scenarios[name], index)} was not played", subject=(name, index)
            )
    for name in session.played:
        if name in scenarios and not scenarios[name].jumps:
            yield from _turns_played_too_seldom(session, scenarios[name])


def _turns_played_too_seldom(session: Session, scenario: Scenario) -> Iterator[SessionMistake]:
    """The turns that answer a number of requests (`times: 3`), and got fewer."""
    entries = [
        entry
        for entry in session.exchanges()
        if entry.scenario == scenario.name and entry.outcome in ("played", "error")
    ]
    if len(scenario.steps) == len(scenario.turns) or not entries:
        return
    begun = entries[0].played.position or 0  # what the first history had was played elsewhere
    for index, turn in enumerate(scenario.turns):
        played = [entry for entry in entries if entry.turn == index and _is_last_try(entry, turn)]
        steps = [step for step, of in enumerate(scenario.steps) if of == index and step >= begun]
        if turn.times > 1 and 0 < len(played) < len(steps):
            times = f"{len(played)} of {len(steps)} times (`times`)"
            text = f"{_turn(scenario, index)} was played {times}"
            yield SessionMistake("unplayed", text, subject=(scenario.name, index))


def _is_last_try(exchange: Exchange, turn: TurnSpec) -> bool:
    """Whether a request got the turn itself, and none of the errors before it."""
    return exchange.played.attempt > len(turn.attempts)


def _turn(scenario: Scenario, index: int) -> str:
    return f"turn {index + 1} of {len(scenario.turns)} of {scenario.name}"


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
