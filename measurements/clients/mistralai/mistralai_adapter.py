"""mistralai: `chat.stream()`, whose chunks the user joins, as its documentation does."""

from __future__ import annotations

from typing import Any

from job import API_KEY, Job, joined
from mistralai.client import Mistral

__all__ = ["chat"]


def chat(job: Job) -> dict[str, Any]:
    """The text and the calls of the first choice of all chunks."""
    with Mistral(
        api_key=API_KEY,
        server_url=job.base_url.removesuffix("/v1"),
        timeout_ms=int(job.deadline * 1000),
        retry_config=None,
    ) as client:
        options = {"tools": job.chat_tools} if job.tools else {}
        question = [{"role": "user", "content": job.prompt}]
        with client.chat.stream(model=job.model, messages=question, **options) as events:
            chunks = [event.data for event in events]
    choices = [choice for chunk in chunks for choice in chunk.choices[:1]]
    usages = [chunk.usage for chunk in chunks if chunk.usage]
    finishes = [choice.finish_reason for choice in choices if choice.finish_reason]
    return {
        "text": joined(_text(choice.delta.content) for choice in choices),
        "tool_calls": [
            {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
            for choice in choices
            for call in choice.delta.tool_calls or ()
        ],
        "finish": finishes[-1] if finishes else None,
        "usage": {"input": usages[-1].prompt_tokens, "output": usages[-1].completion_tokens}
        if usages
        else None,
    }


def _text(content: Any) -> str:
    """The content of a delta: text, chunks, or a value of the SDK for one that is not sent."""
    if isinstance(content, list):
        return joined(part.text for part in content if part.type == "text")
    return content if isinstance(content, str) else ""
