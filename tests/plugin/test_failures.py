"""A request on which mockllm itself fails fails the test, whatever the marker allows."""

from __future__ import annotations

import pytest

FAILS = """
    import pytest
    from client import *
    from mockllm.play.replay.player import Player

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


FOREIGN = """
    import pytest
    from client import *

    @pytest.mark.mockllm({arguments})
    def test_it(mockllm_session):
        mockllm_session.reply("Hi.", match={{"user": "something else"}})
        try:
            reply_to("hello \\x1b[2J\\x1b]0;pwn\\x07 \\u202e\\u2066 \\x9b31m end")
        except Exception:
            pass
"""


@pytest.mark.parametrize("arguments", ["", "unmatched=True, unplayed=True"])
def test_a_request_is_quoted_escaped(run, arguments):
    """In the verdict that fails a test, and in the exchanges of a test that passes."""
    result = run(FOREIGN.format(arguments=arguments), "--mockllm-show")
    result.stdout.fnmatch_lines(
        ['*"hello \\u001b?2J\\u001b?0;pwn\\u0007 \\u202e\\u2066 \\u009b31m end"*']
    )
    assert not set(result.stdout.str()) & set("\x1b\x07\x9b\u202e\u2066")
