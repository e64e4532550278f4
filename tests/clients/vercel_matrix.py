"""Vercel's AI SDK under Node: what it is asked to do, what it has to understand, and what it did.

`told` has many conversations in one process, for Node takes half a second to begin. `story` says
what must come of one; what a provider cannot tell stands in `LOSSES`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from mockllm.core.turn import Text, ToolCall, Turn
from mockllm.matching.positions import turn_at
from mockllm.protocols import PROTOCOLS
from mockllm.protocols.base import dumps
from mockllm.replay.resolve import resolve
from mockllm.scenario.model import Scenario, TextPart
from tests.clients.conversation import (
    SCENARIOS,
    opening,
    plain_positions,
    result,
    tools,
    words,
)

CLIENT = Path(__file__).parent / "vercel"
NODE = shutil.which("node")

BASE_PATHS = {"chat": "/v1", "responses": "/v1", "anthropic": "/v1", "gemini": "/v1beta"}
"""What the providers' base URLs end in; Google's own SDKs add the version themselves."""
MODELS = {
    "chat": "gpt-4o",
    "responses": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
}
"""The APIs that the SDK has a provider for here, and a model that it takes for one of theirs."""


Json = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """What the SDK makes of one answer.

    `calls` are (id, name, input, whether the SDK could not use it); `usage` is (input, output,
    reasoning, cached). Of an answer that ended in an error the usage is left out, and `finish`
    is `error`.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str, Any, bool], ...] = ()
    finish: str = "error"
    usage: tuple[int, int, int, int] = (0, 0, 0, 0)
    sources: tuple[tuple[str, str], ...] = ()
    error: str = ""
    warnings: tuple[str, ...] = ()


class Loss(NamedTuple):
    """Why the first answer is not understood as it was written, and what is understood."""

    reason: str
    instead: dict[str, Any]


LOSSES: dict[tuple[str, str], Loss] = {
    ("reasoning", "chat"): Loss(
        "the provider for Chat Completions reads no reasoning", {"reasoning": ""}
    ),
    ("malformed-arguments", "gemini"): Loss(
        "Gemini leaves out a call whose arguments are no JSON object",
        {"calls": (("", "get_weather", {"city": "Rome"}, False),), "finish": "error"},
    ),
    ("refusal", "gemini"): Loss("Gemini tells a refusal from text by nothing", {"finish": "stop"}),
}
"""By scenario and API; everything else is understood as it was written."""

WITHOUT_IDS = ("gemini",)
"""The APIs whose calls come without ids; the SDK makes them up."""

_USAGE = ("inputTokens", "outputTokens", "reasoningTokens", "cachedInputTokens")
_FINISH = {
    "stop": "stop",
    "tool_calls": "tool-calls",
    "length": "length",
    "content_filter": "content-filter",
    "refusal": "content-filter",
}


def missing() -> str | None:
    """Why the SDK cannot run here; None where it can."""
    if NODE is None:
        return "Node is not installed"
    if not (CLIENT / "node_modules" / "ai").is_dir():
        return f"the AI SDK is not installed: run `npm install` in {CLIENT.name}/"
    return None


# What is asked


def job(scenario: Scenario, api: str, root: str, **changes: Any) -> Json:
    """A conversation for `run.mjs` that plays a scenario to its end.

    Args:
        root: the base URL of a session, without the API's own part.
        changes: fields of the job that are to be others.
    """
    positions = played(scenario, api)
    calls = {position: _turn(scenario, position, api).tool_calls for position in positions[:-1]}
    asked = [words(scenario, position, api) for position, made in calls.items() if not made]
    return {
        "id": f"{scenario.name} {api}",
        "api": api,
        "url": root + BASE_PATHS[api],
        "model": MODELS[api],
        "said": [opening(scenario), *asked],
        "tools": tools(scenario),
        "results": _results(scenario, api),
        "most": len(positions),
        **changes,
    }


def played(scenario: Scenario, api: str) -> tuple[int, ...]:
    """The positions that a conversation asks for: those that answer, and one that fails."""
    plain = plain_positions(scenario, api)
    spec = turn_at(scenario, len(plain), api)
    endless = scenario.restart or scenario.turns[-1].repeat
    return plain if spec is None or endless else (*plain, len(plain))


def _results(scenario: Scenario, api: str) -> dict[str, str]:
    """The result of each call that the scenario expects one for, by name and input."""
    found = {}
    for position in plain_positions(scenario, api):
        spec = turn_at(scenario, position + 1, api)
        expected = dict(spec.request.results) if spec is not None and spec.request else {}
        for call in _turn(scenario, position, api).tool_calls:
            if call.id in expected:
                found[f"{call.name} {dumps(call.parsed())}"] = result(expected[call.id])
    return found


