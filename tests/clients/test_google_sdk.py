"""Every scenario with the official `google-genai` client, sync and async."""

from __future__ import annotations

import asyncio
from typing import Any

import pydantic
import pytest
from google import genai
from google.genai import types

from mockllm.serve.server.thread import ServerThread
from tests.clients.conftest import Run
from tests.clients.conversation import (
    PLAIN,
    SCENARIOS,
    converse,
    drive,
    drive_async,
    ending,
    first,
    opening,
    plays,
    run_tool,
)
from tests.clients.dialects import DIALECTS, Json
from tests.clients.google_client import ASYNC_WAYS, WAYS
from tests.clients.oracle import Answer, expected

API = "gemini"
MODEL = DIALECTS[API].model
OLDER = "gemini-2.5-flash"
"""A model of the generation whose calls have no ids."""

every_plain = pytest.mark.parametrize("scenario", PLAIN, ids=lambda s: s.name)
every_way = pytest.mark.parametrize("how", WAYS)


@pytest.mark.slow
@every_way
@every_plain
def test_conversation(gemini, run, scenario, how):
    """The client reads every answer of every scenario, and the server reads its history."""
    drive(converse(scenario, API), lambda request: WAYS[how](gemini, request))
    run.expects_plays(plays(scenario, API))


@pytest.mark.slow
@every_way
@every_plain
def test_conversation_async(gemini, loop, run, scenario, how):
    """The asynchronous client reads every answer, and the server reads its history."""
    conversation = converse(scenario, API)
    loop.run(drive_async(conversation, lambda request: ASYNC_WAYS[how](gemini, request)))
    run.expects_plays(plays(scenario, API))


WITH_TOOLS = [scenario for scenario in PLAIN if scenario.tools]


@every_way
@pytest.mark.parametrize("scenario", WITH_TOOLS, ids=lambda s: s.name)
def test_conversation_without_ids(gemini, run, scenario, how):
    """Calls of an older model have no ids: results are matched by name and order."""

    def send(request: Json) -> Answer:
        return WAYS[how](gemini, {**request, "model": OLDER})

    drive(converse(scenario, API, ids=False), send)
    run.expects_plays(plays(scenario, API))


@pytest.mark.parametrize("version", ["v1", "v1beta", "v1alpha"])
@every_way
def test_versions(gemini_at, run, how, version):
    """Every version of the API is served."""
    client = gemini_at(run.root, api_version=version)
    drive(converse(SCENARIOS["secret-numbers"], API), lambda request: WAYS[how](client, request))
    assert run.exchanges[0].path.startswith(f"/{version}/models/{MODEL}:")


@pytest.mark.slow
def test_conversations_at_once(gemini, loop):
    """Ten conversations of one scenario at once do not mix, since each request has its history."""

    async def all_of_them() -> None:
        conversations = [converse(SCENARIOS["multi-hop"], API) for _ in range(10)]
        send = ASYNC_WAYS["stream"]
        await asyncio.gather(*(drive_async(t, lambda r: send(gemini, r)) for t in conversations))

    loop.run(all_of_them())


@every_way
def test_conversation_named_by_header(gemini_at, run, how):
    """A scenario that a header names is played for any user message."""
    client = gemini_at(run.root, headers={"x-mockllm-scenario": "multi-hop"})
    scenario = SCENARIOS["multi-hop"]

    def send(request: Json) -> Answer:
        other = {"role": "user", "parts": [{"text": "No scenario matches this."}]}
        return WAYS[how](client, {**request, "contents": [other, *request["contents"][1:]]})

    drive(converse(scenario, API), send)
    run.expects_plays(plays(scenario, API))


@pytest.mark.parametrize("model", ["mock/refusal", "gemini-3-pro@refusal", "models/x@refusal"])
@every_way
def test_scenario_named_by_model(gemini, how, model):
    """A scenario can be named in the model, for clients that allow no headers."""
    request = {**first(SCENARIOS["auto"], API), "model": model}
    assert WAYS[how](gemini, request).seen == expected(SCENARIOS["refusal"], 0, API)


# Chats, in which the client runs the functions by itself


