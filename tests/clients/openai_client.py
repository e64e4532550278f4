"""The ways to send a request with the official `openai` client, sync and async.

Each returns an `Answer`. `body` is not streamed; `stream` is accumulated by hand; `helper` is the
client's own accumulation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import openai

from tests.clients.conversation import Answer, Json
from tests.clients.observed import ENDINGS, of_chunks, of_completion, of_events, of_response

USAGE = {"include_usage": True}
# The helper raises for an answer with one of these finish reasons.
_NOT_FINAL = ("length", "content_filter")


def chat_body(client: openai.OpenAI, request: Json) -> Answer:
    return of_completion(client.chat.completions.create(**request))


def chat_stream(client: openai.OpenAI, request: Json) -> Answer:
    with client.chat.completions.create(**request, stream=True, stream_options=USAGE) as stream:
        return of_chunks(list(stream))


def chat_helper(client: openai.OpenAI, request: Json) -> Answer:
    with client.chat.completions.stream(**request, stream_options=USAGE) as stream:
        events = list(stream)
        snapshot = stream.current_completion_snapshot
        if snapshot.choices[0].finish_reason not in _NOT_FINAL:
            snapshot = stream.get_final_completion()
    text = "".join(event.delta for event in events if event.type == "content.delta")
    assert text == (snapshot.choices[0].message.content or "")
    return of_completion(snapshot)


def responses_body(client: openai.OpenAI, request: Json) -> Answer:
    return of_response(client.responses.create(**request))


def responses_stream(client: openai.OpenAI, request: Json) -> Answer:
    with client.responses.create(**request, stream=True) as stream:
        return of_events(list(stream))


def responses_helper(client: openai.OpenAI, request: Json) -> Answer:
    with client.responses.stream(**request) as stream:
        events = list(stream)
        last = events[-1]
        assert last.type in ENDINGS
        response = last.response
        if last.type == "response.completed":
            assert stream.get_final_response() == response
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert text == response.output_text
    return of_response(response)


WAYS: dict[tuple[str, str], Callable[[openai.OpenAI, Json], Answer]] = {
    ("chat", "body"): chat_body,
    ("chat", "stream"): chat_stream,
    ("chat", "helper"): chat_helper,
    ("responses", "body"): responses_body,
    ("responses", "stream"): responses_stream,
    ("responses", "helper"): responses_helper,
}


async def chat_body_async(client: openai.AsyncOpenAI, request: Json) -> Answer:
    return of_completion(await client.chat.completions.create(**request))


async def chat_stream_async(client: openai.AsyncOpenAI, request: Json) -> Answer:
    stream = await client.chat.completions.create(**request, stream=True, stream_options=USAGE)
    async with stream:
        return of_chunks([chunk async for chunk in stream])


async def chat_helper_async(client: openai.AsyncOpenAI, request: Json) -> Answer:
    async with client.chat.completions.stream(**request, stream_options=USAGE) as stream:
        async for _ in stream:
            pass
        return of_completion(stream.current_completion_snapshot)


async def responses_body_async(client: openai.AsyncOpenAI, request: Json) -> Answer:
    return of_response(await client.responses.create(**request))


async def responses_stream_async(client: openai.AsyncOpenAI, request: Json) -> Answer:
    async with await client.responses.create(**request, stream=True) as stream:
        return of_events([event async for event in stream])


async def responses_helper_async(client: openai.AsyncOpenAI, request: Json) -> Answer:
    async with client.responses.stream(**request) as stream:
        events = [event async for event in stream]
    assert events[-1].type in ENDINGS
    return of_response(events[-1].response)


ASYNC_WAYS: dict[tuple[str, str], Callable[[openai.AsyncOpenAI, Json], Awaitable[Answer]]] = {
    ("chat", "body"): chat_body_async,
    ("chat", "stream"): chat_stream_async,
    ("chat", "helper"): chat_helper_async,
    ("responses", "body"): responses_body_async,
    ("responses", "stream"): responses_stream_async,
    ("responses", "helper"): responses_helper_async,
}
