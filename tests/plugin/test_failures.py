"""A request on which mockllm itself fails fails the test, whatever the marker allows."""

from __future__ import annotations

FAILS = """
    import pytest
    from client import *
    from mockllm.replay.player import Player

    def broken(*_):
        raise KeyError("a mistake")

    ALL = {allowed}

    @pytest.mark.mockllm(**ALL)
    def test_it(mockllm_session, monkeypatch):
        mockllm_session.reply("Hi.")
        monkeypatch.setattr(Player, "play", broken)
        try:
            reply_to("hello")
        except Exception:
            pass
"""

_ALL = "unplayed=True, unmatched=True, invalid=True, extra_requests=True, violations=True"


def test_no_marker_allows_a_mistake_of_mockllm(run):
    """The report names the place in mockllm, and offers no marker for it."""
    result = run(FAILS.replace("{allowed}", f"dict({_ALL})"))
    outcomes = result.parseoutcomes()
    assert outcomes.get("errors", 0) + outcomes.get("failed", 0) == 1
    result.stdout.fnmatch_lines(
        ["*could not be answered: mockllm failed on this request: KeyError*"]
    )
    result.stdout.no_fnmatch_line("*failed=True*")
