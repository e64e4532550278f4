"""Google's Agent Development Kit: `generate_content_async(stream=True)` of its model `Gemini`."""

from __future__ import annotations

import asyncio
import base64
import os
from typing import Any

from google.adk.models import Gemini, LlmRequest
from google.genai import types
from job import API_KEY, Job, joined

__all__ = ["contents"]


def contents(job: Job) -> dict[str, Any]:
    """The responses that are not partial."""
    os.environ["GOOGLE_API_KEY"] = API_KEY
    return asyncio.run(_run(job))


async def _run(job: Job) -> dict[str, Any]:
    model = Gemini(model="gemini-2.5-flash", base_url=job.base_url)
    config = types.GenerateContentConfig(
        tools=[_tools(job)] if job.tools else None,
        http_options=types.HttpOptions(timeout=int(job.deadline * 1000)),
    )
    question = types.Content(role="user", parts=[types.Part(text=job.prompt)])
    request = LlmRequest(model="gemini-2.5-flash", contents=[question], config=config)
    found = [one async for one in model.generate_content_async(request, stream=True)]
    return _outcome([one for one in found if not one.partial])


def _tools(job: Job) -> types.Tool:
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


def _outcome(responses: list[Any]) -> dict[str, Any]:
    parts = [
        part for response in responses if response.content for part in response.content.parts or ()
    ]
    # Its `error_code` is the finish reason again, unless that is STOP, or the reason of a block.
    finishes = [
        response.finish_reason.value if response.finish_reason else response.error_code
        for response in responses
    ]
    usages = [response.usage_metadata for response in responses if response.usage_metadata]
    return {
        "text": joined(part.text for part in parts if not part.thought),
        "reasoning": joined(part.text for part in parts if part.thought),
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": call.args}
            for part in parts
            if (call := part.function_call)
        ],
        "finish": next((finishe for finishe in reversed(finishes) if finishe), None),
        "usage": _usage(usages[-1]) if usages else None,
        "opaque": [
            base64.b64encode(part.thought_signature).decode()
            for part in parts
            if part.thought_signature
        ],
    }


def _usage(usage: Any) -> dict[str, Any]:
    """The usage; the API leaves out counts of zero."""
    thoughts = usage.thoughts_token_count or 0
    return {
        "input": usage.prompt_token_count,
        "output": (usage.candidates_token_count or 0) + thoughts,
        "reasoning": thoughts,
        "cached": usage.cached_content_token_count or 0,
    }