def get_secret_number(name: str) -> str:
    """The secret number of a person."""
    return run_tool("get_secret_number", {"name": name})


def read_file(path: str) -> str:
    """Reads a file, which fails in this scenario."""
    raise FileNotFoundError(path)


def list_files(folder: str) -> list[str]:
    """Lists a folder."""
    return [f"{folder}/app.yaml"]


def search(query: str) -> str:
    """Searches once more."""
    return run_tool("search", {"query": query})


FUNCTIONS = {
    "secret-numbers": [get_secret_number],
    "failing-tool": [read_file, list_files],
}
both_models = pytest.mark.parametrize("model", [MODEL, OLDER])
chats = pytest.mark.parametrize("name", FUNCTIONS)


def chat_config(name: str) -> Json:
    return {"config": types.GenerateContentConfig(tools=FUNCTIONS[name])}


@chats
@both_models
def test_chat(gemini, run, name, model):
    """The client runs the functions, reports a failure, and returns the text of the last turn."""
    scenario = SCENARIOS[name]
    chat = gemini.chats.create(model=model, **chat_config(name))
    assert chat.send_message(opening(scenario)).text == ending(scenario)
    run.expects_plays(plays(scenario, API))


@chats
@both_models
def test_chat_stream(gemini, run, name, model):
    """A streamed chat ends with the text of the last turn."""
    scenario = SCENARIOS[name]
    chat = gemini.chats.create(model=model, **chat_config(name))
    chunks = list(chat.send_message_stream(opening(scenario)))
    assert joined_text(chunks).endswith(ending(scenario))
    assert all(exchange.played.stream for exchange in run.exchanges)
    run.expects_plays(plays(scenario, API))


@chats
@both_models
def test_chat_async(gemini, loop, run, name, model):
    """Asynchronous chats return the text of the last turn, streamed and not."""
    scenario = SCENARIOS[name]

    async def both_chats() -> tuple[str | None, str]:
        chat = gemini.aio.chats.create(model=model, **chat_config(name))
        whole = await chat.send_message(opening(scenario))
        chat = gemini.aio.chats.create(model=model, **chat_config(name))
        stream = await chat.send_message_stream(opening(scenario))
        return whole.text, joined_text([chunk async for chunk in stream])

    whole, streamed = loop.run(both_chats())
    assert whole == ending(scenario)
    assert streamed.endswith(ending(scenario))
    run.expects_plays(plays(scenario, API) * 2)


def joined_text(chunks: list[types.GenerateContentResponse]) -> str:
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]
    return "".join(part.text or "" for part in parts)


@pytest.mark.parametrize("limit", [2, 4])
def test_chat_that_never_ends(gemini, run, limit):
    """A model that always calls functions reaches the client's limit of calls."""
    again = types.AutomaticFunctionCallingConfig(maximum_remote_calls=limit)
    config = types.GenerateContentConfig(tools=[search], automatic_function_calling=again)
    gemini.chats.create(model=MODEL, config=config).send_message("keep searching")
    assert run.plays == [("endless-tools", 0, "played")] * limit


def test_chat_goes_on(gemini, run):
    """A chat of two user messages goes on with another scenario."""
    chat = gemini.chats.create(model=MODEL)
    assert "Oslo" in chat.send_message("What is the capital of Norway?").text
    assert "700,000" in chat.send_message("How many people live there?").text
    thoughtful = chat.send_message("Now think it through.")
    thought, text = thoughtful.candidates[0].content.parts[:2]
    assert (thought.thought, text.text) == (True, "Yes, 17 is prime.")
    assert [play[:2] for play in run.plays] == [
        ("two-questions", 0),
        ("two-questions", 1),
        ("reasoning", 0),
    ]


# Streams and bodies