def told(jobs: Iterable[Json]) -> dict[str, list[Step]]:
    """What the SDK understood in each conversation, by the id of its job."""
    assert NODE is not None
    done = subprocess.run(
        [NODE, str(CLIENT / "run.mjs")],
        input=json.dumps(list(jobs)).encode(),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    # Lines of bytes: in text, more would end a line than JSON escapes.
    conversations = map(json.loads, done.stdout.splitlines())
    return {one["id"]: [_seen(step) for step in one["steps"]] for one in conversations}


def _seen(step: Json) -> Step:
    seen = Step(
        text=step["text"],
        reasoning=step["reasoning"],
        calls=tuple((c["id"], c["name"], c["input"], c["invalid"]) for c in step["calls"]),
        sources=tuple((source["url"], source["title"]) for source in step["sources"]),
        error="\n".join(step["errors"]),
        warnings=tuple(map(dumps, step["warnings"])),
    )
    if step["errors"]:
        return seen
    input, output, reasoning, cached = (step["usage"].get(name) or 0 for name in _USAGE)
    return replace(seen, finish=step["finish"], usage=(input, output, reasoning, cached))


# What has to be understood


def story(scenario: Scenario, api: str) -> list[Step]:
    """What the SDK must make of a scenario's conversation, less its `LOSSES`."""
    steps = [_understood(scenario, position, api) for position in played(scenario, api)]
    loss = LOSSES.get((scenario.name, api))
    return [replace(steps[0], **loss.instead), *steps[1:]] if loss else steps


def _understood(scenario: Scenario, position: int, api: str) -> Step:
    spec = turn_at(scenario, position, api)
    assert spec is not None
    if spec.http is not None:
        assert spec.http.error is not None
        return Step(error=spec.http.error.message or "")
    turn = _turn(scenario, position, api)
    seen = Step(
        text=turn.text + turn.refusal,
        reasoning=turn.reasoning,
        calls=tuple((call.id, call.name, *_input(call)) for call in turn.tool_calls),
        sources=tuple(
            (cite.url, cite.title)
            for part in turn.parts
            if isinstance(part, Text)
            for cite in part.citations
        ),
    )
    if turn.error is not None:
        return replace(seen, error=turn.error.message)
    usage = turn.usage
    assert usage is not None
    assert turn.finish is not None
    return replace(
        seen,
        finish=_FINISH[turn.finish],
        usage=(usage.input, usage.output, usage.reasoning, usage.cached),
    )


def _input(call: ToolCall) -> tuple[Any, bool]:
    """The arguments as a value, or as text where they are not JSON; and whether they are not."""
    try:
        return call.parsed(), False
    except ValueError:
        return call.arguments, True


def _turn(scenario: Scenario, position: int, api: str) -> Turn:
    # What answers by itself answers with what was said last.
    said = opening(scenario) if position == 0 else words(scenario, position - 1, api)
    prefix = PROTOCOLS[api].call_prefix
    return resolve(scenario, position, api, prefix, auto=(TextPart(said),))


def without_ids(steps: list[Step], api: str) -> list[Step]:
    """The steps without the ids of calls, where the SDK made them up."""
    if api not in WITHOUT_IDS:
        return steps
    return [replace(step, calls=tuple(("", *rest) for _, *rest in step.calls)) for step in steps]


# The table


def cells(url: str) -> dict[tuple[str, str, str], str]:
    """How each shipped scenario plays over each API with this SDK.

    Args:
        url: of a server of the shipped scenarios, without a base path.

    Returns:
        By scenario, API and `ai-sdk`: `equal`, or the reason of a listed loss. Nothing where the
        SDK is not installed.

    Raises:
        AssertionError: something else was understood.
    """
    if missing() is not None:
        return {}
    places = [(s, api) for s in SCENARIOS.values() for api in MODELS if api in s.apis]
    seen = told(job(s, api, f"{url}/s/ai-sdk-{s.name}-{api}") for s, api in places)
    table: dict[tuple[str, str, str], str] = {}
    for scenario, api in places:
        understood = without_ids(seen[f"{scenario.name} {api}"], api)
        assert understood == without_ids(story(scenario, api), api), (scenario.name, api)
        loss = LOSSES.get((scenario.name, api))
        table[scenario.name, api, "ai-sdk"] = loss.reason if loss else "equal"
    return table
