"""Shared by both directions of Ollama: options, Go's JSON, the ends of answers, counts, durations.

https://github.com/ollama/ollama/blob/main/docs/api.md#response
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from mockllm.core import events as ev
from mockllm.core.events import Usage
from mockllm.core.seeded import derive_int
from mockllm.core.turn import ToolCall, Turn
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import count, sendable_value


@dataclass(frozen=True, slots=True)
class Options:
    """The parts of a request that the bytes of its answer depend on.

    Args:
        generate: whether it is one of `/api/generate`, whose answers have no message.
    """

    generate: bool = False


_ESCAPED = re.compile("[<>&\u2028\u2029]")


def wire(value: object) -> str:
    """A value as Go's `encoding/json` writes it, which escapes what could end a script element and
    the line separators of Unicode."""
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", dumps(value))


def created_at(reply: Reply) -> str:
    """When the answer was made, in RFC 3339 with nanoseconds."""
    nanoseconds = derive_int(reply.seed, "nanoseconds", below=10**9)
    moment = datetime.fromtimestamp(reply.created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{nanoseconds:09d}Z"


def arguments_of(call: ToolCall) -> Json | None:
    """The arguments of a call as a JSON object; None where they are not one."""
    value = sendable_value(call.arguments)
    return value if isinstance(value, dict) else None


# The end of an answer

_VALUE = re.compile(r"[a-z][a-z_]*\Z")
_REASONS: dict[str, ev.FinishReason] = {"length": "length", "content_filter": "content_filter"}


def usual_reason(finish: ev.FinishReason) -> str:
    """The usual `done_reason` of a finish: Ollama has none for calls, and filters nothing."""
    return "length" if finish == "length" else "stop"


def write_finish(reason: ev.FinishReason, raw: str | None) -> str:
    """The `done_reason` of a finish; `raw` as it is if it can be a value of this API."""
    return raw if raw is not None and _VALUE.match(raw) else usual_reason(reason)


def read_finish(value: str, *, calls: bool) -> ev.Finish:
    """The finish of a `done_reason`; "" is that of old servers, which send none."""
    reason = _REASONS.get(value, "tool_calls" if calls else "stop")
    return ev.Finish(reason, None if value in ("", usual_reason(reason)) else value)


# Counts and durations

_TIME_OF_TOKEN = (10**6, 10**7)
"""Nanoseconds for a token of the prompt, and of the answer, where a turn has no times."""

COUNTS = ("prompt_eval_count", "eval_count", "prompt_eval_cached_count")
"""Of the prompt, of the answer, and of the prompt's tokens that were in the cache."""

DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


def metrics(turn: Turn) -> Json:
    """The durations, in nanoseconds, and the counts of an answer; Ollama leaves out zeros. Loading
    the model and reading the prompt each take half of the time before the answer begins."""
    usage = turn.usage or Usage(0, 0)
    first, *others = [gap * 1000 for gap in turn.gaps] or [
        time * tokens
        for time, tokens in zip(_TIME_OF_TOKEN, (usage.input, usage.output), strict=True)
    ]
    load = first // 2
    fields = {
        "total_duration": first + sum(others),
        "load_duration": load,
        "prompt_eval_count": usage.input,
        "prompt_eval_cached_count": usage.cached,
        "prompt_eval_duration": first - load,
        "eval_count": usage.output,
        "eval_duration": sum(others),
    }
    return {name: value for name, value in fields.items() if value}


def read_usage(value: Fields) -> Usage | None:
    """The counts in the last object; None where it has none. The service does not count reasoning
    apart."""
    if not any(name in value for name in COUNTS):
        return None
    prompt, answer, cached = (count(value.get(name)) for name in COUNTS)
    return Usage(prompt, answer, cached=cached)
