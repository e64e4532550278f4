"""The official `google-genai` client, blocking and not: what it makes of every scenario."""

from __future__ import annotations

import asyncio
from typing import Any

import pydantic
import pytest
from google import genai
from google.genai import types

from mockllm.server.thread import ServerThread
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
    work,
)
from tests.clients.dialects import DIALECTS, Json
from tests.clients.google_client import ASK, ASK_ASYNC
from tests.clients.oracle import Answer, expected

API = "gemini"
MODEL = DIALECTS[API].model
OLDER = "gemini-2.5-flash"
"""A model of the generation whose calls have no ids."""

every_plain = pytest.mark.parametrize("scenario", PLAIN, ids=lambda s: s.name)
every_way = pytest.mark.parametrize("how", ASK)


@pytest.mark.slow
@every_way
@every_plain
def test_conversation(gemini, run, scenario, how):
    """The client understands every answer of every scenario, and its history is understood."""
    drive(converse(scenario, API), lambda request: ASK[how](gemini, request))
    run.expects_plays(plays(scenario, API))


@pytest.mark.slow
@every_way
@every_plain
def test_conversation_async(gemini, loop, run, scenario, how):
    """The same with the asynchronous client."""
    talk = converse(scenario, API)
    loop.run(drive_async(talk, lambda request: ASK_ASYNC[how](gemini, request)))
    run.expects_plays(plays(scenario, API))


WITH_TOOLS = [scenario for scenario in PLAIN if scenario.tools]


@every_way
@pytest.mark.parametrize("scenario", WITH_TOOLS, ids=lambda s: s.name)
def test_conversation_without_ids(gemini, run, scenario, how):
    """Calls of an older model have no ids: results are known by name and order alone."""

    def ask(request: Json) -> Answer:
        return ASK[how](gemini, {**request, "model": OLDER})

    drive(converse(scenario, API, ids=False), ask)
    run.expects_plays(plays(scenario, API))


@pytest.mark.parametrize("version", ["v1", "v1beta", "v1alpha"])
@every_way
def test_versions(gemini_at, run, how, version):
    """Every version of the API is served alike."""
    client = gemini_at(run.root, api_version=version)
    drive(converse(SCENARIOS["secret-numbers"], API), lambda request: ASK[how](client, request))
    assert run.exchanges[0].path.startswith(f"/{version}/models/{MODEL}:")


@pytest.mark.slow
def test_conversations_at_once(gemini, loop):
    """Ten conversations of the same scenario at once do not mix: the state is in each of them."""

    async def all_of_them() -> None:
        talks = [converse(SCENARIOS["multi-hop"], API) for _ in range(10)]
        ask = ASK_ASYNC["stream"]
        await asyncio.gather(*(drive_async(t, lambda r: ask(gemini, r)) for t in talks))

    loop.run(all_of_them())


@every_way
def test_conversation_named_by_header(gemini_at, run, how):
    """A scenario that is named in a header plays whatever the user says."""
    client = gemini_at(run.root, headers={"x-mockllm-scenario": "multi-hop"})
    scenario = SCENARIOS["multi-hop"]

    def ask(request: Json) -> Answer:
        other = {"role": "user", "parts": [{"text": "Nobody matches this."}]}
        return ASK[how](client, {**request, "contents": [other, *request["contents"][1:]]})

    drive(converse(scenario, API), ask)
    run.expects_plays(plays(scenario, API))


@pytest.mark.parametrize("model", ["mock/refusal", "gemini-3-pro@refusal", "models/x@refusal"])
@every_way
def test_scenario_named_by_model(gemini, how, model):
    """A scenario can be named in the model's name, where a client lets nothing else be set."""
    request = {**first(SCENARIOS["auto"], API), "model": model}
    assert ASK[how](gemini, request).seen == expected(SCENARIOS["refusal"], 0, API)


# Chats, in which the client calls the functions by itself


def get_secret_number(name: str) -> str:
    """The secret number of a person."""
    return work("get_secret_number", {"name": name})


def read_file(path: str) -> str:
    """Reads a file. In this story it fails."""
    raise FileNotFoundError(path)


def list_files(folder: str) -> list[str]:
    """Lists a folder."""
    return [f"{folder}/app.yaml"]


def search(query: str) -> str:
    """Searches once more."""
    return work("search", {"query": query})


FUNCTIONS = {
    "secret-numbers": [get_secret_number],
    "failing-tool": [read_file, list_files],
}
both_models = pytest.mark.parametrize("model", [MODEL, OLDER])
chats = pytest.mark.parametrize("name", FUNCTIONS)


def asked(name: str) -> Json:
    return {"config": types.GenerateContentConfig(tools=FUNCTIONS[name])}


@chats
@both_models
def test_chat(gemini, run, name, model):
    """The functions are called, a failure is told, and the chat comes to the scenario's end."""
    scenario = SCENARIOS[name]
    chat = gemini.chats.create(model=model, **asked(name))
    assert chat.send_message(opening(scenario)).text == ending(scenario)
    run.expects_plays(plays(scenario, API))


