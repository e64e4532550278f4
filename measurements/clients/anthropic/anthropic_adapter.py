"""anthropic-python with its own helper for streams."""

from __future__ import annotations

from typing import Any

import anthropic
from job import API_KEY, Job, as_text

__all__ = ["messages"]


def messages(job: Job) -> dict[str, Any]:
    """`messages.stream()`, read to its end, then `get_final_message()`."""
    tools = [
        {
            "name": function["name"],
            "description": function["description"],
            "input_schema": function["parameters"],
        }
        for function in job.functions
    ]
    options = {"tools": tools} if tools else {}
    with (
        job.using(lambda: _client(job)) as client,
        job.entered(
            client.messages.stream(
                model=job.model,
                max_tokens=1024,
                messages=[{"role": "user", "content": job.prompt}],
                **options,
            )
        ) as stream,
    ):
        for _ in job.watched(stream, lambda one: one.type == "text" and one.text, stream.close):
            pass
        message = stream.get_final_message()
    return {
        **_blocks(message.content),
        "role": message.role,
        "finish": message.stop_reason,
        "usage": _usage(message.usage),
        "model": message.model,
        "response_id": message.id,
    }


def _client(job: Job) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        base_url=job.base_url,
        api_key=API_KEY,
        max_retries=job.retries,
        timeout=job.timeout(anthropic.Timeout),
    )


def _blocks(content: Any) -> dict[str, Any]:
    texts = {"text": "", "reasoning": ""}
    calls, opaque = [], []
    for block in content:
        match block.type:
            case "text":
                texts["text"] += as_text(block.text)
            case "thinking":
                texts["reasoning"] += as_text(block.thinking)
                opaque += [block.signature] if block.signature else []
            case "redacted_thinking":
                opaque.append(block.data)
            case "tool_use":
                calls.append({"id": block.id, "name": block.name, "arguments": block.input})
    return {**texts, "tool_calls": calls, "opaque": opaque}


def _usage(usage: Any) -> dict[str, Any] | None:
    if usage is None:
        return None
    cached = usage.cache_read_input_tokens
    given = usage.input_tokens
    if given is not None:
        given += (cached or 0) + (usage.cache_creation_input_tokens or 0)
    details = usage.output_tokens_details
    return {
        "input": given,
        "output": usage.output_tokens,
        "reasoning": details and details.thinking_tokens,
        "cached": cached,
    }
