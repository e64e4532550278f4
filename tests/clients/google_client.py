"""What the official `google-genai` client makes of answers, blocking and not.

`body` is `generate_content`, `stream` is `generate_content_stream`, read by hand.
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
    """Puts the responses of a stream together; one is an answer that is not streamed."""
    said: dict[str, str] = defaultdict(str)
    calls = []
    cites: list[tuple[str, str]] = []
    finishes: list[str] = []
    parts: list[types.Part] = []
    for response in responses:
        for candidate in (response.candidates or ())[:1]:
            parts += (candidate.content and candidate.content.parts) or ()
            cites += _cites(candidate)
            if candidate.finish_reason is not None:
                finishes.append(candidate.finish_reason.value)
    for part in parts:
        said["reasoning" if part.thought else "text"] += part.text or ""
        call = part.function_call
        if call is not None:
            calls.append((call.id or "", call.name or "", call.args or {}))
    (finish,) = finishes
    (id,) = {response.response_id for response in responses}
    seen = Seen(
        text=said["text"],
        reasoning=said["reasoning"],
        calls=tuple(calls),
        finish=finish,
        usage=_usage(responses[-1].usage_metadata),
        cites=tuple(cites),
    )
    told = [part for part in parts if part.text != "" or part.thought_signature]
    return Answer(seen, [types.Content(role="model", parts=told)], id or "")


def _cites(candidate: types.Candidate) -> list[tuple[str, str]]:
    metadata = candidate.grounding_metadata
    chunks = (metadata and metadata.grounding_chunks) or ()
    webs = [chunk.web for chunk in chunks if chunk.web is not None]
    return [(web.uri or "", web.title or "") for web in webs]


def _usage(
    usage: types.GenerateContentResponseUsageMetadata | None,
) -> tuple[int, int, int, int]:
    assert usage is not None
    given, thought = usage.prompt_token_count or 0, usage.thoughts_token_count or 0
    made = (usage.candidates_token_count or 0) + thought
    assert usage.total_token_count == given + made
    return given, made, thought, usage.cached_content_token_count or 0


def body(client: genai.Client, request: Json) -> Answer:
    return of_responses([client.models.generate_content(**request)])


def stream(client: genai.Client, request: Json) -> Answer:
    return of_responses(list(client.models.generate_content_stream(**request)))


ASK: dict[str, Callable[[genai.Client, Json], Answer]] = {"body": body, "stream": stream}


async def body_async(client: genai.Client, request: Json) -> Answer:
    return of_responses([await client.aio.models.generate_content(**request)])


async def stream_async(client: genai.Client, request: Json) -> Answer:
    chunks = await client.aio.models.generate_content_stream(**request)
    return of_responses([chunk async for chunk in chunks])


ASK_ASYNC: dict[str, Callable[[genai.Client, Json], Awaitable[Answer]]] = {
    "body": body_async,
    "stream": stream_async,
}


def rest(request: Json) -> Json:
    """The body that the client sends for a request, for those who do without the client."""
    declared = request.get("config", {}).get("tools", [])
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
        for tool in declared
    ]
    return {"contents": request["contents"], **({"tools": tools} if tools else {})}
