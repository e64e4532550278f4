"""Scenarios with the official AG-UI client under Node, which verifies every stream."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mockllm.core.turn import Turn
from mockllm.play.matching.conversation import turn_at
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.replay.loading import load
from mockllm.scenario.model import Scenario
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from mockllm.wire.protocols import PROTOCOLS
from tests.clients.conftest import Run
from tests.clients.conversation import SCENARIOS, opening, result, tools

CLIENT = Path(__file__).parent / "agui"
NODE = shutil.which("node")


def _missing() -> str | None:
    """Why these tests cannot run here, or None."""
    if "agui" not in PROTOCOLS:
        return "AG-UI is not served"
    if NODE is None:
        return "Node is not installed"
    if not (CLIENT / "node_modules").is_dir():
        return f"the official client is not installed: run `npm install` in {CLIENT.name}/"
    return None


MISSING = _missing()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(MISSING is not None, reason=MISSING or "everything is there"),
]


def converse(url: str, *texts: str, **job: Any) -> dict[str, Any]:
    """The client's report on a conversation (see `run.mjs`)."""
    assert NODE is not None
    done = subprocess.run(
        [NODE, str(CLIENT / "run.mjs"), url],
        input=json.dumps({"userMessages": texts, **job}).encode(),
        capture_output=True,
        check=True,
        timeout=300,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def results(scenario: Scenario) -> dict[str, str]:
    """A result for each call whose result the scenario checks, by call id."""
    specs = [turn_at(scenario, position, "agui") for position in range(len(scenario.turns))]
    expected = [spec.request.results for spec in specs if spec is not None and spec.request]
    return {id: result(condition) for one in expected for id, condition in one}


def turns(scenario: Scenario) -> list[Turn]:
    """The turns that the scenario plays over AG-UI."""
    return [resolve(scenario, i, "agui") for i in range(len(scenario.turns))]


def expected_run(turn: Turn) -> dict[str, Any]:
    """The expected report on the run of a turn."""
    usage = turn.usage
    assert usage is not None
    return {
        "text": turn.text + turn.refusal,
        "reasoning": turn.reasoning,
        "calls": [
            {"id": call.id, "name": call.name, "arguments": "".join(call.fragments)}
            for call in turn.tool_calls
        ],
        "usage": (usage.input, usage.output, usage.reasoning, usage.cached),
        "error": None,
    }


def normalised(run: dict[str, Any]) -> dict[str, Any]:
    """The report on a run, with usage as a tuple."""
    (usage,) = run["usage"]
    names = ("inputTokens", "outputTokens", "reasoningTokens", "cachedInputTokens")
    return {**run, "usage": tuple(usage[name] for name in names)}


CONVERSATIONS = (
    "secret-numbers",
    "multi-hop",
    "parallel-tools",
    "sequential-tools",
    "zero-argument-tool",
    "text-and-tools",
    "hundred-tools",
    "failing-tool",
    "unicode",
    "reasoning",
    "refusal",
)


@pytest.mark.parametrize("position", ["end", "behind"])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversation(run: Run, name: str, position: str) -> None:
    """The client reads every answer without a warning, and the server reads its history, wherever
    results are in it."""
    scenario = SCENARIOS[name]
    report = converse(
        f"{run.root}/agui/{name}",
        opening(scenario),
        tools=tools(scenario),
        results=results(scenario),
        resultPosition=position,
    )
    assert [normalised(one) for one in report["runs"]] == [
        expected_run(turn) for turn in turns(scenario)
    ]
    assert report["warnings"] == []
    assert run.plays == [(name, index, "played") for index in range(len(scenario.turns))]


def test_user_messages_select_scenarios(run: Run) -> None:
    """Without a scenario in the path the user message selects one, for each message of a thread."""
    names = ("text-and-tools", "reasoning", "reasoning")
    texts = [opening(SCENARIOS[name]) for name in names]
    report = converse(f"{run.root}/agui", *texts, tools=tools(SCENARIOS["text-and-tools"]))
    played = [turn for name in names for turn in turns(SCENARIOS[name])]
    assert [normalised(one) for one in report["runs"]] == [expected_run(turn) for turn in played]
    assert len({message["id"] for message in report["messages"]}) == len(report["messages"])
    assert [name for name, _, _ in run.plays] == ["text-and-tools", *names]


NATIVE = """
scenario: agent
match: any
turns:
  - reply:
      - {native: {type: STEP_STARTED, stepName: plan}, api: agui}
      - {native: {type: STATE_SNAPSHOT, snapshot: {city: null, days: []}}, api: agui}
      - text: Let me see.
      - {native: {type: ACTIVITY_SNAPSHOT, activityType: PLAN, content: {steps: []}}, api: agui}
      - native:
          type: ACTIVITY_DELTA
          activityType: PLAN
          patch: [{op: add, path: /steps/-, value: a}]
        api: agui
      - native:
          type: STATE_DELTA
          delta: [{op: replace, path: /city, value: Oslo}, {op: add, path: /days/-, value: 1}]
        api: agui
      - {tool: search, id: call_1}
      - {native: {type: TOOL_CALL_RESULT, toolCallId: call_1, content: Two trains.}, api: agui}
      - {native: {type: SUBAGENT_STARTED, subagentRunId: sub-1, name: planner}, api: agui}
      - text: The first one.
      - {native: {type: SUBAGENT_FINISHED, subagentRunId: sub-1}, api: agui}
      - {native: {type: CUSTOM, name: note, value: null}, api: agui}
      - {native: {type: STEP_FINISHED, stepName: plan}, api: agui}
      - native:
          type: RUN_FINISHED
          outcome: {type: interrupt, interrupts: [{id: i1, reason: approval}]}
        api: agui
"""


def test_native_parts(tmp_path: Path) -> None:
    """The client accepts every native event, keeps the state that they make, the activity, the
    result and whose work a text is, and is told of the interrupt."""
    (tmp_path / "agent.yaml").write_text(NATIVE)
    with ServerThread(load([tmp_path]), ServerOptions(speed=0)) as server:
        report = converse(f"{server.url}/agui", "Hello")
    assert report["errors"] == report["warnings"] == []
    assert report["state"] == {"city": "Oslo", "days": [1]}
    assert report["outcome"]["interrupts"] == [{"id": "i1", "reason": "approval"}]
    kept = [message for message in report["messages"] if message["role"] != "user"]
    assert [(message["role"], message.get("content")) for message in kept] == [
        ("assistant", "Let me see."),
        ("tool", "Two trains."),
        ("activity", {"steps": ["a"]}),
        ("assistant", "The first one."),
    ]
    assert kept[-1]["subagentRunId"] == "sub-1"


RAN_ITSELF = """
scenario: agent
match: {user: Hello}
turns:
  - reply:
      - {tool: search, id: call_1}
      - {native: {type: TOOL_CALL_RESULT, toolCallId: call_1, content: Two trains.}, api: agui}
      - text: Take the first one.
  - reply: Good trip.
"""


def test_a_conversation_goes_on_after_a_result_of_the_agent(tmp_path: Path) -> None:
    """The client runs no tool whose result it has, and its history leads to the next turn."""
    (tmp_path / "agent.yaml").write_text(RAN_ITSELF)
    with ServerThread(load([tmp_path]), ServerOptions(speed=0)) as server:
        report = converse(f"{server.url}/agui", "Hello", "And now?")
    assert report["errors"] == report["warnings"] == []
    assert [run["text"] for run in report["runs"]] == ["Take the first one.", "Good trip."]


def test_error_in_the_stream(run: Run) -> None:
    """An error inside a run reaches the client with its message, after the text before it."""
    scenario = SCENARIOS["stream-error"]
    report = converse(f"{run.root}/agui/stream-error", opening(scenario))
    (turn,) = turns(scenario)
    assert turn.error is not None
    assert report["errors"] == [turn.error.message]
    assert report["messages"][-1]["content"] == turn.text


def test_error_in_place_of_a_stream(run: Run) -> None:
    """A status that is not 2xx is an error with the message of the body."""
    run.expects("error")
    (error,) = converse(f"{run.root}/agui/rate-limited", "Hello")["errors"]
    assert "HTTP 429" in error
    assert "rate_limit" in error


def test_nothing_matches(run: Run) -> None:
    """The error for an unknown scenario names a similar one."""
    run.expects("unmatched")
    (error,) = converse(f"{run.root}/agui/secret-number", "Hello")["errors"]
    assert "HTTP 404" in error
    assert "secret-numbers" in error
