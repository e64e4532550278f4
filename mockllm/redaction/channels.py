"""Which strings of an event stream a client joins: those with the same path are a channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mockllm.redaction.json_strings import StringValue

__all__ = ["CONSTANT", "Channel", "channel_key", "is_fragment", "loose_key"]


@dataclass(frozen=True, slots=True)
class Channel:
    """Strings that a client joins.

    Args:
        exact: whether the client joins these and no others; otherwise they are a guess, which is
            right where a service names its items in the first event only.
        whole: whether its strings are fragments, which mean nothing alone.
    """

    values: tuple[StringValue, ...]
    exact: bool
    whole: bool


_FRAGMENTS = frozenset(
    [
        "content",
        "text",
        "delta",
        "arguments",
        "partial_json",
        "thinking",
        "reasoning",
        "reasoning_content",
        "refusal",
        "summary_text",
        "input",
        "partial",
    ]
)
CONSTANT = frozenset(
    [
        "id",
        "object",
        "model",
        "type",
        "role",
        "name",
        "event",
        "status",
        "finish_reason",
        "stop_reason",
        "item_id",
        "response_id",
        "call_id",
        "messageId",
        "toolCallId",
        "parentMessageId",
        "threadId",
        "runId",
        "message_id",
        "tool_call_id",
        "system_fingerprint",
        "service_tier",
        "obfuscation",
        "signature",
        "encrypted_content",
        "thoughtSignature",
        "responseId",
        "modelVersion",
        "finishReason",
        "toolCallName",
    ]
)
"""Fields whose strings repeat, or mean nothing to a person; no client joins them."""


def channel_key(value: StringValue, top: int = 0) -> Any:
    """What strings of one channel have in common; None for a string that is in none.

    Args:
        top: how many first steps of the paths only count the documents.
    """
    field = value.field
    if field.name in CONSTANT or field.kind not in ("string", "payload"):
        return None
    if top and len(field.path) == top:
        return None  # a document that is a string, as in a list of ids
    return field.kind, field.path[top:], value.ids


def loose_key(key: Any, name: str) -> Any:
    """What channels have in common that may be one; None for one that is surely by itself.

    Args:
        key: of a channel (`channel_key`).
        name: of the field of its strings.
    """
    if name not in _FRAGMENTS:
        return None
    _, path, ids = key
    return tuple(step for step in path if isinstance(step, str)), ids[0]


def is_fragment(value: StringValue) -> bool:
    """Whether a string of an event means nothing alone."""
    return value.field.name in _FRAGMENTS