@pytest.mark.slow
@every_plain
def test_stream_equals_body(gemini, run, scenario):
    """The last chunk and the body have the same id, model, usage and finish reason."""
    tries = ["error"] * len(scenario.turns[0].attempts) + ["played"]
    run.expects(*tries, "played")
    request = first(scenario, API)
    *_, last = gemini.models.generate_content_stream(**request)
    body = gemini.models.generate_content(**request)
    for name in ("response_id", "model_version", "usage_metadata"):
        assert getattr(last, name) == getattr(body, name)
    for name in ("finish_reason", "grounding_metadata", "safety_ratings"):
        assert getattr(last.candidates[0], name) == getattr(body.candidates[0], name)


def test_each_fragment_is_a_chunk(gemini):
    """Each fragment of the scenario is one chunk."""
    request = first(SCENARIOS["long-text"], API)
    chunks = gemini.models.generate_content_stream(**request)
    assert len([chunk for chunk in chunks if chunk.text]) == 200


def test_several_candidates(gemini):
    """With `candidate_count` every candidate has the same content, streamed or not."""
    request = {**first(SCENARIOS["reasoning"], API), "config": {"candidate_count": 2}}
    body = gemini.models.generate_content(**request)
    one, other = body.candidates
    assert one.content == other.content
    assert (one.index, other.index) == (0, 1)
    for chunk in gemini.models.generate_content_stream(**request):
        assert len(chunk.candidates) == 2


# Structured output


class City(pydantic.BaseModel):
    city: str
    population: int
    rivers: list[str]
    capital: bool


AS_CITY = {"response_mime_type": "application/json", "response_schema": City}


def test_parsed_response(gemini):
    """Structured output is parsed to the type of the request."""
    request = {**first(SCENARIOS["structured-output"], API), "config": AS_CITY}
    paris = City(city="Paris", population=2102650, rivers=["Seine", "Bièvre"], capital=True)
    assert gemini.models.generate_content(**request).parsed == paris


def test_automatic_answer_fits_the_type(gemini):
    """An automatic answer fits the requested schema."""
    response = gemini.models.generate_content(
        model=MODEL, contents="Anything at all.", config=AS_CITY
    )
    assert isinstance(response.parsed, City)


def test_forced_call(gemini):
    """A forced call has arguments that fit the function."""
    config = types.GenerateContentConfig(
        tools=[get_secret_number],
        tool_config={"function_calling_config": {"mode": "ANY"}},
        automatic_function_calling={"disable": True},
    )
    response = gemini.models.generate_content(
        model=MODEL, contents="Anything at all.", config=config
    )
    (call,) = response.function_calls
    assert call.name == "get_secret_number"
    assert isinstance(call.args["name"], str)


# Around the answers


def test_count_tokens(gemini):
    """`count_tokens` counts more tokens for more text."""
    few = gemini.models.count_tokens(model=MODEL, contents="Hello").total_tokens
    more = gemini.models.count_tokens(model=MODEL, contents="Hello, how are you?").total_tokens
    assert 0 < few < more


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_models(gemini_at, run, version):
    """The list of models names the scenarios, and any model can be retrieved."""
    client = gemini_at(run.root, api_version=version)
    names = [model.name for model in client.models.list()]
    assert names == sorted(f"models/mock/{name}" for name in SCENARIOS)
    assert client.models.get(model=MODEL).name == f"models/{MODEL}"
    named = client.models.get(model="models/mock/refusal")
    assert named.name == "models/mock/refusal"
    assert "generateContent" in named.supported_actions


def test_models_async(gemini, loop):
    """The asynchronous client lists the models."""

    async def names() -> list[Any]:
        return [model.name async for model in await gemini.aio.models.list()]

    assert len(loop.run(names())) == len(SCENARIOS)


def test_sessions_count_attempts_separately(gemini_at, server: ServerThread, run):
    """Each session counts its own attempts, also for equal requests at the same time."""
    run.expects("error", "error", "played")
    other = Run(server, f"{run.name}-other")
    other.expects("error", "error", "played")
    one, two = (gemini_at(each.root, retry_options=None) for each in (run, other))
    request = first(SCENARIOS["rate-limited"], API)
    for _ in range(2):
        for each in (one, two):
            with pytest.raises(genai.errors.ClientError):
                WAYS["body"](each, request)
    for each in (one, two):
        assert WAYS["body"](each, request).seen.text == "Third time lucky."
    other.judge()
