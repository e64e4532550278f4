"""litellm: `completion(stream=True)`, whose chunks `stream_chunk_builder` puts together."""

from __future__ import annotations

import os
from typing import Any

# Read when litellm is imported, which would otherwise fetch its table of prices.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm

from tests.conformance.lines import serve

litellm.telemetry = False
litellm.suppress_debug_info = True


def chat(base_url: str, question: dict[str, Any]) -> dict[str, Any]:
    """A server that speaks OpenAI's chat protocol."""
    return _ask("openai/gpt-4o", base_url, question)


def messages(base_url: str, question: dict[str, Any]) -> dict[str, Any]:
    """A server that speaks Anthropic's."""
    return _ask("anthropic/claude-sonnet-4-5", base_url, question)


def _ask(model: str, base_url: str, question: dict[str, Any]) -> dict[str, Any]:
    asked = [{"role": "user", "content": question["prompt"]}]
    chunks = litellm.completion(
        model=model,
        api_base=base_url,
        api_key="mock-key",
        messages=asked,
        tools=question["tools"] or None,
        stream=True,
        stream_options={"include_usage": True},
        max_retries=0,
        num_retries=0,
        timeout=5.0,
    )
    response = litellm.stream_chunk_builder(list(chunks), messages=asked)
    return {} if response is None else _said(response)


def _said(response: Any) -> dict[str, Any]:
    choice = response.choices[0]
    message = choice.message
    return {
        "text": _shown(message.content),
        "reasoning": _shown(getattr(message, "reasoning_content", None)),
        "refusal": _shown(getattr(message, "refusal", None)),
        "tool_calls": [
            (call.id, call.function.name, call.function.arguments)
            for call in message.tool_calls or ()
        ],
        "finish": choice.finish_reason,
        "usage": _usage(getattr(response, "usage", None)),
    }


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


def _usage(usage: Any) -> tuple[int | None, ...] | None:
    if usage is None:
        return None
    made, given = usage.completion_tokens_details, usage.prompt_tokens_details
    return (
        usage.prompt_tokens,
        usage.completion_tokens,
        made.reasoning_tokens if made is not None else None,
        given.cached_tokens if given is not None else None,
    )


if __name__ == "__main__":
    serve("litellm", {"chat": chat, "messages": messages})