@chats
@both_models
def test_chat_stream(gemini, run, name, model):
    """The same, streamed."""
    scenario = SCENARIOS[name]
    chat = gemini.chats.create(model=model, **asked(name))
    chunks = list(chat.send_message_stream(opening(scenario)))
    assert said(chunks).endswith(ending(scenario))
    assert all(exchange.stream for exchange in run.exchanges)
    run.expects_plays(plays(scenario, API))


@chats
@both_models
def test_chat_async(gemini, loop, run, name, model):
    """The same with the asynchronous client, streamed and not."""
    scenario = SCENARIOS[name]

    async def talk() -> tuple[str | None, str]:
        chat = gemini.aio.chats.create(model=model, **asked(name))
        whole = await chat.send_message(opening(scenario))
        chat = gemini.aio.chats.create(model=model, **asked(name))
        stream = await chat.send_message_stream(opening(scenario))
        return whole.text, said([chunk async for chunk in stream])

    whole, streamed = loop.run(talk())
    assert whole == ending(scenario)
    assert streamed.endswith(ending(scenario))
    run.expects_plays(plays(scenario, API) * 2)


def said(chunks: list[types.GenerateContentResponse]) -> str:
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or ()]
    return "".join(part.text or "" for part in parts)


@pytest.mark.parametrize("limit", [2, 4])
def test_chat_that_never_ends(gemini, run, limit):
    """With a model that calls functions for ever, the client stops at its own limit."""
    again = types.AutomaticFunctionCallingConfig(maximum_remote_calls=limit)
    config = types.GenerateContentConfig(tools=[search], automatic_function_calling=again)
    gemini.chats.create(model=MODEL, config=config).send_message("keep searching")
    assert run.plays == [("endless-tools", 0, "played")] * limit


def test_chat_goes_on(gemini, run):
    """A chat in which the user speaks twice, and then begins another scenario."""
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
    """Both forms of an answer have one id, one model, the same usage, and end alike."""
    tries = ["error"] * len(scenario.turns[0].attempts) + ["played"]
    run.expects(*tries, *tries)
    request = first(scenario, API)
    *_, last = gemini.models.generate_content_stream(**request)
    body = gemini.models.generate_content(**request)
    for name in ("response_id", "model_version", "usage_metadata"):
        assert getattr(last, name) == getattr(body, name)
    for name in ("finish_reason", "grounding_metadata", "safety_ratings"):
        assert getattr(last.candidates[0], name) == getattr(body.candidates[0], name)


def test_stream_comes_chunk_by_chunk(gemini):
    """Each fragment of the scenario is a chunk of its own."""
    request = first(SCENARIOS["long-text"], API)
    chunks = gemini.models.generate_content_stream(**request)
    assert len([chunk for chunk in chunks if chunk.text]) == 200


def test_several_candidates(gemini):
    """With `candidate_count` every candidate is there, and says the same, streamed or not."""
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
    """Structured output becomes an object of the client's own type."""
    request = {**first(SCENARIOS["structured-output"], API), "config": AS_CITY}
    paris = City(city="Paris", population=2102650, rivers=["Seine", "Bièvre"], capital=True)
    assert gemini.models.generate_content(**request).parsed == paris


def test_automatic_answer_fits_the_type(gemini):
    """What no scenario answers is answered by an object of the type that was asked for."""
    response = gemini.models.generate_content(
        model=MODEL, contents="Anything at all.", config=AS_CITY
    )
    assert isinstance(response.parsed, City)


def test_forced_call(gemini):
    """A call that the request forces is made, with arguments that fit the function."""
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
    """Tokens can be counted beforehand: more text is more."""
    few = gemini.models.count_tokens(model=MODEL, contents="Hello").total_tokens
    more = gemini.models.count_tokens(model=MODEL, contents="Hello, how are you?").total_tokens
    assert 0 < few < more


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_models(gemini_at, run, version):
    """The models listed name the scenarios, and any model can be asked for."""
    client = gemini_at(run.root, api_version=version)
    names = [model.name for model in client.models.list()]
    assert names == sorted(f"models/mock/{name}" for name in SCENARIOS)
    assert client.models.get(model=MODEL).name == f"models/{MODEL}"
    named = client.models.get(model="models/mock/refusal")
    assert named.name == "models/mock/refusal"
    assert "generateContent" in named.supported_actions


def test_models_async(gemini, loop):
    """The asynchronous client lists them as well."""

    async def names() -> list[Any]:
        return [model.name async for model in await gemini.aio.models.list()]

    assert len(loop.run(names())) == len(SCENARIOS)


def test_sessions_are_apart(gemini_at, server: ServerThread, run):
    """Two sessions count their tries apart, though they ask for the same at the same time."""
    run.expects("error", "error", "played")
    other = Run(server, f"{run.name}-other")
    other.expects("error", "error", "played")
    one, two = (gemini_at(each.root, retry_options=None) for each in (run, other))
    request = first(SCENARIOS["rate-limited"], API)
    for _ in range(2):
        for each in (one, two):
            with pytest.raises(genai.errors.ClientError):
                ASK["body"](each, request)
    for each in (one, two):
        assert ASK["body"](each, request).seen.text == "Third time lucky."
    other.judge()
