"""Every scenario with the official `anthropic` client, sync and async."""

from __future__ import annotations

import asyncio
import json

import anthropic
import pydantic
import pytest
from anthropic.types import Message, RawMessageStreamEvent

from mockllm.serve.server.thread import ServerThread
from tests.clients.anthropic_client import ASYNC_WAYS, WAYS
from tests.clients.conftest import Run
from tests.clients.conversation import (
    PLAIN,
    SCENARIOS,
    converse,
    drive,
    drive_async,
    first,
    opening,
    plays,
    run_tool,
    tools,
)
from tests.clients.dialects import DIALECTS, Json
from tests.clients.matrix import MISREAD
from tests.clients.oracle import Answer, expected
from tests.timeouts import GIVE_UP
from tests.wire.protocols.strict import problems

API = "anthropic"
MODEL = DIALECTS[API].model

every_plain = pytest.mark.parametrize("scenario", PLAIN, ids=lambda s: s.name)
every_way = pytest.mark.parametrize("how", WAYS)


def misread(scenario, how: str) -> tuple[str, ...]:
    return MISREAD.get((scenario.name, API, f"anthropic {how}"), ())


@pytest.mark.slow
@every_way
@every_plain
def test_conversation(claude, run, scenario, how):
    """The client reads every answer of every scenario, and the server reads its history."""
    conversation = converse(scenario, API, ignored=misread(scenario, how))
    drive(conversation, lambda request: WAYS[how](claude, request))
    run.expects_plays(plays(scenario, API))


@pytest.mark.slow
@every_way
@every_plain
def test_conversation_async(async_claude, loop, run, scenario, how):
    """The asynchronous client reads every answer, and the server reads its history."""
    conversation = converse(scenario, API, ignored=misread(scenario, how))
    loop.run(drive_async(conversation, lambda request: ASYNC_WAYS[how](async_claude, request)))
    run.expects_plays(plays(scenario, API))


@pytest.mark.slow
def test_conversations_at_once(async_claude, loop):
    """Ten conversations of one scenario at once do not mix, since each request has its history."""

    async def all_of_them() -> None:
        conversations = [converse(SCENARIOS["multi-hop"], API) for _ in range(10)]
        send = ASYNC_WAYS["stream"]
        await asyncio.gather(
            *(drive_async(t, lambda r: send(async_claude, r)) for t in conversations)
        )

    loop.run(all_of_them())


@every_way
def test_conversation_named_by_header(claude, run, how):
    """A scenario that a header names is played for any user message."""
    named = claude.with_options(default_headers={"x-mockllm-scenario": "multi-hop"})
    scenario = SCENARIOS["multi-hop"]

    def send(request: Json) -> Answer:
        other = {"role": "user", "content": "No scenario matches this."}
        return WAYS[how](named, {**request, "messages": [other, *request["messages"][1:]]})

    drive(converse(scenario, API), send)
    run.expects_plays(plays(scenario, API))


@pytest.mark.parametrize("model", ["mock/refusal", "claude-mock@refusal"])
@every_way
def test_scenario_named_by_model(claude, how, model):
    """A scenario can be named in the model, for clients that allow no headers."""
    request = {**first(SCENARIOS["auto"], API), "model": model}
    assert WAYS[how](claude, request).seen == expected(SCENARIOS["refusal"], 0, API)


# Streams, bodies, and their types

_FRAGMENTED = ("malformed-arguments",)
"""The scenarios that the client's helper accumulates in its own way."""


@pytest.mark.slow
@every_plain
def test_stream_equals_body(claude, run, scenario):
    """The helper's message of a stream equals the body, ids included."""
    tries = ["error"] * len(scenario.turns[0].attempts) + ["played"]
    run.expects(*tries, "played")
    request = first(scenario, API)
    with claude.messages.stream(**request) as stream:
        streamed = stream.get_final_message().to_dict(exclude_none=True, warnings=False)
    body = claude.messages.create(**request).to_dict(exclude_none=True, warnings=False)
    for message in (streamed, body):
        for block in message["content"]:
            block.pop("parsed_output", None)
            if scenario.name in _FRAGMENTED:
                block.pop("input", None)
    assert streamed == body


HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}


@pytest.mark.slow
@every_plain
def test_answers_are_of_the_official_types(http, run, scenario):
    """Every event and body is valid, without missing or unknown fields."""
    url, request = f"{run.root}/v1/messages", first(scenario, API)
    run.expects(*["error"] * len(scenario.turns[0].attempts), "played", "played")
    while (body := http.post(url, json=request, headers=HEADERS)).status_code == 429:
        pass
    if scenario.name != "malformed-arguments":
        assert problems(Message, body.json()) == []
    if scenario.turns[0].attempts:
        run.expects("error", "error", "played")
        return
    stream = http.post(url, json={**request, "stream": True}, headers=HEADERS)
    assert stream.headers["content-type"] == "text/event-stream; charset=utf-8"
    fields = [
        dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        for block in stream.content.decode().replace("\r\n", "\n").split("\n\n")
    ]
    for event in filter(None, fields):
        value = json.loads(event["data"])
        assert value["type"] == event["event"]
        if value["type"] != "ping":
            assert problems(RawMessageStreamEvent, value) == []


def test_each_fragment_is_an_event(claude):
    """Each fragment of the scenario is one event."""
    with claude.messages.stream(**first(SCENARIOS["long-text"], API)) as stream:
        assert len(list(stream.text_stream)) == 200


