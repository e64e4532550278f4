"""google-genai: `generate_content_stream()`, whose chunks the user joins."""

from __future__ import annotations

import base64
from typing import Any

from google import genai
from google.genai import types
from job import API_KEY, Job, joined

__all__ = ["contents"]

_MODEL = "gemini-2.5-flash"


def contents(job: Job) -> dict[str, Any]:
    """The chunks' `text`, `function_calls` and thoughts, the last finish or block reason, and the
    last usage."""
    options = types.HttpOptions(
        base_url=job.base_url,
        timeout=int(job.seconds * 1000),
        retry_options=types.HttpRetryOptions(attempts=job.tries),
    )
    config = {"config": {"tools": [_tool(job)]}} if job.tools else {}
    with job.using(
        lambda: genai.Client(api_key=API_KEY, http_options=options, vertexai=False)
    ) as client:
        stream = client.models.generate_content_stream(model=_MODEL, contents=job.prompt, **config)
        chunks = list(job.watched(stream, lambda chunk: chunk.text))
    finish, usage = None, None
    calls: list[dict[str, Any]] = []
    for chunk in chunks:
        calls += [
            {"id": call.id, "name": call.name, "arguments": call.args}
            for call in chunk.function_calls or ()
        ]
        usage = chunk.usage_metadata or usage
        for candidate in (chunk.candidates or ())[:1]:
            finish = candidate.finish_reason or finish
        if chunk.prompt_feedback is not None:
            finish = finish or chunk.prompt_feedback.block_reason
    parts = [part for chunk in chunks for part in chunk.parts or ()]
    return {
        "text": joined(chunk.text for chunk in chunks),
        "reasoning": joined(part.text for part in parts if part.thought),
        "tool_calls": calls,
        "finish": finish and finish.value,
        "usage": _usage(usage),
        "opaque": [
            base64.b64encode(part.thought_signature).decode()
            for part in parts
            if part.thought_signature
        ],
    }


def _tool(job: Job) -> types.Tool:
    return types.Tool(
        function_declarations=[
            types.FunctionDeclaration(
                name=function["name"],
                description=function["description"],
                parameters_json_schema=function["parameters"],
            )
            for function in job.functions
        ]
    )


def _usage(usage: Any) -> dict[str, Any] | None:
    """The usage; the API leaves out counts of zero."""
    if usage is None:
        return None
    thoughts = usage.thoughts_token_count or 0
    return {
        "input": usage.prompt_token_count,
        "output": (usage.candidates_token_count or 0) + thoughts,
        "reasoning": thoughts,
        "cached": usage.cached_content_token_count or 0,
    }
