"""Haystack's chat generators with a callback for chunks; `run()` returns the whole message."""

from __future__ import annotations

import os
from typing import Any

from haystack.dataclasses import ChatMessage
from haystack.tools import Tool
from haystack.utils import Secret
from job import API_KEY, Job, as_text

__all__ = ["chat", "messages", "responses"]


def chat(job: Job) -> dict[str, Any]:
    """`OpenAIChatGenerator`, which requests usage only if it is given `stream_options`."""
    from haystack.components.generators.chat import OpenAIChatGenerator

    generator = OpenAIChatGenerator(
        model="gpt-4o",
        api_base_url=job.base_url,
        generation_kwargs={"stream_options": {"include_usage": True}},
        **_options(job),
    )
    return _run(generator, job)


def responses(job: Job) -> dict[str, Any]:
    """`OpenAIResponsesChatGenerator`."""
    from haystack.components.generators.chat import OpenAIResponsesChatGenerator

    generator = OpenAIResponsesChatGenerator(
        model="gpt-4o", api_base_url=job.base_url, **_options(job)
    )
    return _run(generator, job)


def messages(job: Job) -> dict[str, Any]:
    """`AnthropicChatGenerator`, which takes its base URL from the environment."""
    from haystack_integrations.components.generators.anthropic import AnthropicChatGenerator

    os.environ["ANTHROPIC_BASE_URL"] = job.base_url
    generator = AnthropicChatGenerator(model="claude-sonnet-4-5", **_options(job))
    return _run(generator, job)


def _options(job: Job) -> dict[str, Any]:
    return {
        "api_key": Secret.from_token(API_KEY),
        "streaming_callback": lambda chunk: None,
        "tools": list(map(_tool, job.functions)) or None,
        "timeout": job.deadline,
        "max_retries": 0,
    }


def _tool(function: dict[str, Any]) -> Tool:
    return Tool(
        name=function["name"],
        description=function["description"],
        parameters=function["parameters"],
        function=lambda **arguments: "done",
    )


def _run(generator: Any, job: Job) -> dict[str, Any]:
    (reply,) = generator.run([ChatMessage.from_user(job.prompt)])["replies"]
    return {
        "text": "".join(map(as_text, reply.texts)),
        "reasoning": reply.reasoning.reasoning_text if reply.reasoning else "",
        "tool_calls": [
            # Over the Responses API `id` is that of the item, and the id of the call is beside it.
            {
                "id": (call.extra or {}).get("call_id", call.id),
                "name": call.tool_name,
                "arguments": call.arguments,
            }
            for call in reply.tool_calls
        ],
        "finish": reply.meta.get("finish_reason"),
        "usage": _usage(reply.meta.get("usage")),
    }


def _usage(usage: Any) -> dict[str, Any] | None:
    if not usage:
        return None
    given = usage.get("prompt_tokens", usage.get("input_tokens"))
    output = usage.get("completion_tokens", usage.get("output_tokens"))
    return {"input": given, "output": output}
