"""The official `openai` client, blocking: what it makes of every scenario."""

from __future__ import annotations

from typing import Any

import openai
import pydantic
import pytest

from mockllm.scenario.model import Scenario
from mockllm.server.thread import ServerThread
from tests.clients.asking import ASK, USAGE
from tests.clients.conftest import Run
from tests.clients.conversation import (
    APIS,
    MODEL,
    PLAIN,
    SCENARIOS,
    Answer,
    Json,
    converse,
    drive,
    expected,
    first,
    plays,
)
from tests.clients.observed import ENDINGS, of_completion

every_plain = pytest.mark.parametrize("scenario", PLAIN, ids=lambda s: s.name)
every_way = pytest.mark.parametrize(("api", "how"), ASK)


@pytest.mark.slow
@every_way
@every_plain
def test_conversation(client, run, scenario, api, how):
    """The client understands every answer of every scenario, and its history is understood."""
    drive(converse(scenario, api), lambda request: ASK[api, how](client, request))
    run.expects_plays(plays(scenario, api))


@every_way
def test_conversation_named_by_header(client, run, api, how):
    """A scenario that is named in a header plays whatever the user says."""
    named = client.with_options(default_headers={"x-mockllm-scenario": "multi-hop"})
    scenario = SCENARIOS["multi-hop"]

    def ask(request: Json) -> Answer:
        key = "messages" if api == "chat" else "input"
        other = {"role": "user", "content": "Nobody matches this."}
        return ASK[api, how](named, {**request, key: [other, *request[key][1:]]})

    drive(converse(scenario, api), ask)
    run.expects_plays(plays(scenario, api))


@pytest.mark.parametrize("model", ["mock/refusal", "gpt-4o@refusal"])
@every_way
def test_scenario_named_by_model(client, api, how, model):
    """A scenario can be named in the model's name, where a client lets nothing else be set."""
    request = {**first(SCENARIOS["auto"], api), "model": model}
    assert ASK[api, how](client, request).seen == expected(SCENARIOS["refusal"], 0, api)


# Streams and bodies


def bare(value: Any) -> Any:
    """A JSON value without the keys that are null or empty; streams leave them out."""
    if isinstance(value, dict):
        kept = {key: bare(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, [], {})}
    return [bare(item) for item in value] if isinstance(value, list) else value


def only_told(value: Any) -> Any:
    """A completion without what only one of body and stream can tell: the index of calls, and
    where an article is cited."""
    if isinstance(value, dict):
        left_out = ("index", "parsed", "parsed_arguments", "start_index")
        return {key: only_told(item) for key, item in value.items() if key not in left_out}
    return [only_told(item) for item in value] if isinstance(value, list) else value


def tries(scenario: Scenario) -> list[str]:
    """What becomes of the tries of a scenario's first turn."""
    return ["error"] * len(scenario.turns[0].attempts) + ["played"]


@pytest.mark.slow
@every_plain
def test_chat_stream_equals_body(client, run, scenario):
    """A completion put together from its stream is the one that is not streamed, ids and all."""
    run.expects(*tries(scenario), *tries(scenario))
    request = first(scenario, "chat")
    with client.chat.completions.stream(**request, stream_options=USAGE) as stream:
        list(stream)
        streamed = stream.current_completion_snapshot.to_dict()
    body = client.chat.completions.create(**request).to_dict()
    assert bare(only_told(streamed)) == bare(only_told(body))


@pytest.mark.slow
@every_plain
def test_response_stream_equals_body(client, run, scenario):
    """The response that a stream ends with is the one that is not streamed, to the letter."""
    run.expects(*tries(scenario), *tries(scenario))
    request = first(scenario, "responses")
    with client.responses.create(**request, stream=True) as stream:
        *_, last = stream
    assert last.type in ENDINGS
    assert last.response.to_dict() == client.responses.create(**request).to_dict()


@pytest.mark.parametrize("name", ["secret-numbers", "unicode", "reasoning", "logprobs"])
def test_several_choices(client, name):
    """With `n`, every choice is there, and says the same, streamed or not."""
    scenario = SCENARIOS[name]
    request = {**first(scenario, "chat"), "n": 2}
    body = client.chat.completions.create(**request)
    with client.chat.completions.stream(**request, stream_options=USAGE) as stream:
        streamed = stream.get_final_completion()
    assert [choice.index for choice in body.choices] == [0, 1]
    assert [choice.index for choice in streamed.choices] == [0, 1]
    for completion in (body, streamed):
        one, other = completion.choices
        assert one.message == other.message
        assert one.finish_reason == other.finish_reason
        assert of_completion(completion).seen == expected(scenario, 0, "chat")


