"""Shared by both sides of AG-UI: events as frames, ids of messages, usage.

https://docs.ag-ui.com/concepts/events
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mockllm.core.events import Frame, Usage
from mockllm.core.seeded import derive
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.records import Json
from mockllm.wire.protocols.values import count, json_object, objects

ENDINGS = frozenset({"RUN_FINISHED", "RUN_ERROR"})
"""The events that end a run."""

_ID = re.compile(r"(msg_[0-9A-Za-z]{24})_\d+\Z")


@dataclass(frozen=True, slots=True)
class Options:
    """The parts of a request that the bytes of its answer depend on: the ids that it repeats."""

    thread_id: str = "thread"
    run_id: str = "run"
    parent_run_id: str | None = None


def message_prefix(reply: Reply) -> str:
    """The prefix of the ids of all messages of an answer. It depends on the run, because clients
    append to a message whose id they know already."""
    return "msg_" + derive(reply.seed, "messages", reply.options.run_id, length=24)


def answer_of(id: object) -> str | None:
    """The prefix in the id of a message that mockllm sent; None for other ids."""
    match = _ID.match(id) if isinstance(id, str) else None
    return match[1] if match else None


def event_of(type: str, **fields: Any) -> Json:
    """An event without the fields that are None."""
    # @ag-ui/client fails at a null where a field may be missing.
    given = {name: value for name, value in fields.items() if value is not None}
    return {"type": type, **given}


def frame_of(type: str, **fields: Any) -> Frame:
    """The frame of an event; fields that are None are left out."""
    return Frame(dumps(event_of(type, **fields)))


def event_in(frame: Frame) -> Json | None:
    """The event in a frame; None where it holds none."""
    value = json_object(frame.data)
    return value if value is not None and isinstance(value.get("type"), str) else None


def write_usage(usage: Usage | None, model: str) -> list[Json] | None:
    """The `usage` of the event that ends a run: an entry for each model, here one."""
    if usage is None:
        return None
    return [
        {
            "model": model,
            "inputTokens": usage.input,
            "outputTokens": usage.output,
            "totalTokens": usage.input + usage.output,
            "reasoningTokens": usage.reasoning,
            "cachedInputTokens": usage.cached,
            **({"cacheWriteInputTokens": usage.cache_written} if usage.cache_written else {}),
        }
    ]


def read_usage(value: object) -> Usage | None:
    """The sum of the entries; None where there are none."""
    entries = objects(value)
    if not entries:
        return None
    names = (
        "inputTokens",
        "outputTokens",
        "reasoningTokens",
        "cachedInputTokens",
        "cacheWriteInputTokens",
    )
    return Usage(*(sum(count(entry.get(name)) for entry in entries) for name in names))
