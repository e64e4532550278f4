"""The official AG-UI client under Node, with its own verification: what it makes of scenarios."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mockllm.core.turn import Turn
from mockllm.matching.positions import turn_at
from mockllm.protocols import PROTOCOLS
from mockllm.replay.resolve import resolve
from mockllm.scenario.model import Scenario
from tests.clients.conftest import Run
from tests.clients.conversation import SCENARIOS, opening, result

CLIENT = Path(__file__).parent / "agui"
NODE = shutil.which("node")


def _missing() -> str | None:
    """Why these tests cannot run here."""
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


def converse(url: str, *said: str, **job: Any) -> dict[str, Any]:
    """What the client tells of a conversation (see `run.mjs`); no run takes a minute."""
    assert NODE is not None
    done = subprocess.run(
        [NODE, str(CLIENT / "run.mjs"), url],
        input=json.dumps({"said": said, **job}).encode(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def offered(scenario: Scenario) -> list[dict[str, Any]]:
    """The scenario's tools as AG-UI is offered them."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters or {"type": "object", "properties": {}},
        }
        for tool in scenario.tools
    ]


def results(scenario: Scenario) -> dict[str, str]:
    """A result that the scenario expects for each call that it expects one for."""
    specs = [turn_at(scenario, position, "agui") for position in range(len(scenario.turns))]
    expected = [spec.request.results for spec in specs if spec is not None and spec.request]
    return {id: result(condition) for one in expected for id, condition in one}


def turns(scenario: Scenario) -> list[Turn]:
    """The turns that the scenario plays over AG-UI."""
    return [resolve(scenario, i, "agui", "call_") for i in range(len(scenario.turns))]


def understood(turn: Turn) -> dict[str, Any]:
    """What the client has to understand of a turn."""
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


def seen(run: dict[str, Any]) -> dict[str, Any]:
    """What the client did understand of a run."""
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


@pytest.mark.parametrize("place", ["end", "behind"])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_conversation(run: Run, name: str, place: str) -> None:
    """The client understands every answer without a warning, its tools run, and its history is
    understood wherever it puts their results."""
    scenario = SCENARIOS[name]
    told = converse(
        f"{run.root}/agui/{name}",
        opening(scenario),
        tools=offered(scenario),
        results=results(scenario),
        place=place,
    )
    assert [seen(one) for one in told["runs"]] == [understood(turn) for turn in turns(scenario)]
    assert told["warnings"] == []
    assert run.plays == [(name, index, "played") for index in range(len(scenario.turns))]


def test_scenarios_are_matched(run: Run) -> None:
    """Without a scenario in the path, what the user says decides, again and again in one thread."""
    names = ("text-and-tools", "reasoning", "reasoning")
    said = [opening(SCENARIOS[name]) for name in names]
    told = converse(f"{run.root}/agui", *said, tools=offered(SCENARIOS["text-and-tools"]))
    played = [turn for name in names for turn in turns(SCENARIOS[name])]
    assert [seen(one) for one in told["runs"]] == [understood(turn) for turn in played]
    assert len({message["id"] for message in told["messages"]}) == len(told["messages"])
    assert [name for name, _, _ in run.plays] == ["text-and-tools", *names]


def test_error_in_the_stream(run: Run) -> None:
    """An error inside a run reaches the client with its message, after the text before it."""
    scenario = SCENARIOS["stream-error"]
    told = converse(f"{run.root}/agui/stream-error", opening(scenario))
    (turn,) = turns(scenario)
    assert turn.error is not None
    assert told["errors"] == [turn.error.message]
    assert told["messages"][-1]["content"] == turn.text


def test_error_in_place_of_a_stream(run: Run) -> None:
    """A status that is not 2xx is rejected, with the body's words."""
    run.expects("error")
    (error,) = converse(f"{run.root}/agui/rate-limited", "Hello")["errors"]
    assert "HTTP 429" in error
    assert "rate_limit" in error


def test_nothing_matches(run: Run) -> None:
    """A client without a scenario gets told which ones there are."""
    run.expects("unmatched")
    (error,) = converse(f"{run.root}/agui/secret-number", "Hello")["errors"]
    assert "HTTP 404" in error
    assert "secret-numbers" in error
