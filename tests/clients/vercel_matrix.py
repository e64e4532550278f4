"""Vercel's AI SDK under Node: its jobs, the expected steps, and the steps that it reports.

`run_jobs` has many conversations in one process, since Node takes half a second to start. `story`
has the expected steps of one; what a provider loses is in `LOSSES`. The versions 6 and 7 read all
answers alike, streamed (`streamText`) and whole (`generateText`) with other losses.
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
from mockllm.play.matching.conversation import turn_at
from mockllm.scenario.model import Scenario
from mockllm.wire.protocols.base import dumps
from tests.clients.conversation import (
    SCENARIOS,
    next_user_text,
    opening,
    plain_positions,
    result,
    tools,
)
from tests.clients.oracle import resolved

CLIENT = Path(__file__).parent / "vercel"
NODE = shutil.which("node")

BASE_PATHS = {
    "chat": "/v1",
    "responses": "/v1",
    "anthropic": "/v1",
    "gemini": "/v1beta",
    "bedrock": "",
    "cohere": "/v2",
}
"""The path of the providers' base URLs; Google's own SDKs add the version themselves."""
MODELS = {
    "chat": "gpt-4o",
    "responses": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-flash",
    "bedrock": "us.anthropic.claude-mock-v1:0",
    "cohere": "command-a",
}
"""The APIs whose providers are installed, and a model name that each accepts."""


Json = dict[str, Any]
NO_USAGE = (0, 0, 0, 0)


@dataclass(frozen=True)
class Step:
    """One answer as the SDK reads it.

    `calls` are (id, name, input, whether the SDK could not use it); `usage` is (input, output,
    reasoning, cached). Of an answer that ended in an error the usage is left out, and `finish`
    is `error`.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, str, Any, bool], ...] = ()
    finish: str = "error"
    usage: tuple[int, int, int, int] = NO_USAGE
    sources: tuple[tuple[str, str], ...] = ()
    error: str = ""
    warnings: tuple[str, ...] = ()


class Loss(NamedTuple):
    """Why an answer is not read as written, and what is read instead. An error ends the
    conversation."""

    reason: str
    instead: dict[str, Any]
    position: int = 0


_NO_SOURCES = "The provider has no place for the citations of this API."
_NO_PLAN = "The provider for Cohere ignores the text before calls, which is a `tool_plan`."

LOSSES: dict[tuple[str, str], Loss] = {
    ("reasoning", "chat"): Loss(
        "The provider for Chat Completions ignores reasoning.", {"reasoning": ""}
    ),
    ("malformed-arguments", "gemini"): Loss(
        "Gemini leaves out a call whose arguments are not a JSON object.",
        {"calls": (("", "get_weather", {"city": "Rome"}, False),), "finish": "error"},
    ),
    ("refusal", "gemini"): Loss("Gemini does not mark a refusal.", {"finish": "stop"}),
    ("citations", "bedrock"): Loss(_NO_SOURCES, {"sources": ()}),
    ("citations", "cohere"): Loss(_NO_SOURCES, {"sources": ()}),
    ("reasoning", "bedrock"): Loss(
        "Amazon Bedrock counts no tokens of reasoning.", {"usage": (4, 20, 0, 0)}
    ),
    ("reasoning", "cohere"): Loss(
        "Cohere counts no tokens of reasoning.", {"usage": (4, 20, 0, 0)}
    ),
    ("token-usage", "bedrock"): Loss(
        "Amazon Bedrock counts no tokens of reasoning.", {"usage": (2048, 64, 0, 1920)}
    ),
    ("token-usage", "cohere"): Loss(
        "Cohere counts no tokens of reasoning, and the provider none of the cache.",
        {"usage": (2048, 64, 0, 0)},
    ),
    ("content-filtered", "cohere"): Loss(
        "Cohere has no finish reason for a filtered answer.", {"finish": "stop"}
    ),
    ("refusal", "cohere"): Loss("Cohere does not mark a refusal.", {"finish": "stop"}),
    ("text-and-tools", "cohere"): Loss(_NO_PLAN, {"text": ""}),
    ("failing-tool", "cohere"): Loss(_NO_PLAN, {"text": ""}, position=1),
    ("parallel-tools", "cohere"): Loss(
        "The provider for Cohere joins the arguments of calls that interleave.",
        {"calls": (), "error": 'JSON parsing failed: Text: {"ci{{ty":""city":"Oslo"}.'},
    ),
    ("malformed-arguments", "cohere"): Loss(
        "The provider for Cohere fails at arguments that are not JSON.",
        {"calls": (), "error": 'JSON parsing failed: Text: {"city": "Par.'},
    ),
    ("stream-error", "cohere"): Loss(
        "The provider for Cohere drops the message of an error in the stream.",
        {"error": "", "usage": (5, 8, 0, 0)},
    ),
}
"""By scenario and API; everything else is read as written."""

