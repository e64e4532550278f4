"""litellm: `completion(stream=True)`, whose chunks `stream_chunk_builder` joins."""

from __future__ import annotations

from typing import Any

import httpx
import litellm
from job import API_KEY, Job, as_text, parsed

__all__ = ["chat", "messages"]

litellm.telemetry = False
litellm.suppress_debug_info = True


def chat(job: Job) -> dict[str, Any]:
    """litellm with a Chat Completions server."""
    return _run("openai/gpt-4o", job)


def messages(job: Job) -> dict[str, Any]:
    """litellm with a server of the Messages API."""
    answer = _run("anthropic/claude-sonnet-4-5", job)
    # It writes `{}` where no arguments were sent.
    calls = [{**call, "arguments": parsed(call["arguments"])} for call in answer["tool_calls"]]
    return {**answer, "tool_calls": calls}


def _run(model: str, job: Job) -> dict[str, Any]:
    messages = [{"role": "user", "content": job.prompt}]
    chunks = litellm.completion(
        model=model,
        api_base=job.base_url,
        api_key=API_KEY,
        messages=messages,
        tools=job.chat_tools or None,
        stream=True,
        stream_options={"include_usage": True},
        max_retries=0,
        num_retries=job.retries,
        timeout=job.timeout(httpx.Timeout),
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
