"""Every scenario with the official `openai` client."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import openai
import pydantic
import pytest

from mockllm.scenario.model import Scenario
from mockllm.serve.server.thread import ServerThread
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
from tests.clients.openai_client import USAGE, WAYS
from tests.timeouts import GIVE_UP

every_plain = pytest.mark.parametrize("scenario", PLAIN, ids=lambda s: s.name)
every_way = pytest.mark.parametrize(("api", "how"), WAYS)


@pytest.mark.slow
@every_way
@every_plain
def test_conversation(client, run, scenario, api, how):
    """The client reads every answer of every scenario, and the server reads its history."""
    drive(converse(scenario, api), lambda request: WAYS[api, how](client, request))
    run.expects_plays(plays(scenario, api))


@every_way
def test_conversation_named_by_header(client, run, api, how):
    """A scenario that a header names is played for any user message."""
    named = client.with_options(default_headers={"x-mockllm-scenario": "multi-hop"})
    scenario = SCENARIOS["multi-hop"]

    def send(request: Json) -> Answer:
        key = "messages" if api == "chat" else "input"
        other = {"role": "user", "content": "No scenario matches this."}
        return WAYS[api, how](named, {**request, key: [other, *request[key][1:]]})

    drive(converse(scenario, api), send)
    run.expects_plays(plays(scenario, api))


@pytest.mark.parametrize("model", ["mock/refusal", "gpt-4o@refusal"])
@every_way
def test_scenario_named_by_model(client, api, how, model):
    """A scenario can be named in the model, for clients that allow no headers."""
    request = {**first(SCENARIOS["auto"], api), "model": model}
    assert WAYS[api, how](client, request).seen == expected(SCENARIOS["refusal"], 0, api)


# Streams and bodies


def bare(value: Any) -> Any:
    """A JSON value without the keys that are null or empty; streams leave them out."""
    if isinstance(value, dict):
        kept = {key: bare(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in (None, [], {})}
    return [bare(item) for item in value] if isinstance(value, list) else value


def comparable(value: Any) -> Any:
    """A completion without the fields that only one of body and stream has, such as the index of
    calls."""
    if isinstance(value, dict):
        left_out = ("index", "parsed", "parsed_arguments", "start_index")
        return {key: comparable(item) for key, item in value.items() if key not in left_out}
    return [comparable(item) for item in value] if isinstance(value, list) else value


def attempt_outcomes(scenario: Scenario) -> list[str]:
    """The outcomes of the attempts of a scenario's first turn."""
    return ["error"] * len(scenario.turns[0].attempts) + ["played"]


@pytest.mark.slow
@every_plain
def test_chat_stream_equals_body(client, run, scenario):
    """The helper's completion of a stream equals the body, ids included."""
    run.expects(*attempt_outcomes(scenario), "played")
    request = first(scenario, "chat")
    with client.chat.completions.stream(**request, stream_options=USAGE) as stream:
        list(stream)
        streamed = stream.current_completion_snapshot.to_dict()
    body = client.chat.completions.create(**request).to_dict()
    assert bare(comparable(streamed)) == bare(comparable(body))


@pytest.mark.slow
@every_plain
def test_response_stream_equals_body(client, run, scenario):
    """The response in the last event of a stream equals the body, which alone names the payer."""
    run.expects(*attempt_outcomes(scenario), "played")
    request = first(scenario, "responses")
    with client.responses.create(**request, stream=True) as stream:
        *_, last = stream
    assert last.type in ENDINGS
    streamed, body = last.response.to_dict(), client.responses.create(**request).to_dict()
    assert body == {**streamed, "billing": {"payer": "developer"}}
    assert "billing" not in streamed


@pytest.mark.parametrize("name", ["secret-numbers", "unicode", "reasoning", "logprobs"])
def test_several_choices(client, name):
    """With `n` every choice has the same content, streamed or not, and costs the same."""
    scenario = SCENARIOS[name]
    request = {**first(scenario, "chat"), "n": 2}
    body = client.chat.completions.create(**request)
    with client.chat.completions.stream(**request, stream_options=USAGE) as stream:
        streamed = stream.get_final_completion()
    alone = expected(scenario, 0, "chat")
    read, written, thought, cached = alone.usage
    both = replace(alone, usage=(read, 2 * written, 2 * thought, cached))
    assert [choice.index for choice in body.choices] == [0, 1]
    assert [choice.index for choice in streamed.choices] == [0, 1]
    for completion in (body, streamed):
        one, other = completion.choices
        assert one.message == other.message
        assert one.finish_reason == other.finish_reason
        assert of_completion(completion).seen == both


