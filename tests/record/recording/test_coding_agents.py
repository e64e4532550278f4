"""Recordings of coding agents: the words of the user count, not what the agent puts around them."""

from __future__ import annotations

import pytest

from mockllm.play.replay.loading import load
from tests.record.recording.agent_machines import (
    ADA,
    AGENTS,
    BOB,
    PROMPT,
    ask,
    body_of,
    exchange,
    play,
    record,
)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_recording_has_the_words_of_the_user(tmp_path, agent):
    """In its name and its condition; an address in a reminder makes no regular expression."""
    folder = record(tmp_path, exchange(agent, body_of(agent, ADA), "Done."))
    (scenario,) = load(folder)
    assert scenario.match.user.op == "equals"
    assert scenario.match.user.value == PROMPT
    assert scenario.match.ignore == ("cwd", "home", "tmp", "hostname", "user", "git")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_recording_answers_on_another_machine(tmp_path, agent):
    """Another folder, another home, another day, another commit; another prompt gets nothing."""
    player = play(record(tmp_path, exchange(agent, body_of(agent, ADA), "Done.")))
    assert ask(player, agent, body_of(agent, BOB)).played.outcome == "played"
    other = ask(player, agent, body_of(agent, BOB, prompt="delete all"))
    assert other.played.outcome == "unmatched"
    (problem,) = other.played.problems
    assert "user said 'delete all'" in problem
    assert f"the last user message must be {PROMPT!r}, got 'delete all'" in problem
    assert "<system-reminder>" not in problem
