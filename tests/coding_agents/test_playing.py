"""Real agents against scenarios: one scenario for all, summaries, refusals, conversations that go
round, and calls that cannot be run."""

from __future__ import annotations

from collections import Counter

import httpx
import pytest

from mockllm import ServerOptions, ServerThread, loads
from mockllm.play.replay.sessions.rounds import MOST_ROUNDS
from tests.coding_agents.programs import NAMES, is_installed, run

pytestmark = pytest.mark.heavy


def of_agents(*names):
    """A test for each of some agents that are installed."""
    reason = "it is not installed: run `make agents`"
    marked = [
        pytest.param(name, marks=pytest.mark.skipif(not is_installed(name), reason=reason))
        for name in names
    ]
    return pytest.mark.parametrize("agent", marked)


def verdict(server):
    answer = httpx.get(f"{server.url}/_mockllm/verify", trust_env=False)
    return answer.json()


FOR_ALL = """
scenario: for-all
match: {user: Look around}
turns:
  - reply: {shell: "echo one > log", id: call_1}
  - reply: {write: {path: notes.txt, content: first line}, id: call_2}
  - reply: {read: notes.txt, id: call_3}
  - request: {results: {call_3: {contains: first line}}}
    reply: {edit: {path: notes.txt, old: first, new: second}, id: call_4}
  - reply: {shell: cat notes.txt log, id: call_5}
  - request: {results: {call_5: {contains: second line}}}
    reply: All is quiet.
"""


@of_agents(*NAMES)
def test_one_scenario_for_all(agent, tmp_path):
    """The files are there, the answer is printed, and the verdict is good, without a remark."""
    with ServerThread(loads(FOR_ALL), ServerOptions()) as server:
        done, journal = run(agent, server, tmp_path)
        found = verdict(server)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("All is quiet.")
    assert (tmp_path / "work" / "notes.txt").read_text() == "second line"
    assert (tmp_path / "work" / "log").read_text() == "one\n"
    assert (found["verdict"], found["remarks"]) == ("good", [])
    assert [entry.turn for entry in journal if entry.scenario] == list(range(6))


LONG = """
scenario: long
match: {user: Look around}
turns:
  - reply: {shell: "echo one >> log", id: call_1}
    usage: {input: 95000, output: 10}
  - reply: {shell: "echo two >> log", id: call_2}
    usage: {input: 100, output: 10}
  - reply: All is quiet.
"""
COMPACT = ("-c", "model_auto_compact_token_limit=80000")


@of_agents("codex", "codex by its default model", "opencode")
def test_a_summary_in_the_middle(agent, tmp_path):
    """The conversation goes on at its turn, and each command runs once."""
    with ServerThread(loads(LONG), ServerOptions()) as server:
        done, journal = run(agent, server, tmp_path, *(COMPACT if "codex" in agent else ()))
        found = verdict(server)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("All is quiet.")
    assert (tmp_path / "work" / "log").read_text() == "one\ntwo\n"
    assert found["verdict"] == "good"
    assert f"{NAMES[agent]} summary" in [entry.played.auxiliary for entry in journal]


@of_agents("claude")
def test_a_summary_between_two_prompts(agent, tmp_path):
    text = LONG + "  - reply: Still quiet.\n"
    with ServerThread(loads(text), ServerOptions()) as server:
        run(agent, server, tmp_path)
        run(agent, server, tmp_path, "-c", prompt="/compact")
        done, journal = run(agent, server, tmp_path, "-c", prompt="go on")
        found = verdict(server)
    assert done.stdout.strip() == "Still quiet.", done.stderr
    assert found["verdict"] == "good"
    kinds = Counter(entry.played.auxiliary for entry in journal)
    assert kinds["claude summary"] == 1
    assert kinds["claude route"] == 3


@of_agents("claude", "codex", "codex by its default model", "gemini", "opencode")
def test_what_nothing_answers_ends_it_at_once(agent, tmp_path):
    """It asks once, and shows the reason."""
    text = "scenario: other\nmatch: {user: Nobody says this}\nturns: [{reply: Hello.}]"
    with ServerThread(loads(text), ServerOptions()) as server:
        done, journal = run(agent, server, tmp_path)
    assert done.returncode != 0
    assert "No scenario answers this request" in done.stdout + done.stderr
    assert [entry.outcome for entry in journal].count("unmatched") == 1


@of_agents("codex")
def test_a_conversation_that_goes_round_is_stopped(agent, tmp_path):
    """A summary of a scenario has no mark, so the history begins anew after it."""
    summary = (
        "---\nscenario: summary\nmatch: {user: CONTEXT CHECKPOINT}\n"
        "turns: [{reply: We looked., repeat: true}]"
    )
    with ServerThread(loads(LONG + summary), ServerOptions()) as server:
        done, _ = run(agent, server, tmp_path, *COMPACT)
        found = verdict(server)
    assert done.returncode != 0
    assert "the conversation goes round" in done.stderr
    ran = (tmp_path / "work" / "log").read_text().split()
    assert MOST_ROUNDS <= len(ran) <= MOST_ROUNDS + 2
    assert [violation["invariant"] for violation in found["violations"]] == ["turn-repeated"]


@of_agents("opencode")
def test_a_call_that_cannot_be_run(agent, tmp_path):
    text = """
scenario: wrong
match: {user: Look around}
turns:
  - reply: {tool: nosuch, id: call_1, arguments: {a: 1}}
  - request: {results: {call_1: {contains: unavailable tool}}}
    reply: I see.
"""
    with ServerThread(loads(text), ServerOptions()) as server:
        done, _ = run(agent, server, tmp_path)
        found = verdict(server)
    assert done.stdout.strip() == "I see.", done.stderr
    assert found["violations"] == []
