"""A conversation that goes round is stopped, and fails; many users with one prompt do not."""

from __future__ import annotations

from itertools import count

import pytest

from mockllm.play.replay.sessions.rounds import MOST_ROUNDS
from tests.checking.conversations.request_bodies import body, call, called, result

LOOK = call("exec_command", "call_1", '{"cmd": "ls"}')
LOOP = """
scenario: looks
match: {user: look around}
turns:
  - reply: {tool: exec_command, id: call_1, arguments: {cmd: ls}}
  - reply: {text: So far so good.}
"""
CODEX = "codex_exec/0.171.0 (Debian 12.0.0; x86_64) xterm (codex_exec; 0.171.0)"


def ask(served, thread, *items, agent=CODEX):
    headers = {"user-agent": agent} | ({} if thread is None else {"thread-id": thread})
    given = body("responses", *items, tools=["exec_command"])
    return served.http.post("/v1/responses", json=given, headers=headers)


def go_round(served, threads, rounds, agent=CODEX):
    """The statuses of a client that runs the call, shortens its history, and begins again."""
    return [
        ask(served, thread, "look around", *rest, agent=agent).status_code
        for _, thread in zip(range(rounds), threads, strict=False)
        for rest in ([], [called(LOOK), result(LOOK, "README")])
    ]


def forever(thread):
    return (thread for _ in count())


def verified(served, **query):
    return served.http.get("/_mockllm/verify", params=query).json()


def test_a_conversation_that_goes_round_is_refused_and_fails(serve):
    served = serve(LOOP)
    assert go_round(served, forever("t1"), MOST_ROUNDS + 1) == [200] * 2 * (MOST_ROUNDS + 1)
    assert verified(served)["verdict"] == "good"
    answer = ask(served, "t1", "look around")
    assert answer.status_code >= 400
    assert "goes round" in answer.json()["error"]["message"]
    verdict = verified(served)
    assert verdict["verdict"] == "bad"
    assert [violation["invariant"] for violation in verdict["violations"]] == ["turn-repeated"]
    # Another conversation is not concerned.
    assert ask(served, "t2", "look around").status_code == 200


def test_the_name_of_a_conversation_is_not_in_the_journal(serve):
    served = serve(LOOP)
    ask(served, "01a2266c-4078-79e1-82e3-bdaba71da79a", "look around")
    (entry,) = served.http.get("/_mockllm/journal").json()["exchanges"]
    assert len(entry["conversation"]) == 12
    assert "4078" not in entry["conversation"]


@pytest.mark.parametrize(
    ("threads", "agent"),
    [(map(str, count()), CODEX), (forever(None), CODEX), (forever("t1"), "python-httpx/0.28")],
    ids=["many conversations", "none named", "no agent"],
)
def test_many_users_with_one_prompt(serve, threads, agent):
    served = serve(LOOP)
    assert set(go_round(served, threads, 60, agent)) == {200}
    assert verified(served, depth=5)["verdict"] == "good"


def test_tries_at_once_and_turns_that_repeat_are_not_counted(serve):
    served = serve(LOOP)
    assert {ask(served, "t1", "look around").status_code for _ in range(30)} == {200}
    repeating = LOOP.replace("reply: {tool", "repeat: true\n    reply: {tool").split(
        "  - reply: {t"
    )
    served = serve(repeating[0])
    items = [called(LOOK), result(LOOK, "README")]
    for _ in range(30):
        assert ask(served, "t1", "look around").status_code == 200
        assert ask(served, "t1", "look around", *items).status_code == 200


def test_depth_strikes_where_the_history_is_shortened(serve):
    served = serve(LOOP)
    go_round(served, forever("t1"), 4)
    (violation,) = verified(served, depth=5)["violations"]
    assert violation["invariant"] == "depth-bounded"
    assert violation["exchange"] == 6
    # What the user says begins a new count.
    served = serve(LOOP)
    go_round(served, forever("t1"), 2)
    ask(served, "t1", "please look around")
    go_round(served, forever("t1"), 1)
    assert verified(served, depth=5)["violations"] == []
