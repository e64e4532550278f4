"""anthropic-python with its own helper for streams."""

from __future__ import annotations

from typing import Any

import anthropic

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import Outcome, Usage
from tests.conformance.client import API_KEY, TIMEOUT
from tests.conformance.request_body import as_text, body

__all__ = ["messages"]


def messages(base_url: str, case: Case) -> Outcome:
    """`messages.stream()`, read to its end, then `get_final_message()`."""
    with (
        anthropic.Anthropic(
            base_url=base_url, api_key=API_KEY, max_retries=0, timeout=TIMEOUT
        ) as client,
        client.messages.stream(**body(case)) as stream,
    ):
        for _ in stream:
            pass
        message = stream.get_final_message()
    texts: dict[str, str] = {"text": "", "reasoning": ""}
    calls = []
    for block in message.content:
        match block.type:
            case "text":
                texts["text"] += as_text(block.text)
            case "thinking":
                texts["reasoning"] += as_text(block.thinking)
            case "tool_use":
                calls.append((block.id, block.name, block.input))
    return Outcome.of(
        **texts, tool_calls=calls, finish=message.stop_reason, usage=_usage(message.usage)
    )


def _usage(usage: Any) -> Usage | None:
    if usage is None:
        return None
    cached = usage.cache_read_input_tokens
    given = usage.input_tokens
    if given is not None:
        given += (cached or 0) + (usage.cache_creation_input_tokens or 0)
    details = usage.output_tokens_details
    return Usage(given, usage.output_tokens, details and details.thinking_tokens, cached)
