"""Semantic Kernel: `get_streaming_chat_message_contents()`, whose chunks are summed with `+`."""

from __future__ import annotations

import asyncio
from functools import reduce
from operator import add
from typing import Any

import openai
from job import API_KEY, Job, as_text
from semantic_kernel.connectors.ai.open_ai import (
    OpenAIChatCompletion,
    OpenAIChatPromptExecutionSettings,
)
from semantic_kernel.contents import ChatHistory, FunctionCallContent

__all__ = ["chat"]


def chat(job: Job) -> dict[str, Any]:
    """`OpenAIChatCompletion`, which requests usage by itself."""
    return asyncio.run(_run(job))


async def _run(job: Job) -> dict[str, Any]:
    async with openai.AsyncOpenAI(
        base_url=job.base_url, api_key=API_KEY, max_retries=0, timeout=job.deadline
    ) as client:
        service = OpenAIChatCompletion(ai_model_id="gpt-4o", async_client=client)
        history = ChatHistory()
        history.add_user_message(job.prompt)
        options = {"tools": job.chat_tools} if job.tools else {}
        settings = OpenAIChatPromptExecutionSettings(**options)
        chunks = [
            chunk
            async for choices in service.get_streaming_chat_message_contents(history, settings)
            for chunk in choices
            if chunk.choice_index == 0
        ]
    if not chunks:
        return {"text": "", "tool_calls": [], "finish": None, "usage": None}
    message = reduce(add, chunks)
    usages = [one for chunk in chunks if (one := chunk.metadata.get("usage")) is not None]
    return {
        "text": as_text(message.content),
        "tool_calls": [
            {"id": item.id, "name": item.name, "arguments": item.arguments}
            for item in message.items
            if isinstance(item, FunctionCallContent)
        ],
        "finish": message.finish_reason and message.finish_reason.value,
        "usage": _usage(usages[-1]) if usages else None,
    }


def _usage(usage: Any) -> dict[str, Any] | None:
    """The usage; it has zeros if none was sent."""
    if not usage.prompt_tokens and not usage.completion_tokens:
        return None
    return {"input": usage.prompt_tokens, "output": usage.completion_tokens}