def test_usage_only_on_request(client):
    """Usage is in a last chunk without choices with `include_usage`, and else in no chunk."""
    request = first(SCENARIOS["token-usage"], "chat")
    with client.chat.completions.create(**request, stream=True) as stream:
        without_usage = [chunk.to_dict() for chunk in stream]
    with client.chat.completions.create(**request, stream=True, stream_options=USAGE) as stream:
        with_usage = [chunk.to_dict() for chunk in stream]
    assert not any("usage" in chunk for chunk in without_usage)
    assert all(chunk["usage"] is None for chunk in with_usage[:-1])
    assert with_usage[-1]["choices"] == []
    assert with_usage[-1]["usage"]["prompt_tokens"] == 2048
    for chunk in (*without_usage, *with_usage):
        del chunk["obfuscation"]  # it fills each chunk up to a size
    assert [{**chunk, "usage": None} for chunk in without_usage] == with_usage[:-1]


def test_each_fragment_is_a_chunk(client):
    """Each fragment of the scenario is one chunk."""
    with client.chat.completions.create(**first(SCENARIOS["long-text"], "chat"), stream=True) as s:
        deltas = [chunk.choices[0].delta.content for chunk in s]
    assert len([delta for delta in deltas if delta]) == 200


# Models, Azure


def test_models(client):
    """The list of models names the scenarios, and any model can be retrieved."""
    names = [model.id for model in client.models.list()]
    assert {f"mock/{name}" for name in SCENARIOS} <= set(names)
    assert len(set(names)) == len(names)
    assert client.models.retrieve(MODEL).id == MODEL


def test_model_that_names_a_scenario(client):
    """A listed model can be retrieved by its name with a slash."""
    assert client.models.retrieve("mock/secret-numbers").id == "mock/secret-numbers"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("how", ["body", "stream", "helper"])
def test_azure(sdk, run, api, how):
    """Azure's client has the same conversations over its own paths."""
    client = openai.AzureOpenAI(
        azure_endpoint=run.root,
        api_key="test",
        api_version="2025-04-01-preview",
        timeout=GIVE_UP,
        http_client=sdk._client,
    )
    drive(
        converse(SCENARIOS["secret-numbers"], api),
        lambda request: WAYS[api, how](client, request),
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
    """Structured output is parsed to the type of the request, over Chat Completions."""
    request = first(SCENARIOS["structured-output"], "chat")
    body = client.chat.completions.parse(**request, response_format=City)
    assert body.choices[0].message.parsed == PARIS
    with client.chat.completions.stream(**request, response_format=City) as stream:
        partial = [event.parsed for event in stream if event.type == "content.delta"]
        assert stream.get_final_completion().choices[0].message.parsed == PARIS
    assert {"city": "Paris"} in partial


def test_parsed_response(client):
    """Structured output is parsed to the type of the request, over Responses."""
    request = first(SCENARIOS["structured-output"], "responses")
    assert client.responses.parse(**request, text_format=City).output_parsed == PARIS
    with client.responses.stream(**request, text_format=City) as stream:
        assert stream.get_final_response().output_parsed == PARIS


class GetSecretNumber(pydantic.BaseModel):
    name: str


def test_parsed_tool_arguments(client):
    """Arguments of a strict tool are parsed to its type."""
    tool = openai.pydantic_function_tool(GetSecretNumber, name="get_secret_number")
    request = {**first(SCENARIOS["secret-numbers"], "chat"), "tools": [tool]}
    calls = client.chat.completions.parse(**request).choices[0].message.tool_calls
    assert [call.function.parsed_arguments.name for call in calls] == ["alice", "bob"]
    with client.chat.completions.stream(**request) as stream:
        calls = stream.get_final_completion().choices[0].message.tool_calls
    assert [call.function.parsed_arguments.name for call in calls] == ["alice", "bob"]


def test_automatic_answer_fits_the_type(client):
    """An automatic answer fits the requested schema."""
    messages = [{"role": "user", "content": "Anything at all."}]
    body = client.chat.completions.parse(model=MODEL, messages=messages, response_format=City)
    response = client.responses.parse(model=MODEL, input=messages, text_format=City)
    assert isinstance(body.choices[0].message.parsed, City)
    assert isinstance(response.output_parsed, City)


# Sessions


@pytest.mark.parametrize("api", APIS)
def test_sessions_count_attempts_separately(client, server: ServerThread, run, api):
    """Each session counts its own attempts, also for equal requests at the same time."""
    run.expects("error", "error", "played")
    other = Run(server, f"{run.name}-other")
    other.expects("error", "error", "played")
    one = client.with_options(max_retries=0)
    two = one.with_options(base_url=other.base_url)
    request = first(SCENARIOS["rate-limited"], api)
    for _ in range(2):
        for each in (one, two):
            with pytest.raises(openai.RateLimitError):
                WAYS[api, "body"](each, request)
    for each in (one, two):
        assert WAYS[api, "body"](each, request).seen.text == "Third time lucky."
    other.judge()
