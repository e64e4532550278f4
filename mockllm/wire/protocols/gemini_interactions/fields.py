"""Shared by both directions of Interactions: options, identifiers, statuses, usage.

https://ai.google.dev/api/interactions-api#Resource:Interaction
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

from mockllm.core.events import Usage
from mockllm.wire.protocols.base import Reply, rfc3339
from mockllm.wire.protocols.records import Fields, Json
from mockllm.wire.protocols.values import StopReasons, base64_bytes, count, mapping


@dataclass(frozen=True, slots=True)
class Options:
    """The parts of a request that the bytes of its answer depend on.

    Args:
        names: the field that names who answers: `model` or `agent`.
        background: whether the events of the stream have ids, from which it can be resumed.
        stored: whether the answer is kept, and so has an id.
        tier: the service tier that the request asks for.
    """

    names: str = "model"
    background: bool = False
    stored: bool = True
    tier: str = "standard"


# Identifiers

PREFIX = "v1_"
"""The beginning of the ids of interactions and events."""


def interaction_id(token: str) -> str:
    """The id of the interaction with this token."""
    return PREFIX + token


def event_id(index: int, kind: str, number: int) -> str:
    """The id of an event: its step, and its number among all events of the stream."""
    text = base64.urlsafe_b64encode(f"{index}_{kind}_{number}".encode())
    return PREFIX + text.decode().rstrip("=")


_EVENT = re.compile(rb"\d+_\w+_(\d{1,9})\Z")


def event_number(id: str) -> int | None:
    """The number in the id of an event; None for an id that mockllm gave to no event."""
    text = id.removeprefix(PREFIX).replace("-", "+").replace("_", "/")
    match = _EVENT.match(base64_bytes(text + "=" * (-len(text) % 4)) or b"")
    return int(match[1]) if match else None


# Statuses

STATUSES = StopReasons(
    {
        "stop": "completed",
        "tool_calls": "requires_action",
        "length": "incomplete",
        "refusal": "completed",
        "content_filter": "incomplete",  # an error in its place
    },
    rare={
        "failed": "stop",
        "budget_exceeded": "length",
        "cancelled": "stop",
        "requires_continuation": "length",
    },
    sequence="completed",
)
"""The values of `status` of an answer that is over. One that the service blocks has none: it ends
in an error (`BLOCKED`)."""

BLOCKED = (
    *("safety", "recitation", "language", "prohibited_content", "spii", "blocklist"),
    *("image_safety", "image_prohibited_content", "image_recitation", "image_other"),
    "content_blocked",
)
"""The codes of errors in place of an answer that the service blocks, the usual one first."""

BLOCKED_MESSAGE = "The response was blocked."


# The interaction


def empty_interaction(reply: Reply) -> Json:
    """The interaction in the first event of a stream."""
    return {"id": _id(reply), "status": "in_progress", **_answerer(reply)}


def whole_interaction(reply: Reply, status: str, usage: Usage | None) -> Json:
    """The interaction in the last event of a stream, and in a body, where it has its steps, too."""
    created = rfc3339(reply.created)
    tier = {"service_tier": reply.service_tier or reply.options.tier}
    return {
        "id": _id(reply),
        "status": status,
        **({} if usage is None else {"usage": write_usage(usage)}),
        "created": created,
        "updated": created,
        **({} if status == "in_progress" else tier),
        **_answerer(reply),
    }


def _id(reply: Reply) -> str:
    return interaction_id(reply.token) if reply.options.stored else ""


def _answerer(reply: Reply) -> Json:
    return {"object": "interaction", reply.options.names: reply.model}


def write_usage(usage: Usage) -> Json:
    """The tokens of an answer. The thoughts are no part of `total_output_tokens`."""
    visible = max(0, usage.output - usage.reasoning)
    return {
        "total_tokens": usage.input + visible + usage.reasoning,
        "total_input_tokens": usage.input,
        "input_tokens_by_modality": [{"modality": "text", "tokens": usage.input}],
        "total_cached_tokens": usage.cached,
        "total_output_tokens": visible,
        "total_tool_use_tokens": 0,
        "total_thought_tokens": usage.reasoning,
    }


def read_usage(value: object) -> Usage | None:
    """The tokens in a `usage`, the inverse of `write_usage`; those of tool use count as input."""
    usage: Fields = mapping(value)
    if not usage:
        return None
    names = ("input", "tool_use", "output", "thought", "cached")
    sent, tools, visible, thoughts, cached = (
        count(usage.get(f"total_{name}_tokens")) for name in names
    )
    return Usage(sent + tools, visible + thoughts, thoughts, cached)
