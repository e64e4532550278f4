"""A list of jobs asks a shared store once for all of them, however many there are."""

from __future__ import annotations

import pytest

from mockllm import loads
from mockllm.core.http import NO_TARGET
from mockllm.play.replay.call import ApiCall
from mockllm.play.replay.player import Player
from mockllm.play.replay.service_jobs import answer_job
from mockllm.play.replay.sessions.shared_session import Count, SharedSession, StateNotReadError
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Operation

LISTS: tuple[tuple[str, Operation], ...] = tuple(
    (name, operation)
    for name, protocol in PROTOCOLS.items()
    for operation in ("batches", "files")
    if operation in protocol.jobs
)


def _rounds(api: str, operation: Operation, jobs: int) -> int:
    """How often a list is played before everything is known, where none of the jobs is kept."""
    session, rounds = SharedSession("s"), 0
    player = Player(loads("{scenario: a, match: any, turns: [{reply: {text: b}}]}"))
    while True:
        try:
            answer_job(ApiCall(PROTOCOLS[api], NO_TARGET, {}, b"", session, "/"), operation, player)
        except StateNotReadError as missing:
            rounds += 1
            for asked in missing.operations:
                is_count = isinstance(asked, Count)
                made = is_count and not asked.key.startswith("deletes")
                session.known[asked] = jobs if made else 0 if is_count else None
        else:
            return rounds


@pytest.mark.parametrize(("api", "operation"), LISTS)
def test_a_list_is_played_as_often_for_many_jobs(api: str, operation: Operation) -> None:
    """Each play makes the list anew, so one for each job would take the square of their number."""
    assert 0 < _rounds(api, operation, 3) == _rounds(api, operation, 300) < 10
