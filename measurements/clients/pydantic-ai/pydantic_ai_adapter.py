"""pydantic-ai: `direct.model_request_stream()`, so that no tool is executed."""

from __future__ import annotations

from typing import Any

import anthropic
import boto3
import openai
from botocore.config import Config
from job import API_KEY, Job, as_text, joined
from pydantic_ai import ModelRequest, TextPart, ThinkingPart, ToolCallPart, ToolDefinition
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.bedrock import BedrockConverseModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.bedrock import BedrockProvider
from pydantic_ai.providers.openai import OpenAIProvider

__all__ = ["chat", "converse", "messages", "responses"]


def chat(job: Job) -> dict[str, Any]:
    """`OpenAIChatModel`."""

    def model(client: Any) -> Any:
        return OpenAIChatModel("gpt-4o", provider=OpenAIProvider(openai_client=client))

    return job.wait(_run(model, lambda: openai.AsyncOpenAI(**_options(job, openai.Timeout)), job))


def responses(job: Job) -> dict[str, Any]:
    """`OpenAIResponsesModel`."""

    def model(client: Any) -> Any:
        return OpenAIResponsesModel("gpt-4o", provider=OpenAIProvider(openai_client=client))

    return job.wait(_run(model, lambda: openai.AsyncOpenAI(**_options(job, openai.Timeout)), job))


def messages(job: Job) -> dict[str, Any]:
    """`AnthropicModel`."""

    def model(client: Any) -> Any:
        provider = AnthropicProvider(anthropic_client=client)
        return AnthropicModel("claude-sonnet-4-5", provider=provider)

    return job.wait(
        _run(model, lambda: anthropic.AsyncAnthropic(**_options(job, anthropic.Timeout)), job)
    )


def converse(job: Job) -> dict[str, Any]:
    """`BedrockConverseModel`, whose client is boto3's."""

    def model(client: Any) -> Any:
        name = "anthropic.claude-sonnet-4-5-20250929-v1:0"
        return BedrockConverseModel(name, provider=BedrockProvider(bedrock_client=client))

    async def run() -> dict[str, Any]:
        with job.using(make) as client:
            return await _ask(model(client), job)

    def make() -> Any:
        return boto3.client(
            "bedrock-runtime",
            endpoint_url=job.base_url,
            region_name="us-east-1",
            aws_access_key_id=API_KEY,
            aws_secret_access_key=API_KEY,
            config=Config(
                connect_timeout=job.deadline,
                read_timeout=job.seconds,
                retries={"total_max_attempts": job.tries, "mode": "standard"},
            ),
        )

    return job.wait(run())


def _options(job: Job, kind: Any) -> dict[str, Any]:
    return {
        "base_url": job.base_url,
        "api_key": API_KEY,
        "max_retries": job.retries,
        "timeout": job.timeout(kind),
    }


async def _run(of_client: Any, make: Any, job: Job) -> dict[str, Any]:
    async with job.ausing(make) as client:
        return await _ask(of_client(client), job)


async def _ask(model: Any, job: Job) -> dict[str, Any]:
    tools = [
        ToolDefinition(
            name=function["name"],
            description=function["description"],
            parameters_json_schema=function["parameters"],
        )
        for function in job.functions
    ]
    async with job.aentered(
        model_request_stream(
            model,
            [ModelRequest.user_text_prompt(job.prompt)],
            model_request_parameters=ModelRequestParameters(function_tools=tools),
        )
    ) as stream:
        async for _ in job.awatched(stream, _text, stream.cancel):
            pass
        return _outcome(stream.get())


def _text(event: Any) -> Any:
    """The text that an event adds."""
    part = getattr(event, "delta", None) or getattr(event, "part", None)
    if event.event_kind not in ("part_start", "part_delta"):
        return ""
    if isinstance(part, TextPart):
        return part.content
    return part.content_delta if getattr(part, "part_delta_kind", "") == "text" else ""


def _outcome(response: Any) -> dict[str, Any]:
    parts = response.parts
    thinking = [part for part in parts if isinstance(part, ThinkingPart)]
    return {
        "text": joined(part.content for part in parts if isinstance(part, TextPart)),
        "reasoning": joined(map(_thoughts, thinking)),
        "tool_calls": [
            {"id": part.tool_call_id, "name": part.tool_name, "arguments": part.args}
            for part in parts
            if isinstance(part, ToolCallPart)
        ],
        "finish": _finish(response),
        "usage": _usage(response.usage),
        "opaque": [part.signature for part in thinking if part.signature],
        "response_id": response.provider_response_id,
    }


def _finish(response: Any) -> str | None:
    """Its own reason, or that of the service where it has none for it, or `error` alone."""
    own = {"tool_call": "tool_calls", "error": None}.get(
        response.finish_reason, response.finish_reason
    )
    return own or (response.provider_details or {}).get("finish_reason")


def _thoughts(part: Any) -> str:
    """The summary in `content`, or the raw reasoning in the provider's details."""
    details = part.provider_details or {}
    return as_text(part.content) or joined(details.get("raw_content", ()))


def _usage(usage: Any) -> dict[str, Any] | None:
    """The usage, or None if none was sent."""
    if not usage.has_values():
        return None
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "reasoning": usage.details.get("reasoning_tokens", usage.details.get("thinking_tokens")),
        "cached": usage.cache_read_tokens,
    }