def test_usage_only_where_asked_for(client):
    """A stream tells usage in a last chunk without choices, if asked for; otherwise nowhere."""
    request = first(SCENARIOS["token-usage"], "chat")
    with client.chat.completions.create(**request, stream=True) as stream:
        silent = [chunk.to_dict() for chunk in stream]
    with client.chat.completions.create(**request, stream=True, stream_options=USAGE) as stream:
        telling = [chunk.to_dict() for chunk in stream]
    assert not any("usage" in chunk for chunk in silent)
    assert all(chunk["usage"] is None for chunk in telling[:-1])
    assert telling[-1]["choices"] == []
    assert telling[-1]["usage"]["prompt_tokens"] == 2048
    assert [{**chunk, "usage": None} for chunk in silent] == telling[:-1]


def test_stream_comes_chunk_by_chunk(client):
    """Each fragment of the scenario is a chunk of its own."""
    with client.chat.completions.create(**first(SCENARIOS["long-text"], "chat"), stream=True) as s:
        deltas = [chunk.choices[0].delta.content for chunk in s]
    assert len([delta for delta in deltas if delta]) == 200


# Models, Azure


def test_models(client):
    """The models listed name the scenarios, and any model can be asked for."""
    names = [model.id for model in client.models.list()]
    assert {f"mock/{name}" for name in SCENARIOS} <= set(names)
    assert len(set(names)) == len(names)
    assert client.models.retrieve(MODEL).id == MODEL


def test_model_that_names_a_scenario(client):
    """A model that is listed can be asked for, the slash in its name included."""
    assert client.models.retrieve("mock/secret-numbers").id == "mock/secret-numbers"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("how", ["body", "stream", "helper"])
def test_azure(sdk, run, api, how):
    """Azure's client, with its own paths, has the same conversations."""
    client = openai.AzureOpenAI(
        azure_endpoint=run.root,
        api_key="test",
        api_version="2025-04-01-preview",
        http_client=sdk._client,
    )
    drive(
        converse(SCENARIOS["secret-numbers"], api),
        lambda request: ASK[api, how](client, request),
    )
    if api == "chat":
        assert run.exchanges[0].path.startswith(f"/openai/deployments/{MODEL}/chat/completions")


# Structured output


class City(pydantic.BaseModel):
    city: str
    population: int
    rivers: list[str]
    capital: bool


PARIS = City(city="Paris", population=2102650, rivers=["Seine", "Bièvre"], capital=True)


def test_parsed_completion(client):
    """Structured output becomes an object of the client's own type, over Chat Completions."""
    request = first(SCENARIOS["structured-output"], "chat")
    body = client.chat.completions.parse(**request, response_format=City)
    assert body.choices[0].message.parsed == PARIS
    with client.chat.completions.stream(**request, response_format=City) as stream:
        partial = [event.parsed for event in stream if event.type == "content.delta"]
        assert stream.get_final_completion().choices[0].message.parsed == PARIS
    assert {"city": "Paris"} in partial


def test_parsed_response(client):
    """Structured output becomes an object of the client's own type, over Responses."""
    request = first(SCENARIOS["structured-output"], "responses")
    assert client.responses.parse(**request, text_format=City).output_parsed == PARIS
    with client.responses.stream(**request, text_format=City) as stream:
        assert stream.get_final_response().output_parsed == PARIS


class GetSecretNumber(pydantic.BaseModel):
    name: str


def test_parsed_tool_arguments(client):
    """Arguments of a strict tool become objects of the client's own type."""
    tool = openai.pydantic_function_tool(GetSecretNumber, name="get_secret_number")
    request = {**first(SCENARIOS["secret-numbers"], "chat"), "tools": [tool]}
    calls = client.chat.completions.parse(**request).choices[0].message.tool_calls
    assert [call.function.parsed_arguments.name for call in calls] == ["alice", "bob"]
    with client.chat.completions.stream(**request) as stream:
        calls = stream.get_final_completion().choices[0].message.tool_calls
    assert [call.function.parsed_arguments.name for call in calls] == ["alice", "bob"]


def test_automatic_answer_fits_the_type(client):
    """What no scenario answers is answered by an object of the type that was asked for."""
    asked = [{"role": "user", "content": "Anything at all."}]
    body = client.chat.completions.parse(model=MODEL, messages=asked, response_format=City)
    response = client.responses.parse(model=MODEL, input=asked, text_format=City)
    assert isinstance(body.choices[0].message.parsed, City)
    assert isinstance(response.output_parsed, City)


# Sessions


@pytest.mark.parametrize("api", APIS)
def test_sessions_are_apart(client, server: ServerThread, run, api):
    """Two sessions count their tries apart, though they ask for the same at the same time."""
    run.expects("error", "error", "played")
    other = Run(server, f"{run.name}-other")
    other.expects("error", "error", "played")
    one = client.with_options(max_retries=0)
    two = one.with_options(base_url=other.base_url)
    request = first(SCENARIOS["rate-limited"], api)
    for _ in range(2):
        for each in (one, two):
            with pytest.raises(openai.RateLimitError):
                ASK[api, "body"](each, request)
    for each in (one, two):
        assert ASK[api, "body"](each, request).seen.text == "Third time lucky."
    other.judge()
