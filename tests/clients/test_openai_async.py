"""The official `openai` client, asynchronous: conversations, many streams at once, sessions."""

from __future__ import annotations

import asyncio

import openai
import pytest

from mockllm.server.thread import ServerThread
from tests.clients.asking import ASK_ASYNC
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

both_apis = pytest.mark.parametrize("api", APIS)
streamed_or_not = pytest.mark.parametrize("how", ["body", "stream"])


@pytest.mark.slow
@pytest.mark.parametrize("scenario", PLAIN, ids=lambda s: s.name)
@pytest.mark.parametrize(("api", "how"), ASK_ASYNC)
def test_conversation(async_client, loop, run, scenario, api, how):
    """The client understands every answer of every scenario, and its history is understood."""

    async def ask(request: Json) -> Answer:
        return await ASK_ASYNC[api, how](async_client, request)

    loop.run(drive_async(converse(scenario, api), ask))
    run.expects_plays(plays(scenario, api))


@pytest.mark.parametrize("how", ["body", "stream", "helper"])
def test_conversation_by_previous_response(async_client, loop, run, how):
    """A conversation goes on from the id of the answer before."""

    async def ask(request: Json) -> Answer:
        return await ASK_ASYNC["responses", how](async_client, request)

    def carry(request: Json, answer: Answer, new: list[Json]) -> Json:
        return {**request, "input": new, "previous_response_id": answer.id}

    scenario = SCENARIOS["multi-hop"]
    loop.run(drive_async(converse(scenario, "responses", carry=carry), ask))
    run.expects_plays(plays(scenario, "responses"))


QUICK = [scenario for scenario in PLAIN if not scenario.turns[0].attempts]
FIFTY = [QUICK[number % len(QUICK)] for number in range(50)]


@pytest.mark.slow
@both_apis
def test_fifty_streams_at_once(async_client, loop, run, api):
    """Fifty streams through one server and one client: each is its own scenario's, and whole."""

    async def one(scenario) -> None:
        answer = await ASK_ASYNC[api, "stream"](async_client, first(scenario, api))
        assert answer.seen == expected(scenario, 0, api, opening(scenario))

    async def all_of_them() -> None:
        await asyncio.gather(*(one(scenario) for scenario in FIFTY))

    loop.run(all_of_them())
    assert len(run.exchanges) == 50


@pytest.mark.slow
@both_apis
def test_conversations_at_once(async_client, loop, api):
    """Ten conversations of the same scenario at once do not mix: the state is in each of them."""

    async def ask(request: Json) -> Answer:
        return await ASK_ASYNC[api, "stream"](async_client, request)

    async def all_of_them() -> None:
        talks = [converse(SCENARIOS["multi-hop"], api) for _ in range(10)]
        await asyncio.gather(*(drive_async(talk, ask) for talk in talks))

    loop.run(all_of_them())


@both_apis
@streamed_or_not
def test_sessions_at_once(async_client, loop, server: ServerThread, run, api, how):
    """Sessions that ask at the same time each get their own two refusals before the answer."""
    others = [Run(server, f"{run.name}-{number}") for number in range(5)]
    clients = [async_client.with_options(base_url=each.base_url) for each in [run, *others]]

    async def all_of_them() -> list[Answer]:
        request = first(SCENARIOS["rate-limited"], api)
        return await asyncio.gather(*(ASK_ASYNC[api, how](client, request) for client in clients))

    answers = loop.run(all_of_them())
    assert {answer.seen.text for answer in answers} == {"Third time lucky."}
    for each in [run, *others]:
        each.expects("error", "error", "played")
        assert [exchange.attempt for exchange in each.exchanges] == [1, 2, 3]
    for each in others:
        each.judge()


@both_apis
def test_rate_limit_is_raised(async_client, loop, run, api):
    """A client that does not try again gets a rate limit error that says when to."""
    run.expects("error")
    once = async_client.with_options(max_retries=0)
    with pytest.raises(openai.RateLimitError) as caught:
        loop.run(ASK_ASYNC[api, "stream"](once, first(SCENARIOS["rate-limited"], api)))
    assert caught.value.response.headers["retry-after-ms"] == "20"


@both_apis
def test_error_inside_the_stream(async_client, loop, api):
    """An error after half an answer is raised."""
    with pytest.raises(openai.APIError, match="The model stopped unexpectedly"):
        loop.run(ASK_ASYNC[api, "stream"](async_client, first(SCENARIOS["stream-error"], api)))


@both_apis
def test_client_that_goes_away(async_client, loop, run, api):
    """A client may leave in the middle of a stream; the next request is answered as ever."""
    request = first(SCENARIOS["long-text"], api)

    async def leave() -> None:
        asked = async_client.chat.completions if api == "chat" else async_client.responses
        stream = await asked.create(**request, stream=True)
        await anext(aiter(stream))
        await stream.close()

    loop.run(leave())
    answer = loop.run(ASK_ASYNC[api, "stream"](async_client, request))
    assert answer.seen == expected(SCENARIOS["long-text"], 0, api)
