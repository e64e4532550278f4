"""LangChain's chat models: `stream()`, whose chunks are summed with `+`.

Several integrations are in environments of their own; each function imports what it needs.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from typing import Any

from job import API_KEY, Job, as_text

__all__ = [
    "chat",
    "cohere",
    "completions",
    "contents",
    "converse",
    "messages",
    "ollama",
    "responses",
]


def chat(job: Job) -> dict[str, Any]:
    """`ChatOpenAI` with `stream_usage`, which it sets by itself for OpenAI's own URL only."""
    from langchain_openai import ChatOpenAI

    return _run(
        lambda: ChatOpenAI(
            model="gpt-4o", base_url=job.base_url, stream_usage=True, **_options(job)
        ),
        job,
    )


def responses(job: Job) -> dict[str, Any]:
    """`ChatOpenAI` over the Responses API."""
    from langchain_openai import ChatOpenAI

    return _run(
        lambda: ChatOpenAI(
            model="gpt-4o", base_url=job.base_url, use_responses_api=True, **_options(job)
        ),
        job,
    )


def messages(job: Job) -> dict[str, Any]:
    """`ChatAnthropic`."""
    from langchain_anthropic import ChatAnthropic

    return _run(
        lambda: ChatAnthropic(
            model="claude-sonnet-4-5", base_url=job.base_url, max_tokens=1024, **_options(job)
        ),
        job,
    )


def contents(job: Job) -> dict[str, Any]:
    """`ChatGoogleGenerativeAI`."""
    from langchain_google_genai import ChatGoogleGenerativeAI

    options = {
        **_options(job),
        "max_retries": job.tries,
        "timeout": job.seconds,
    }  # the number of attempts, not of retries
    return _run(
        lambda: ChatGoogleGenerativeAI(model="gemini-2.5-flash", base_url=job.base_url, **options),
        job,
    )


def converse(job: Job) -> dict[str, Any]:
    """`ChatBedrockConverse`."""
    from botocore.config import Config
    from langchain_aws import ChatBedrockConverse

    config = Config(
        connect_timeout=job.deadline,
        read_timeout=job.seconds,
        retries={"total_max_attempts": job.tries, "mode": "standard"},
    )
    return _run(
        lambda: ChatBedrockConverse(
            model="anthropic.claude-sonnet-4-5-20250929-v1:0",
            endpoint_url=job.base_url,
            region_name="us-east-1",
            aws_access_key_id=API_KEY,
            aws_secret_access_key=API_KEY,
            config=config,
        ),
        job,
    )


def ollama(job: Job) -> dict[str, Any]:
    """`ChatOllama`, with reasoning apart from the text."""
    import httpx
    from langchain_ollama import ChatOllama

    options = {"timeout": job.timeout(httpx.Timeout)}
    return _run(
        lambda: ChatOllama(
            model="qwen3:8b", base_url=job.base_url, reasoning=True, client_kwargs=options
        ),
        job,
    )


def cohere(job: Job) -> dict[str, Any]:
    """`ChatCohere`, which takes a tool as a schema with a title, not in the form of OpenAI."""
    from langchain_cohere import ChatCohere

    return _run(
        lambda: ChatCohere(
            model="command-a-03-2025",
            base_url=job.base_url,
            cohere_api_key=API_KEY,
            timeout_seconds=job.seconds,
        ),
        job,
        [
            {
                "title": function["name"],
                "description": function["description"],
                "properties": function["parameters"].get("properties", {}),
            }
            for function in job.functions
        ],
    )


def completions(job: Job) -> dict[str, Any]:
    """`OpenAI`, whose `stream()` has text alone."""
    from langchain_openai import OpenAI

    model = job.kept(
        lambda: OpenAI(model="gpt-3.5-turbo-instruct", base_url=job.base_url, **_options(job))
    )
    return {"text": "".join(job.watched(model.stream(job.prompt), str))}


def _options(job: Job) -> dict[str, Any]:
    return {"api_key": API_KEY, "max_retries": job.retries, "timeout": job.seconds}


def _run(
    make: Callable[[], Any], job: Job, tools: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    model = job.kept(make)
    bound = model.bind_tools(tools or job.chat_tools) if job.tools else model
    message = None
    for chunk in job.watched(bound.stream(job.prompt), lambda one: one.text):
        message = chunk if message is None else message + chunk
    return _outcome(message)


def _outcome(message: Any) -> dict[str, Any]:
    """The message; each of LangChain's `invalid_tool_calls` is an error."""
    if message is None:
        return {"text": "", "tool_calls": [], "finish": None, "usage": None}
    blocks = message.content_blocks
    answer = {
        "text": as_text(message.text),
        "reasoning": _joined(blocks, "reasoning", "reasoning") or _summaries(message.content),
        "refusal": _refusal(message),
        "tool_calls": [
            {"id": call["id"], "name": call["name"], "arguments": call["args"]}
            for call in message.tool_calls
        ],
        "finish": _finish(message.response_metadata),
        "usage": _usage(message.usage_metadata or message.response_metadata.get("token_count")),
        "errors": [
            f"invalid tool call {call['name']} ({call['id']}): {call['error'] or call['args']}"
            for call in message.invalid_tool_calls
        ],
    }
    signed = message.additional_kwargs.get("__gemini_function_call_thought_signatures__", {})
    if isinstance(message.content, list) or signed:
        answer["opaque"] = [*_opaque(_dicts(message.content)), *signed.values()]
    return answer


def _dicts(content: Any) -> list[dict[str, Any]]:
    blocks = content if isinstance(content, list) else ()
    return [block for block in blocks if isinstance(block, dict)]


def _joined(blocks: Iterable[Any], type: str, field: str) -> str:
    return "".join(block.get(field) or "" for block in blocks if block["type"] == type)


def _summaries(content: Any) -> str:
    """The reasoning of `ChatCohere`, which content blocks do not have."""
    blocks = [block for block in _dicts(content) if block["type"] == "reasoning"]
    return "".join(part["text"] for block in blocks for part in block.get("summary", ()))


def _refusal(message: Any) -> str:
    typed = _dicts(message.content)
    return message.additional_kwargs.get("refusal") or _joined(typed, "refusal", "refusal")


def _opaque(blocks: Iterable[dict[str, Any]]) -> list[str]:
    """What has to be sent back: signatures, redacted and encrypted reasoning."""
    keys = {"thinking": "signature", "redacted_thinking": "data", "reasoning": "encrypted_content"}
    values = [block.get(keys.get(block.get("type", ""), "")) for block in blocks]
    values += [block.get("extras", {}).get("signature") for block in blocks]
    values += [block.get("reasoning_content", {}).get("signature") for block in blocks]
    return [
        base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for value in values
        if value
    ]


def _finish(metadata: dict[str, Any]) -> str | None:
    """The finish reason, whose key differs in each integration."""
    why = metadata.get("incomplete_details") or {}
    blocked = (metadata.get("prompt_feedback") or {}).get("block_reason")
    return (
        metadata.get("finish_reason")
        or metadata.get("stop_reason")
        or metadata.get("stopReason")
        or metadata.get("done_reason")
        or why.get("reason")
        or metadata.get("status")
        or getattr(blocked, "value", blocked)
    )


def _usage(usage: Any) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "input": usage["input_tokens"],
        "output": usage["output_tokens"],
        "reasoning": usage.get("output_token_details", {}).get("reasoning"),
        "cached": usage.get("input_token_details", {}).get("cache_read"),
    }
