"""cohere: `ClientV2.chat_stream()`, whose events the user joins, as its documentation does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cohere
from job import API_KEY, Job, as_text, joined

__all__ = ["chat"]


def chat(job: Job) -> dict[str, Any]:
    """The message of all events; the tool plan is text."""
    options = {"tools": job.chat_tools} if job.tools else {}

    def make() -> Any:
        return cohere.ClientV2(
            api_key=API_KEY, base_url=job.base_url, timeout=job.seconds, max_retries=job.retries
        )

    with job.using(make) as client:
        question = [{"role": "user", "content": job.prompt}]
        stream = client.chat_stream(model="command-a-03-2025", messages=question, **options)
        return _outcome(list(job.watched(stream, _text)))


def _text(event: Any) -> str:
    match event.type:
        case "content-delta":
            return as_text(event.delta.message.content.text)
        case "tool-plan-delta":
            return as_text(event.delta.message.tool_plan)
        case _:
            return ""


def _outcome(events: Iterable[Any]) -> dict[str, Any]:
    calls: list[dict[str, Any]] = []
    answer: dict[str, Any] = {"role": None, "finish": None, "usage": None, "errors": []}
    texts, thoughts = [], []
    for event in events:
        texts.append(_text(event))
        match event.type:
            case "message-start" if event.delta is not None:
                # The SDK makes one without a delta of data that is no JSON.
                answer |= {"role": event.delta.message.role, "response_id": event.id}
            case "content-delta":
                thoughts.append(event.delta.message.content.thinking)
            case "tool-call-start":
                call = event.delta.message.tool_calls
                calls.append({"id": call.id, "name": call.function.name, "arguments": ""})
            case "tool-call-delta":
                calls[-1]["arguments"] += event.delta.message.tool_calls.function.arguments
            case "message-end":
                answer |= {"finish": event.delta.finish_reason, "usage": _usage(event.delta.usage)}
                answer["errors"] = [event.delta.error] if event.delta.error else []
    return {
        **answer,
        "text": joined(texts),
        "reasoning": joined(thoughts),
        "tool_calls": [{**call, "raw_arguments": call["arguments"]} for call in calls],
    }


def _usage(usage: Any) -> dict[str, Any] | None:
    if usage is None or usage.tokens is None:
        return None
    return {
        "input": usage.tokens.input_tokens,
        "output": usage.tokens.output_tokens,
        "cached": usage.cached_tokens,
    }
