"""The expected content of an answer for every client, read from the scenario and not from bytes."""

from __future__ import annotations

import json
from collections.abc import Container
from dataclasses import dataclass, fields, replace
from typing import Any

from mockllm.core.tokens_and_fragments import tokens
from mockllm.core.turn import Text, Turn
from mockllm.play.matching.conversation import turn_at
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.scenario.model import Scenario
from mockllm.scenario.part_model import ErrorPart, TextPart
from mockllm.wire.protocols import PROTOCOLS
from tests.clients.dialects import Json

Calls = tuple[tuple[str, str, Any], ...]


@dataclass(frozen=True)
class Seen:
    """The content of one answer as a client reads it.

    `calls` are (id, name, arguments); arguments that are not JSON are text. `finish` is the finish
    reason of the API. `usage` is (input, output, reasoning, cached). `tokens` are the tokens with
    log probabilities, joined.
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
    """An answer: its content, the messages that the client adds to its history, and its id."""

    seen: Seen
    echo: list[Any]
    id: str


@dataclass(frozen=True)
class Failure:
    """An error that a client raised in place of an answer."""

    message: str


def read_arguments(text: str) -> Any:
    """Arguments as a value, or verbatim if they are not JSON."""
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
    "realtime": {
        **dict.fromkeys(("stop", "tool_calls", "refusal"), "completed"),
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
    "ollama": dict.fromkeys(("tool_calls", "content_filter", "refusal"), "stop"),
    "completions": {},
    "cohere": {"stop": "COMPLETE", "tool_calls": "TOOL_CALL", "length": "MAX_TOKENS"},
    "bedrock": {
        "stop": "end_turn",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "content_filter": "content_filtered",
    },
    "interactions": {
        **dict.fromkeys(("stop", "refusal"), "completed"),
        "tool_calls": "requires_action",
        "length": "incomplete",
    },
    "live": {"content_filter": "RESPONSE_REJECTED"},
}
"""The finish reason of an API, where it differs from the neutral one."""


def expected(
    scenario: Scenario, position: int, api: str, user_text: str = "", *, ids: bool = True
) -> Seen:
    """The expected content of the answer at a position.

    Args:
        user_text: the last user message, which automatic answers repeat.
        ids: whether the client gets ids of calls: some models of Gemini send none, and the client
            of Ollama drops them.
    """
    turn = resolved(scenario, position, api, user_text)
    projected = PROTOCOLS[api].project(turn)
    seen = _seen(
        projected,
        projected.finish_raw or FINISH[api].get(projected.finish or "", projected.finish or ""),
    )
    if not ids:
        return replace(seen, calls=tuple(("", *call[1:]) for call in seen.calls))
    if api == "gemini":
        ids_of_calls = same_calls(seen.calls, _seen(turn).calls)
        calls = zip(ids_of_calls, seen.calls, strict=True)
        return replace(seen, calls=tuple((id, *call[1:]) for id, call in calls))
    return seen


def written(scenario: Scenario, position: int, api: str, user_text: str = "") -> Seen:
    """The content of the scenario without the losses of the API; `finish` is neutral."""
    return _seen(resolved(scenario, position, api, user_text))


def conveyed(scenario: Scenario, position: int, api: str, user_text: str = "") -> Seen:
    """The content of the scenario after the losses of the API; `finish` is neutral."""
    projected = PROTOCOLS[api].project(resolved(scenario, position, api, user_text))
    seen = expected(scenario, position, api, user_text)
    return replace(seen, finish=projected.finish or "")


def resolved(
    scenario: Scenario, position: int, api: str, user_text: str, *, referenced: bool = False
) -> Turn:
    """The turn; an automatic one repeats the last message, and counts all messages of the request.

    Args:
        referenced: the request names earlier answers by their ids, so that they are not counted.
    """
    turn = resolve(scenario, position, api, auto=(TextPart(user_text),))
    spec = turn_at(scenario, position, api)
    if turn.usage is None or spec is None or not spec.is_auto:
        return turn
    # "Hello" and each "Go on." have as many tokens.
    messages = position + 1 if referenced else 2 * position + 1
    return replace(turn, usage=replace(turn.usage, input=messages * tokens(user_text)))


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


def same_calls(seen: Calls, scenario_calls: Calls) -> list[str]:
    """The ids of the scenario for calls that a client read, which may have none."""
    left = list(scenario_calls)
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
    """The message of the error that a turn is or ends in; None if it does not fail."""
    spec = turn_at(scenario, position, api)
    if spec is None:
        return None
    errors = [part.error for part in spec.reply if isinstance(part, ErrorPart)]
    if spec.http is not None and spec.http.error is not None:
        errors.append(spec.http.error)
    return errors[0].message if errors else None


def fields_without(seen: Seen, ignored: Container[str]) -> Json:
    """The fields of an answer, without some."""
    return {f.name: getattr(seen, f.name) for f in fields(seen) if f.name not in ignored}
