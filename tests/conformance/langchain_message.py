"""Reads a message of LangChain.

The environments of its integrations import this as well, so it needs the standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["summed"]


def summed(chunks: Iterable[Any]) -> dict[str, Any]:
    """The sum of the chunks, as arguments of `Outcome.of`.

    Each of LangChain's `invalid_tool_calls` is an error.
    """
    message = None
    for chunk in chunks:
        message = chunk if message is None else message + chunk
    if message is None:
        return {}
    blocks = message.content_blocks
    return {
        "text": str(message.text),
        "reasoning": _joined(blocks, "reasoning", "reasoning"),
        "refusal": _refusal(message),
        "tool_calls": [(call["id"], call["name"], call["args"]) for call in message.tool_calls],
        "finish": _finish(message.response_metadata),
        "usage": _usage(message.usage_metadata),
        "errors": [
            f"invalid tool call {call['name']} ({call['id']}): {call['error'] or call['args']}"
            for call in message.invalid_tool_calls
        ],
    }


def _joined(blocks: Iterable[Any], type: str, field: str) -> str:
    return "".join(block.get(field) or "" for block in blocks if block["type"] == type)


def _refusal(message: Any) -> str:
    blocks = message.content if isinstance(message.content, list) else ()
    typed = [block for block in blocks if isinstance(block, dict)]
    return message.additional_kwargs.get("refusal") or _joined(typed, "refusal", "refusal")


def _finish(metadata: dict[str, Any]) -> str | None:
    """The finish reason, whose key differs in each integration."""
    why = metadata.get("incomplete_details") or {}
    return (
        metadata.get("finish_reason")
        or metadata.get("stop_reason")
        or why.get("reason")
        or metadata.get("status")
    )


def _usage(usage: Any) -> tuple[int | None, ...] | None:
    if usage is None:
        return None
    return (
        usage["input_tokens"],
        usage["output_tokens"],
        usage.get("output_token_details", {}).get("reasoning"),
        usage.get("input_token_details", {}).get("cache_read"),
    )
