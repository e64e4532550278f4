"""What every client must understand of an answer: read off the scenario, not off any bytes."""

from __future__ import annotations

import json
from collections.abc import Container
from dataclasses import dataclass, fields, replace
from typing import Any

from mockllm.core.turn import Text, Turn
from mockllm.matching.positions import turn_at
from mockllm.protocols import PROTOCOLS
from mockllm.replay.resolve import resolve
from mockllm.scenario.model import ErrorPart, Scenario, TextPart
from tests.clients.dialects import Json

Calls = tuple[tuple[str, str, Any], ...]


@dataclass(frozen=True)
class Seen:
    """What one answer says to a client.

    `calls` are (id, name, arguments); arguments that are not JSON stay text. `finish` is the
    API's own word. `usage` is (input, output, reasoning, cached). `tokens` are those that log
    probabilities came for, joined.
    """

    text: str = ""
    refusal: str = ""
    reasoning: str = ""
    calls: Calls = ()
    finish: str = ""
    usage: tuple[int, int, int, int] = (0, 0, 0, 0)
    cites: tuple[tuple[str, str], ...] = ()
    tokens: str = ""


@dataclass(frozen=True)
class Answer:
    """What a client saw, what it appends to its history for it, and the answer's id."""

    seen: Seen
    echo: list[Any]
    id: str


@dataclass(frozen=True)
class Failure:
    """What a client raised in place of an answer: the words that it showed."""

    message: str


def read_arguments(text: str) -> Any:
    """Arguments as a value, or as they are where they are not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


FINISH: dict[str, dict[str, str]] = {
    "chat": {"refusal": "stop"},
    "responses": {
        "stop": "completed",
        "tool_calls": "completed",
        "refusal": "completed",
        "length": "max_output_tokens",
    },
    "anthropic": {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"},
    "gemini": {
        "stop": "STOP",
        "tool_calls": "STOP",
        "length": "MAX_TOKENS",
        "content_filter": "SAFETY",
    },
    "agui": {"stop": "RUN_FINISHED", "tool_calls": "RUN_FINISHED"},
}
"""The word that an API has for an end of a turn, where it is another one than ours."""


def expected(
    scenario: Scenario, position: int, api: str, said: str = "", *, ids: bool = True
) -> Seen:
    """What every client must understand of the answer at a position.

    Args:
        said: what the user said last, which automatic answers repeat.
        ids: whether calls have ids; of some models of Gemini they have none.
    """
    turn = _resolved(scenario, position, api, said)
    told = PROTOCOLS[api].project(turn)
    seen = _seen(told, told.finish_raw or FINISH[api].get(told.finish or "", told.finish or ""))
    if api == "gemini" and ids:
        known = same_calls(seen.calls, _seen(turn).calls)
        calls = zip(known, seen.calls, strict=True)
        return replace(seen, calls=tuple((id, *call[1:]) for id, call in calls))
    return seen


def written(scenario: Scenario, position: int, api: str, said: str = "") -> Seen:
    """What the scenario says, whatever the API can say of it; `finish` is the scenario's word."""
    return _seen(_resolved(scenario, position, api, said))


def conveyed(scenario: Scenario, position: int, api: str, said: str = "") -> Seen:
    """What is left of it on the way through an API, in the same words."""
    told = PROTOCOLS[api].project(_resolved(scenario, position, api, said))
    seen = expected(scenario, position, api, said)
    return replace(seen, finish=told.finish or "")


def _resolved(scenario: Scenario, position: int, api: str, said: str) -> Turn:
    prefix = PROTOCOLS[api].call_prefix
    return resolve(scenario, position, api, prefix, auto=(TextPart(said),))


def _seen(turn: Turn, finish: str | None = None) -> Seen:
    usage = turn.usage
    assert usage is not None
    texts = [part for part in turn.parts if isinstance(part, Text)]
    return Seen(
        text=turn.text,
        refusal=turn.refusal,
        reasoning=turn.reasoning,
        calls=tuple((c.id, c.name, read_arguments(c.arguments)) for c in turn.tool_calls),
        finish=finish or turn.finish or "",
        usage=(usage.input, usage.output, usage.reasoning, usage.cached),
        cites=tuple((c.url, c.title) for part in texts for c in part.citations),
        tokens="".join(part.text for part in texts if part.logprobs),
    )


def same_calls(seen: Calls, made: Calls) -> list[str]:
    """The ids that the scenario gives to the calls that were seen, perhaps without ids."""
    left = list(made)
    ids = []
    for id, name, arguments in seen:
        for call in left:
            if id == call[0] or (call[1:] == (name, arguments) and not id):
                left.remove(call)
                ids.append(call[0])
                break
        else:
            ids.append(id)
    return ids


def failure(scenario: Scenario, position: int, api: str) -> str | None:
    """The words of the error that a turn is, or ends in; None if it does not fail."""
    spec = turn_at(scenario, position, api)
    if spec is None:
        return None
    errors = [part.error for part in spec.reply if isinstance(part, ErrorPart)]
    if spec.http is not None and spec.http.error is not None:
        errors.append(spec.http.error)
    return errors[0].message if errors else None


def seen_but(seen: Seen, blind: Container[str]) -> Json:
    """What was seen, less some fields."""
    return {f.name: getattr(seen, f.name) for f in fields(seen) if f.name not in blind}