def test_partial_arguments(claude):
    """The helper parses arguments during the stream."""
    with claude.messages.stream(**first(SCENARIOS["secret-numbers"], API)) as stream:
        snapshots = [event.snapshot for event in stream if event.type == "input_json"]
    assert snapshots[0] == {}
    assert {"name": "alice"} in snapshots
    assert snapshots[-1] == {"name": "bob"}


def test_reasoning_is_signed(claude):
    """Reasoning is a thinking block with the signature of the scenario."""
    message = claude.messages.create(**first(SCENARIOS["reasoning"], API))
    thinking, text = message.content
    assert (thinking.type, thinking.signature) == ("thinking", "c2lnbmVk")
    assert text.text == "Yes, 17 is prime."


# Tools that the client runs, structured output


class City(pydantic.BaseModel):
    city: str
    population: int
    rivers: list[str]
    capital: bool


def test_parsed_message(claude):
    """Structured output is parsed to the type of the request."""
    request = first(SCENARIOS["structured-output"], API)
    parsed = claude.messages.parse(**request, output_format=City).parsed_output
    assert parsed == City(
        city="Paris", population=2102650, rivers=["Seine", "Bièvre"], capital=True
    )


def test_automatic_answer_fits_the_type(claude):
    """An automatic answer fits the requested schema."""
    messages = [{"role": "user", "content": "Anything at all."}]
    message = claude.messages.parse(
        model=MODEL, max_tokens=64, messages=messages, output_format=City
    )
    assert isinstance(message.parsed_output, City)


@pytest.mark.parametrize("thread", [False, True], ids=["whole", "thread"])
@pytest.mark.parametrize("stream", [False, True], ids=["body", "stream"])
@pytest.mark.parametrize("name", ["secret-numbers", "multi-hop"])
def test_tool_runner(claude, run, name, stream, thread):
    """The client's tool runner runs the tools up to the last turn. With `thread` its first request
    is refused once, and it sends the history instead."""
    scenario = SCENARIOS[name]

    def runnable(tool: Json):
        def call(**arguments: str) -> str:
            return run_tool(tool["name"], arguments)

        return anthropic.beta_tool(
            call,
            name=tool["name"],
            description=tool["description"],
            input_schema=tool["parameters"],
        )

    runner = claude.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=64,
        messages=[{"role": "user", "content": opening(scenario)}],
        tools=[runnable(tool) for tool in tools(scenario)],
        stream=stream,
        **({} if thread else {"thread": False}),
    )
    last = runner.until_done()
    expected_answer = expected(scenario, len(scenario.turns) - 1, API)
    assert "".join(block.text for block in last.content) == expected_answer.text
    *_, played = run.exchanges
    assert played.played.stream is stream
    refused = [(None, None, "invalid")] if thread else []
    run.expects_plays([*refused, *plays(scenario, API)])


# Around the answers


@pytest.mark.parametrize("credential", [{"api_key": "sk-ant-x"}, {"auth_token": "token-x"}])
def test_both_credentials(anthropic_sdk, run, credential):
    """A key or a token is accepted, and the journal has neither."""
    http = anthropic_sdk._client
    client = anthropic.Anthropic(base_url=run.root, timeout=GIVE_UP, http_client=http, **credential)
    assert WAYS["stream"](client, first(SCENARIOS["refusal"], API)).seen.finish == "refusal"
    headers = run.exchanges[0].headers
    # Newer versions send keys as bearer tokens too.
    assert "***" in (headers.get("x-api-key"), headers.get("authorization"))
    assert not {"sk-ant-x", "token-x", "Bearer token-x"} & set(headers.values())


def test_count_tokens(claude):
    """`count_tokens` counts more tokens for more text and tools."""
    few = claude.messages.count_tokens(**_counted("auto")).input_tokens
    more = claude.messages.count_tokens(**_counted("secret-numbers")).input_tokens
    assert 0 < few < more


def _counted(name: str) -> Json:
    request = first(SCENARIOS[name], API)
    del request["max_tokens"]
    return request


def test_models(claude):
    """The list of models names the scenarios, in pages, and any model can be retrieved."""
    names = [model.id for model in claude.models.list(limit=7)]
    assert names == sorted(f"mock/{name}" for name in SCENARIOS)
    assert claude.models.retrieve(MODEL).id == MODEL
    assert claude.models.retrieve("mock/secret-numbers").display_name == "mock/secret-numbers"


def test_models_async(async_claude, loop):
    """The asynchronous client reads all pages of the list of models."""

    async def names() -> list[str]:
        return [model.id async for model in async_claude.models.list(limit=11)]

    assert loop.run(names()) == sorted(f"mock/{name}" for name in SCENARIOS)


def test_request_id(claude):
    """Every answer has a request id and rate limit headers."""
    request = first(SCENARIOS["refusal"], API)
    assert claude.messages.create(**request)._request_id.startswith("req_01")
    raw = claude.messages.with_raw_response.create(**request)
    assert raw.headers["anthropic-ratelimit-requests-limit"] == "4000"


def test_sessions_count_attempts_separately(claude, server: ServerThread, run):
    """Each session counts its own attempts, also for equal requests at the same time."""
    run.expects("error", "error", "played")
    other = Run(server, f"{run.name}-other")
    other.expects("error", "error", "played")
    one = claude.with_options(max_retries=0)
    two = one.with_options(base_url=other.root)
    request = first(SCENARIOS["rate-limited"], API)
    for _ in range(2):
        for each in (one, two):
            with pytest.raises(anthropic.RateLimitError):
                WAYS["body"](each, request)
    for each in (one, two):
        assert WAYS["body"](each, request).seen.text == "Third time lucky."
    other.judge()