_AS_TEXT = Loss(
    "Of a body the provider takes arguments that are no JSON object as they are.",
    {
        "calls": (
            ("call_broken", "get_weather", '{"city": "Par', False),
            ("call_fine", "get_weather", {"city": "Rome"}, False),
        )
    },
)
_ONLY_ERROR = Loss("A body with an error has nothing else.", {"text": ""})

WHOLE_LOSSES: dict[tuple[str, str], Loss | None] = {
    ("citations", "cohere"): Loss(
        "The provider has the documents without their URLs.",
        {"sources": (("", "HTML Standard, server-sent events"),)},
    ),
    ("malformed-arguments", "anthropic"): _AS_TEXT,
    ("malformed-arguments", "bedrock"): _AS_TEXT,
    ("malformed-arguments", "cohere"): None,
    ("parallel-tools", "cohere"): None,
    **{("stream-error", api): _ONLY_ERROR for api in MODELS},
}
"""Of answers that are not streamed, those that differ from `LOSSES`; None where nothing is lost."""

PROVIDERS = {"compatible": ("chat", "/v1"), "ollama": ("ollama", "/api")}
"""Further providers, `@ai-sdk/openai-compatible` and `ollama-ai-provider-v2`, each with its API and
the path of its base URLs."""

_UNCOUNTED = "Ollama counts no tokens of reasoning and none of the cache."
_UNMARKED = "Ollama marks neither a refusal nor a filtered answer."
_STATUS = "The provider knows errors as objects, and none that is a text."
_INTERNAL = {"error": "Internal Server Error"}

PROVIDER_LOSSES: dict[tuple[str, str], Loss] = {
    ("citations", "compatible"): Loss(_NO_SOURCES, {"sources": ()}),
    ("citations", "ollama"): Loss("Ollama has no citations.", {"sources": ()}),
    ("continuation-error", "ollama"): Loss(_STATUS, _INTERNAL, position=1),
    ("content-filtered", "ollama"): Loss(_UNMARKED, {"finish": "stop"}),
    ("refusal", "ollama"): Loss(_UNMARKED, {"finish": "stop"}),
    ("reasoning", "ollama"): Loss(_UNCOUNTED, {"usage": (4, 20, 0, 0)}),
    ("token-usage", "ollama"): Loss(_UNCOUNTED, {"usage": (2048, 64, 0, 0)}),
    ("malformed-arguments", "ollama"): Loss(
        "Ollama leaves out a call whose arguments are not a JSON object.",
        {"calls": (("", "get_weather", {"city": "Rome"}, False),)},
    ),
    ("stream-error", "ollama"): Loss(
        "The provider drops an error in the stream.", {"error": "", "finish": "other"}
    ),
}
"""By scenario and further provider."""

WHOLE_PROVIDER_LOSSES = {
    ("stream-error", "compatible"): _ONLY_ERROR,
    ("stream-error", "ollama"): Loss(_STATUS, {"text": "", **_INTERNAL}),
}
"""Of answers that are not streamed, those that differ from `PROVIDER_LOSSES`."""

VERSIONS = ("6", "7")

WITHOUT_IDS = ("gemini", "ollama")
"""The APIs whose calls have no ids; the SDK generates them."""

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
    if not (CLIENT / "node_modules" / "ai-7").is_dir():
        return f"version 7 of the AI SDK is not installed: run `npm install` in {CLIENT.name}/"
    return None


# Jobs


def job(scenario: Scenario, api: str, root: str, **changes: Any) -> Json:
    """A conversation for `run.mjs` that plays a scenario to its end.

    Args:
        root: the base URL of a session, without the path of the API.
        changes: fields of the job with other values.
    """
    provider = changes.get("provider", "")
    path = PROVIDERS[provider][1] if provider else BASE_PATHS[api]
    positions = played(scenario, api)
    calls = {position: _turn(scenario, position, api).tool_calls for position in positions[:-1]}
    later = [
        next_user_text(scenario, position, api)
        for position, turn_calls in calls.items()
        if not turn_calls
    ]
    return {
        "id": f"{scenario.name} {api}",
        "api": api,
        "url": root + path,
        "model": MODELS.get(api, "mock-model"),
        "userMessages": [opening(scenario), *later],
        "tools": tools(scenario),
        "results": _results(scenario, api),
        "maxSteps": len(positions),
        **changes,
    }


