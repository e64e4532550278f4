"""autogen: `create_stream()`, whose last item is a `CreateResult`."""

from __future__ import annotations

import asyncio
from typing import Any

from autogen_core.models import CreateResult, ModelFamily, ModelInfo, UserMessage
from job import API_KEY, Job, as_text, parsed

__all__ = ["chat", "messages"]

_INFO = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=False,
    family=ModelFamily.UNKNOWN,
    structured_output=False,
)


def chat(job: Job) -> dict[str, Any]:
    """`OpenAIChatCompletionClient`."""
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    return asyncio.run(_run(OpenAIChatCompletionClient, job, include_usage=True))


def messages(job: Job) -> dict[str, Any]:
    """`AnthropicChatCompletionClient`."""
    from autogen_ext.models.anthropic import AnthropicChatCompletionClient

    answer = asyncio.run(_run(AnthropicChatCompletionClient, job))
    # It serializes the arguments anew.
    calls = [{**call, "arguments": parsed(call["arguments"])} for call in answer["tool_calls"]]
    return {**answer, "tool_calls": calls}


async def _run(kind: Any, job: Job, **options: Any) -> dict[str, Any]:
    client = kind(
        model=job.model,
        base_url=job.base_url,
        api_key=API_KEY,
        max_retries=0,
        timeout=job.deadline,
        model_info=_INFO,
    )
    stream = client.create_stream(
        [UserMessage(content=job.prompt, source="user")], tools=job.functions, **options
    )
    try:
        items = [item async for item in stream]
    finally:
        await client.close()
    results = [item for item in items if isinstance(item, CreateResult)]
    return _outcome(results[-1])


def _outcome(result: CreateResult) -> dict[str, Any]:
    answer = {
        "finish": _FINISH.get(result.finish_reason, result.finish_reason),
        # It has zeros if none was sent.
        "usage": {"input": result.usage.prompt_tokens, "output": result.usage.completion_tokens}
        if result.usage.prompt_tokens or result.usage.completion_tokens
        else None,
    }
    if isinstance(result.content, str):
        thought = as_text(result.thought)
        return {**answer, "text": result.content, "reasoning": thought, "tool_calls": []}
    # Beside calls, its `thought` is the text or the reasoning: which of them cannot be known.
    calls = [
        {"id": call.id, "name": call.name, "arguments": call.arguments} for call in result.content
    ]
    return {**answer, "tool_calls": calls}


_FINISH = {"function_calls": "tool_calls"}
"""Finish reasons of autogen that differ from those of mockllm."""
