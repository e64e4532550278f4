"""google-genai: `generate_content_stream()`, whose chunks the user joins."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from google import genai
from google.genai import types

from mockllm.checking.cases.case import Case
from mockllm.checking.outcome import Outcome, Usage
from tests.conformance.client import API_KEY, TIMEOUT
from tests.conformance.request_body import as_text, schemas

__all__ = ["contents"]

MODEL = "gemini-2.5-flash"


def contents(base_url: str, case: Case) -> Outcome:
    """The chunks' `text`, `function_calls` and thoughts, the last finish or block reason, and the
    last usage."""
    options = types.HttpOptions(
        base_url=base_url,
        timeout=int(TIMEOUT * 1000),
        retry_options=types.HttpRetryOptions(attempts=1),
    )
    config = {"config": {"tools": [_tool(case)]}} if case.tools else {}
    with closing(genai.Client(api_key=API_KEY, http_options=options, vertexai=False)) as client:
        chunks = list(
            client.models.generate_content_stream(model=MODEL, contents=case.prompt, **config)
        )
    finish, usage = None, None
    calls = []
    for chunk in chunks:
        calls += [(call.id, call.name, call.args) for call in chunk.function_calls or ()]
        usage = chunk.usage_metadata or usage
        for candidate in (chunk.candidates or ())[:1]:
            finish = candidate.finish_reason or finish
        if chunk.prompt_feedback is not None:
            finish = finish or chunk.prompt_feedback.block_reason
    return Outcome.of(
        "".join(as_text(chunk.text) for chunk in chunks),
        reasoning="".join(map(_thoughts, chunks)),
        tool_calls=calls,
        finish=finish and finish.value,
        usage=_usage(usage),
    )


def _tool(case: Case) -> types.Tool:
    functions = [tool["function"] for tool in schemas(case)]
    return types.Tool(
        function_declarations=[
            types.FunctionDeclaration(
                name=function["name"],
                description=function["description"],
                parameters_json_schema=function["parameters"],
            )
            for function in functions
        ]
    )


def _thoughts(chunk: Any) -> str:
    return "".join(as_text(part.text) for part in chunk.parts or () if part.thought)


def _usage(usage: Any) -> Usage | None:
    """The usage; the API leaves out counts of zero."""
    if usage is None:
        return None
    thoughts = usage.thoughts_token_count or 0
    output = (usage.candidates_token_count or 0) + thoughts
    cached = usage.cached_content_token_count or 0
    return Usage(usage.prompt_token_count, output, thoughts, cached)
