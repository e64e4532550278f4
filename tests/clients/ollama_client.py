"""The ways to send a request with the official `ollama` client, sync and async.

Each returns an `Answer`. `body` is an answer that is not streamed; `stream` is accumulated by hand.
The client keeps no ids of calls, and does not try again by itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import ollama

from tests.clients.dialects import Json
from tests.clients.oracle import Answer, Seen

_TRIES = 3
_AGAIN = (429, 500, 503)


def of_responses(responses: Sequence[ollama.ChatResponse]) -> Answer:
    """Accumulates the responses of a stream; a body is one response."""
    messages = [response.message for response in responses]
    content = "".join(message.content or "" for message in messages)
    thinking = "".join(message.thinking or "" for message in messages)
    tokens = [token for response in responses for token in response.logprobs or ()]
    calls = [call for message in messages for call in message.tool_calls or ()]
    last = responses[-1]
    assert [bool(response.done) for response in responses] == [False] * (len(responses) - 1) + [
        True
    ]
    seen = Seen(
        text=content,
        reasoning=thinking,
        calls=tuple(("", call.function.name, dict(call.function.arguments)) for call in calls),
        finish=last.done_reason or "",
        usage=(last.prompt_eval_count or 0, last.eval_count or 0, 0, 0),
        tokens="".join(token.token for token in tokens),
    )
    echo = ollama.Message(role="assistant", content=content, tool_calls=calls or None)
    return Answer(seen, [echo], "")


def _again(error: ollama.ResponseError, tried: int) -> None:
    if error.status_code not in _AGAIN or tried + 1 == _TRIES:
        raise error


def body(client: ollama.Client, request: Json) -> Answer:
    for tried in range(_TRIES):
        try:
            return of_responses([client.chat(**request)])
        except ollama.ResponseError as error:
            _again(error, tried)
    raise AssertionError


def stream(client: ollama.Client, request: Json) -> Answer:
    for tried in range(_TRIES):
        try:
            return of_responses(list(client.chat(**request, stream=True)))
        except ollama.ResponseError as error:
            _again(error, tried)
    raise AssertionError


WAYS: dict[str, Callable[[ollama.Client, Json], Answer]] = {"body": body, "stream": stream}


async def body_async(client: ollama.AsyncClient, request: Json) -> Answer:
    for tried in range(_TRIES):
        try:
            return of_responses([await client.chat(**request)])
        except ollama.ResponseError as error:
            _again(error, tried)
    raise AssertionError


async def stream_async(client: ollama.AsyncClient, request: Json) -> Answer:
    for tried in range(_TRIES):
        try:
            chunks = await client.chat(**request, stream=True)
            return of_responses([chunk async for chunk in chunks])
        except ollama.ResponseError as error:
            _again(error, tried)
    raise AssertionError


ASYNC_WAYS: dict[str, Callable[[ollama.AsyncClient, Json], Awaitable[Answer]]] = {
    "body": body_async,
    "stream": stream_async,
}
