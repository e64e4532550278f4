"""Conversations that go round: one turn with calls that answers a conversation again and again.

An agent that shortens its history loses the calls from which its turn is read. So it gets the same
call again, and runs it, for ever. Only conversations that the client names are counted: the same
prompt from many users, or in a loop of tests, is many conversations.
"""

from __future__ import annotations

from mockllm.core.errors import RequestError
from mockllm.play.matching.conversation import Selection
from mockllm.play.replay.sessions.session import Session
from mockllm.scenario.model import TurnSpec
from mockllm.scenario.part_model import MAY_CALL

MOST_ROUNDS = 10
"""The most times that a turn may answer a conversation again, with other turns in between."""


def count_round(session: Session, conversation: str, selection: Selection, spec: TurnSpec) -> None:
    """Counts that a turn answers a conversation.

    A turn that comes again at once is not counted: the client tries again.

    Args:
        conversation: as `Played` has it.

    Raises:
        RequestError: it did so too often.
    """
    scenario, turn = selection.scenario, selection.turn
    key = f"{conversation} {scenario.name} {turn}"
    before = session.add_to(f"answers {conversation}")
    last = session.add_to(f"last {key}", 0)
    session.add_to(f"last {key}", before + 1 - last)
    if last in (0, before) or _may_come_again(selection, spec):
        return
    rounds = session.add_to(f"rounds {key}") + 1
    if rounds > MOST_ROUNDS:
        raise RequestError(
            f"Turn {turn + 1} of scenario {scenario.name!r} has answered this conversation "
            f"{rounds} times, each time after other turns, and its history begins anew: the "
            "conversation goes round, and each time the client runs the calls of the turn. Perhaps "
            "the client shortens its history (compaction); or add `repeat: true` to the turn.",
            mistake="goes-round",
        )


def count_auxiliary(session: Session, conversation: str) -> None:
    """Counts an answer beside a conversation: a turn after it does not come again at once."""
    session.add_to(f"answers {conversation}")


def _may_come_again(selection: Selection, spec: TurnSpec) -> bool:
    """Whether a scenario says that its turn answers several requests, or nothing is run for it."""
    scenario = selection.scenario
    if scenario.restart or scenario.in_order or scenario.jumps:
        return True
    turn = scenario.turns[selection.index]
    calls = any(isinstance(part, MAY_CALL) for part in spec.reply)
    return turn.repeat or turn.times > 1 or not calls
