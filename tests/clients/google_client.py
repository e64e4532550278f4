"""The ways to send a request with the official `google-genai` client, sync and async.

Each returns an `Answer`. `body` is `generate_content`; `stream` is `generate_content_stream`,
accumulated by hand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from google import genai
from google.genai import types

from tests.clients.dialects import Json
from tests.clients.oracle import Answer, Seen


def of_responses(responses: Sequence[types.GenerateContentResponse]) -> Answer:
    """Accumulates the responses of a stream; a body is one response."""
    texts: dict[str, str] = defaultdict(str)
    calls = []
    cites: list[tuple[str, str]] = []
    finishes: list[str] = []
    parts: list[types.Part] = []
    tokens: list[str] = []
    for response in responses:
        for candidate in (response.candidates or ())[:1]:
            parts += (candidate.content and candidate.content.parts) or ()
            cites += _cites(candidate)
            logprobs = candidate.logprobs_result
            tokens += [one.token or "" for one in (logprobs and logprobs.chosen_candidates) or ()]
            if candidate.finish_reason is not None:
                finishes.append(candidate.finish_reason.value)
    for part in parts:
        texts["reasoning" if part.thought else "text"] += part.text or ""
        call = part.function_call
        if call is not None:
            calls.append((call.id or "", call.name or "", call.args or {}))
    (finish,) = finishes
    (id,) = {response.response_id for response in responses}
    seen = Seen(
        text=texts["text"],
        reasoning=texts["reasoning"],
        calls=tuple(calls),
        finish=finish,
        usage=_usage(responses[-1].usage_metadata),
        cites=tuple(cites),
        tokens="".join(tokens),
    )
    kept_parts = [part for part in parts if part.text != "" or part.thought_signature]
    return Answer(seen, [types.Content(role="model", parts=kept_parts)], id or "")


def _cites(candidate: types.Candidate) -> list[tuple[str, str]]:
    metadata = candidate.grounding_metadata
    chunks = (metadata and metadata.grounding_chunks) or ()
    webs = [chunk.web for chunk in chunks if chunk.web is not None]
    return [(web.uri or "", web.title or "") for web in webs]


def _usage(
    usage: types.GenerateContentResponseUsageMetadata | None,
) -> tuple[int, int, int, int]:
    assert usage is not None
    input_tokens, thought = usage.prompt_token_count or 0, usage.thoughts_token_count or 0
    output = (usage.candidates_token_count or 0) + thought
    assert usage.total_token_count == input_tokens + output
    return input_tokens, output, thought, usage.cached_content_token_count or 0


def body(client: genai.Client, request: Json) -> Answer:
    return of_responses([client.models.generate_content(**request)])


def stream(client: genai.Client, request: Json) -> Answer:
    return of_responses(list(client.models.generate_content_stream(**request)))


WAYS: dict[str, Callable[[genai.Client, Json], Answer]] = {"body": body, "stream": stream}


async def body_async(client: genai.Client, request: Json) -> Answer:
    return of_responses([await client.aio.models.generate_content(**request)])


async def stream_async(client: genai.Client, request: Json) -> Answer:
    chunks = await client.aio.models.generate_content_stream(**request)
    return of_responses([chunk async for chunk in chunks])


ASYNC_WAYS: dict[str, Callable[[genai.Client, Json], Awaitable[Answer]]] = {
    "body": body_async,
    "stream": stream_async,
}


def rest(request: Json) -> Json:
    """The JSON body that the client sends for a request."""
    tool_configs = request.get("config", {}).get("tools", [])
    tools: list[Any] = [
        {
            "functionDeclarations": [
                {
                    "name": each["name"],
                    "description": each["description"],
                    "parametersJsonSchema": each["parameters_json_schema"],
                }
                for each in tool["function_declarations"]
            ]
        }
        for tool in tool_configs
    ]
    return {"contents": request["contents"], **({"tools": tools} if tools else {})}