def played(scenario: Scenario, api: str) -> tuple[int, ...]:
    """The positions of a conversation: those that answer, and one that fails."""
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
                found[f"{call.name} {dumps(call.parse_arguments())}"] = result(expected[call.id])
    return found


def run_jobs(jobs: Iterable[Json], version: str = VERSIONS[-1]) -> dict[str, list[Step]]:
    """The steps that the SDK read in each conversation, by the id of its job."""
    assert NODE is not None
    done = subprocess.run(
        [NODE, str(CLIENT / "run.mjs"), version],
        input=json.dumps(list(jobs)).encode(),
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    # Lines of bytes: `str.splitlines` also splits at characters that JSON does not escape.
    conversations = map(json.loads, done.stdout.splitlines())
    return {
        conversation["id"]: [_seen(step) for step in conversation["steps"]]
        for conversation in conversations
    }


def _seen(step: Json) -> Step:
    seen = Step(
        text=step["text"],
        reasoning=step["reasoning"],
        calls=tuple((c["id"], c["name"], c["input"], c["invalid"]) for c in step["calls"]),
        sources=tuple((source["url"], source["title"]) for source in step["sources"]),
        # What follows of an error of JSON are words of Node, which each version has others for.
        error="\n".join(step["errors"]).partition("\nError message:")[0],
        warnings=tuple(map(dumps, step["warnings"])),
    )
    if step["errors"]:
        return seen
    input, output, reasoning, cached = (step["usage"].get(name) or 0 for name in _USAGE)
    return replace(seen, finish=step["finish"], usage=(input, output, reasoning, cached))


# Expected steps


def loss_of(name: str, api: str, *, whole: bool = False, provider: str = "") -> Loss | None:
    """What of a scenario is not read as written over an API; None where nothing is lost.

    Args:
        whole: whether the answers are not streamed.
        provider: one of `PROVIDERS`; "" for that of the API's vendor.
    """
    if provider:
        usual = PROVIDER_LOSSES.get((name, provider))
        return WHOLE_PROVIDER_LOSSES.get((name, provider), usual) if whole else usual
    usual = LOSSES.get((name, api))
    return WHOLE_LOSSES.get((name, api), usual) if whole else usual


def story(scenario: Scenario, api: str, *, whole: bool = False, provider: str = "") -> list[Step]:
    """The expected steps of a scenario's conversation, with its losses."""
    steps = [_expected_step(scenario, position, api) for position in played(scenario, api)]
    if (loss := loss_of(scenario.name, api, whole=whole, provider=provider)) is None:
        return steps
    step = steps[loss.position]
    if loss.instead.get("error"):
        return [
            *steps[: loss.position],
            replace(step, finish="error", usage=NO_USAGE, **loss.instead),
        ]
    steps[loss.position] = replace(step, **loss.instead)
    return steps


def _expected_step(scenario: Scenario, position: int, api: str) -> Step:
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
    """The arguments as a value and False, or as text and True if they are not JSON."""
    try:
        return call.parse_arguments(), False
    except ValueError:
        return call.arguments, True


def _turn(scenario: Scenario, position: int, api: str) -> Turn:
    user_text = opening(scenario) if position == 0 else next_user_text(scenario, position - 1, api)
    return resolved(scenario, position, api, user_text, referenced=api == "responses")


def without_ids(steps: list[Step], api: str) -> list[Step]:
    """The steps without the ids of calls, if the SDK generates them."""
    if api not in WITHOUT_IDS:
        return steps
    return [replace(step, calls=tuple(("", *rest) for _, *rest in step.calls)) for step in steps]


# The table


def cells(url: str) -> dict[tuple[str, str, str], str]:
    """How each shipped scenario plays over each API with this SDK.

    Args:
        url: the URL of a server of the shipped scenarios, without a base path.

    Returns:
        By scenario, API and `ai-sdk`: `equal`, or the reason of a listed loss. Nothing where the
        SDK is not installed.

    Raises:
        AssertionError: a step is not as expected.
    """
    if missing() is not None:
        return {}
    combinations = [(s, api) for s in SCENARIOS.values() for api in MODELS if s.plays_over(api)]
    seen = run_jobs(job(s, api, f"{url}/s/ai-sdk-{s.name}-{api}") for s, api in combinations)
    table: dict[tuple[str, str, str], str] = {}
    for scenario, api in combinations:
        understood = without_ids(seen[f"{scenario.name} {api}"], api)
        assert understood == without_ids(story(scenario, api), api), (scenario.name, api)
        loss = LOSSES.get((scenario.name, api))
        table[scenario.name, api, "ai-sdk"] = loss.reason if loss else "equal"
    return table
