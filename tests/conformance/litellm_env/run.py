"""litellm: `completion(stream=True)`, whose chunks `stream_chunk_builder` joins."""

from __future__ import annotations

import os
from typing import Any

# litellm reads this at import; without it, it downloads its table of prices.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm

from tests.conformance.lines import serve

litellm.telemetry = False
litellm.suppress_debug_info = True


def chat(base_url: str, job: dict[str, Any]) -> dict[str, Any]:
    """litellm with a Chat Completions server."""
    return _run("openai/gpt-4o", base_url, job)


def messages(base_url: str, job: dict[str, Any]) -> dict[str, Any]:
    """litellm with a server of the Messages API."""
    return _run("anthropic/claude-sonnet-4-5", base_url, job)


def _run(model: str, base_url: str, job: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": job["prompt"]}]
    chunks = litellm.completion(
        model=model,
        api_base=base_url,
        api_key="mock-key",
        messages=messages,
        tools=job["tools"] or None,
        stream=True,
        stream_options={"include_usage": True},
        max_retries=0,
        num_retries=0,
        timeout=60.0,
    )
    response = litellm.stream_chunk_builder(list(chunks), messages=messages)
    return {} if response is None else _result(response)


def _result(response: Any) -> dict[str, Any]:
    choice = response.choices[0]
    message = choice.message
    return {
        "text": _as_text(message.content),
        "reasoning": _as_text(getattr(message, "reasoning_content", None)),
        "refusal": _as_text(getattr(message, "refusal", None)),
        "tool_calls": [
            (call.id, call.function.name, call.function.arguments)
            for call in message.tool_calls or ()
        ],
        "finish": choice.finish_reason,
        "usage": _usage(getattr(response, "usage", None)),
    }


def _as_text(value: Any) -> str:
    return "" if value is None else str(value)


def _usage(usage: Any) -> tuple[int | None, ...] | None:
    if usage is None:
        return None
    output_details, input_details = usage.completion_tokens_details, usage.prompt_tokens_details
    return (
        usage.prompt_tokens,
        usage.completion_tokens,
        output_details.reasoning_tokens if output_details is not None else None,
        input_details.cached_tokens if input_details is not None else None,
    )


if __name__ == "__main__":
    serve("litellm", {"chat": chat, "messages": messages})
