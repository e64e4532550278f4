"""litellm: `completion(stream=True)`, whose chunks `stream_chunk_builder` joins."""

from __future__ import annotations

from typing import Any

import httpx
import litellm
from job import API_KEY, Job, as_text, joined, parsed

__all__ = ["chat", "completions", "converse", "messages", "ollama"]

litellm.telemetry = False
litellm.suppress_debug_info = True


def chat(job: Job) -> dict[str, Any]:
    """litellm with a Chat Completions server."""
    return _run("openai/gpt-4o", job, api_key=API_KEY)


def messages(job: Job) -> dict[str, Any]:
    """litellm with a server of the Messages API."""
    return _with_values(_run("anthropic/claude-sonnet-4-5", job, api_key=API_KEY))


def converse(job: Job) -> dict[str, Any]:
    """litellm with Amazon Bedrock's Converse."""
    answer = _run(
        "bedrock/converse/anthropic.claude-sonnet-4-5-20250929-v1:0",
        job,
        aws_access_key_id=API_KEY,
        aws_secret_access_key=API_KEY,
        aws_region_name="us-east-1",
    )
    return _with_values(_with_sent_counts(answer))


def ollama(job: Job) -> dict[str, Any]:
    """litellm with Ollama, whose arguments are no text."""
    return _with_values(_with_sent_counts(_run("ollama_chat/qwen3:8b", job)))


def completions(job: Job) -> dict[str, Any]:
    """litellm's `text_completion()`, whose chunks the user joins."""
    chunks = litellm.text_completion(
        model="text-completion-openai/gpt-3.5-turbo-instruct",
        api_base=job.base_url,
        api_key=API_KEY,
        prompt=job.prompt,
        stream=True,
        stream_options={"include_usage": True},
        max_retries=0,
        num_retries=job.retries,
        timeout=job.timeout(httpx.Timeout),
    )
    received = list(job.watched(chunks, lambda chunk: joined(c.text for c in _first(chunk))))
    choices = [choice for chunk in received for choice in _first(chunk)]
    usages = [chunk.usage for chunk in received if getattr(chunk, "usage", None)]
    reasons = [choice.finish_reason for choice in choices if choice.finish_reason]
    return {
        "text": joined(choice.text for choice in choices),
        "finish": reasons[-1] if reasons else None,
        "usage": _usage(usages[-1]) if usages else None,
    }


def _first(chunk: Any) -> list[Any]:
    return [choice for choice in chunk.choices if choice.index == 0]


def _with_sent_counts(answer: dict[str, Any]) -> dict[str, Any]:
    """The outcome without tokens of reasoning, which these services do not count: litellm does."""
    usage = answer["usage"]
    return {**answer, "usage": usage and {**usage, "reasoning": None}}


def _with_values(answer: dict[str, Any]) -> dict[str, Any]:
    """The outcome, with arguments as values: litellm writes `{}` where none were sent."""
    calls = [{**call, "arguments": parsed(call["arguments"])} for call in answer["tool_calls"]]
    return {**answer, "tool_calls": calls}


def _run(model: str, job: Job, **credentials: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": job.prompt}]
    chunks = litellm.completion(
        model=model,
        api_base=job.base_url,
        messages=messages,
        tools=job.chat_tools or None,
        stream=True,
        stream_options={"include_usage": True},
        max_retries=0,
        num_retries=job.retries,
        timeout=job.timeout(httpx.Timeout),
        **credentials,
    )
    received = list(job.watched(chunks, _text))
    response = litellm.stream_chunk_builder(received, messages=messages)
    if response is None:
        return {"text": "", "tool_calls": [], "finish": None, "usage": None}
    return _outcome(response)


def _text(chunk: Any) -> Any:
    return chunk.choices[0].delta.content if chunk.choices else ""


def _outcome(response: Any) -> dict[str, Any]:
    choice = response.choices[0]
    message = choice.message
    answer = {
        "text": as_text(message.content),
        "reasoning": as_text(getattr(message, "reasoning_content", None)),
        "refusal": as_text(getattr(message, "refusal", None)),
        "role": message.role,
        "tool_calls": [
            {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
            for call in message.tool_calls or ()
        ],
        "finish": choice.finish_reason,
        "usage": _usage(getattr(response, "usage", None)),
    }
    thinking = getattr(message, "thinking_blocks", None)
    if thinking:
        values = [block.get("signature") or block.get("data") for block in thinking]
        answer["opaque"] = [value for value in values if value]
    return answer


def _usage(usage: Any) -> dict[str, Any] | None:
    if usage is None:
        return None
    output_details, input_details = usage.completion_tokens_details, usage.prompt_tokens_details
    return {
        "input": usage.prompt_tokens,
        "output": usage.completion_tokens,
        "reasoning": output_details.reasoning_tokens if output_details is not None else None,
        "cached": input_details.cached_tokens if input_details is not None else None,
    }
