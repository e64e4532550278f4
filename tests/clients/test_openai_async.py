"""The asynchronous official `openai` client: conversations, many streams at once, sessions."""

from __future__ import annotations

import asyncio

import openai
import pytest

from mockllm.serve.server.thread import ServerThread
from tests.clients.conftest import Run
from tests.clients.conversation import (
    APIS,
    PLAIN,
    SCENARIOS,
    Answer,
    Json,
    converse,
    drive_async,
    expected,
    first,
    opening,
    plays,
)
from tests.clients.openai_client import ASYNC_WAYS

both_apis = pytest.mark.parametrize("api", APIS)
streamed_or_not = pytest.mark.parametrize("how", ["body", "stream"])


@pytest.mark.slow
@pytest.mark.parametrize("scenario", PLAIN, ids=lambda s: s.name)
@pytest.mark.parametrize(("api", "how"), ASYNC_WAYS)
def test_conversation(async_client, loop, run, scenario, api, how):
    """The client reads every answer of every scenario, and the server reads its history."""

    async def send(request: Json) -> Answer:
        return await ASYNC_WAYS[api, how](async_client, request)

    loop.run(drive_async(converse(scenario, api), send))
    run.expects_plays(plays(scenario, api))


@pytest.mark.parametrize("how", ["body", "stream", "helper"])
def test_conversation_by_previous_response(async_client, loop, run, how):
    """A conversation continues with `previous_response_id`."""

    async def send(request: Json) -> Answer:
        return await ASYNC_WAYS["responses", how](async_client, request)

    def carry(request: Json, answer: Answer, new: list[Json]) -> Json:
        return {**request, "input": new, "previous_response_id": answer.id}

    scenario = SCENARIOS["multi-hop"]
    loop.run(drive_async(converse(scenario, "responses", carry=carry), send))
    run.expects_plays(plays(scenario, "responses"))


QUICK = [scenario for scenario in PLAIN if not scenario.turns[0].attempts]
FIFTY = [QUICK[number % len(QUICK)] for number in range(50)]


@pytest.mark.slow
@both_apis
def test_fifty_streams_at_once(async_client, loop, run, api):
    """Fifty streams at once over one client: each has the whole answer of its scenario."""

    async def one(scenario) -> None:
        answer = await ASYNC_WAYS[api, "stream"](async_client, first(scenario, api))
        assert answer.seen == expected(scenario, 0, api, opening(scenario))

    async def all_of_them() -> None:
        await asyncio.gather(*(one(scenario) for scenario in FIFTY))

    loop.run(all_of_them())
    assert len(run.exchanges) == 50


@pytest.mark.slow
@both_apis
def test_conversations_at_once(async_client, loop, api):
    """Ten conversations of one scenario at once do not mix, since each request has its history."""

    async def send(request: Json) -> Answer:
        return await ASYNC_WAYS[api, "stream"](async_client, request)

    async def all_of_them() -> None:
        conversations = [converse(SCENARIOS["multi-hop"], api) for _ in range(10)]
        await asyncio.gather(*(drive_async(conversation, send) for conversation in conversations))

    loop.run(all_of_them())


@both_apis
@streamed_or_not
def test_sessions_at_once(async_client, loop, server: ServerThread, run, api, how):
    """Sessions with equal requests at once each count their own two refusals before the answer."""
    others = [Run(server, f"{run.name}-{number}") for number in range(5)]
    clients = [async_client.with_options(base_url=each.base_url) for each in [run, *others]]

    async def all_of_them() -> list[Answer]:
        request = first(SCENARIOS["rate-limited"], api)
        return await asyncio.gather(*(ASYNC_WAYS[api, how](client, request) for client in clients))

    answers = loop.run(all_of_them())
    assert {answer.seen.text for answer in answers} == {"Third time lucky."}
    for each in [run, *others]:
        each.expects("error", "error", "played")
        assert [exchange.played.attempt for exchange in each.exchanges] == [1, 2, 3]
    for each in others:
        each.judge()


@both_apis
def test_rate_limit_is_raised(async_client, loop, run, api):
    """Without retries the client raises a rate limit error with the time to wait."""
    run.expects("error")
    once = async_client.with_options(max_retries=0)
    with pytest.raises(openai.RateLimitError) as caught:
        loop.run(ASYNC_WAYS[api, "stream"](once, first(SCENARIOS["rate-limited"], api)))
    assert caught.value.response.headers["retry-after-ms"] == "20"


@both_apis
def test_error_inside_the_stream(async_client, loop, api):
    """An error inside a stream is raised."""
    with pytest.raises(openai.APIError, match="The model stopped unexpectedly"):
        loop.run(ASYNC_WAYS[api, "stream"](async_client, first(SCENARIOS["stream-error"], api)))


@both_apis
def test_client_that_goes_away(async_client, loop, run, api):
    """A client may close a stream in the middle; its next request is answered."""
    request = first(SCENARIOS["long-text"], api)

    async def close_early() -> None:
        resource = async_client.chat.completions if api == "chat" else async_client.responses
        stream = await resource.create(**request, stream=True)
        await anext(aiter(stream))
        await stream.close()

    loop.run(close_early())
    answer = loop.run(ASYNC_WAYS[api, "stream"](async_client, request))
    assert answer.seen == expected(SCENARIOS["long-text"], 0, api)
