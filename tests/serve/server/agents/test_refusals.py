"""What no scenario answers ends an agent with the reason, and is one problem however often it is
asked again."""

from __future__ import annotations

import pytest

from mockllm.cli.run import judge
from tests.serve.server.agents.agent_requests import (
    CLAUDE,
    CODEX,
    GEMINI,
    GEMINI_PATH,
    OPENCODE,
    of_claude,
    of_codex,
    of_gemini,
    of_opencode,
    said,
    user,
)

HELLO = """
scenario: hello
match: {user: hello}
turns: [{request: {offers: [Read]}, reply: Hello.}]
"""
PATHS = {"claude": "/v1/messages", "codex": "/v1/responses", "opencode": "/v1/chat/completions"}
HEADERS = {"claude": CLAUDE, "codex": CODEX, "opencode": OPENCODE, "gemini": GEMINI}


def bodies(text):
    return {
        "claude": of_claude(user(text)),
        "codex": of_codex(text),
        "opencode": of_opencode("You are opencode,", text),
        "gemini": of_gemini(said("user", text)),
    }


def ask(served, agent, text, **headers):
    path = PATHS.get(agent, GEMINI_PATH)
    known = {**HEADERS[agent], **headers}
    return served.http.post(path, json=bodies(text)[agent], headers=known)


@pytest.mark.parametrize(
    ("agent", "unmatched", "unmet"),
    [("claude", 410, 410), ("codex", 400, 400), ("opencode", 404, 400), ("gemini", 404, 400)],
)
def test_the_status_at_which_an_agent_stops(serve, agent, unmatched, unmet):
    served = serve(HELLO)
    answer = ask(served, agent, "good morning")
    assert answer.status_code == unmatched
    assert "No scenario answers this request" in answer.text
    answer = ask(served, agent, "hello")
    assert answer.status_code == unmet
    assert "expects another request" in answer.text
    # Any other client gets what it always got.
    others = {"user-agent": "python-httpx/0.28"}
    assert ask(served, "codex", "good morning", **others).status_code == 404
    assert ask(served, "claude", "hello", **others).status_code == 400


def test_what_the_service_refuses_has_its_status(serve):
    served = serve(HELLO)
    body = {**of_claude(user("hello")), "max_tokens": -1}
    assert served.http.post("/v1/messages", json=body, headers=CLAUDE).status_code == 400


def test_one_problem_is_said_once(serve):
    served = serve(HELLO)
    for _ in range(6):
        ask(served, "codex", "good morning")
    ask(served, "codex", "good evening")
    exchanges = served.thread.exchanges("default")
    lines = judge(exchanges, (), {}).lines
    shown = [line for line in lines if "matches nothing" in line]
    assert len(shown) == 2
    assert shown[0].startswith("  request 1 matches nothing: No scenario answers")
    assert shown[0].endswith("(POST /v1/responses) (6 times)")
    assert shown[1].startswith("  request 7 ")
    assert "times" not in shown[1]
