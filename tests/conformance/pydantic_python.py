"""pydantic-ai: `direct.model_request_stream()`, so that no tool is executed."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import openai
from pydantic_ai import ModelRequest, TextPart, ThinkingPart, ToolCallPart, ToolDefinition
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import Outcome, Trouble, Usage
from tests.conformance.client import API_KEY, TIMEOUT

__all__ = ["chat", "messages", "responses"]

_OPTIONS: dict[str, Any] = {"api_key": API_KEY, "max_retries": 0, "timeout": TIMEOUT}


def chat(base_url: str, case: Case) -> Outcome:
    """`OpenAIChatModel`."""
    client = openai.AsyncOpenAI(base_url=base_url, **_OPTIONS)
    model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(openai_client=client))
    return asyncio.run(_run(model, client, case))


def responses(base_url: str, case: Case) -> Outcome:
    """`OpenAIResponsesModel`."""
    client = openai.AsyncOpenAI(base_url=base_url, **_OPTIONS)
    model = OpenAIResponsesModel("gpt-4o", provider=OpenAIProvider(openai_client=client))
    return asyncio.run(_run(model, client, case))


def messages(base_url: str, case: Case) -> Outcome:
    """`AnthropicModel`."""
    client = anthropic.AsyncAnthropic(base_url=base_url, **_OPTIONS)
    provider = AnthropicProvider(anthropic_client=client)
    return asyncio.run(_run(AnthropicModel("claude-sonnet-4-5", provider=provider), client, case))


async def _run(model: Any, client: Any, case: Case) -> Outcome:
    tools = [
        ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=dict(tool.parameters or {"type": "object", "properties": {}}),
        )
        for tool in case.tools
    ]
    async with (
        client,
        model_request_stream(
            model,
            [ModelRequest.user_text_prompt(case.prompt)],
            model_request_parameters=ModelRequestParameters(function_tools=tools),
        ) as stream,
    ):
        async for _ in stream:
            pass
        return _outcome(stream.get())


def _outcome(response: Any) -> Outcome:
    parts = response.parts
    errors = []
    if response.state != "complete":
        errors.append(Trouble(f"the response's state is {response.state!r}", "truncated"))
    return Outcome.of(
        "".join(part.content for part in parts if isinstance(part, TextPart)),
        reasoning="".join(_thoughts(part) for part in parts if isinstance(part, ThinkingPart)),
        tool_calls=[
            (part.tool_call_id, part.tool_name, part.args)
            for part in parts
            if isinstance(part, ToolCallPart)
        ],
        finish=_FINISH.get(response.finish_reason, response.finish_reason),
        usage=_usage(response.usage),
        errors=errors,
    )


_FINISH = {"tool_call": "tool_calls"}
"""Finish reasons of pydantic-ai that differ from those of the kit."""


def _thoughts(part: Any) -> str:
    """The summary in `content`, or the raw reasoning in the provider's details."""
    details = part.provider_details or {}
    thoughts: str = part.content or "".join(details.get("raw_content", ()))
    return thoughts


def _usage(usage: Any) -> Usage | None:
    """The usage, or None if none was sent."""
    if not usage.has_values():
        return None
    reasoning = usage.details.get("reasoning_tokens", usage.details.get("thinking_tokens"))
    return Usage(usage.input_tokens, usage.output_tokens, reasoning, usage.cache_read_tokens)
