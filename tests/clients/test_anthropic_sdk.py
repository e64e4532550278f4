"""The official `anthropic` client, blocking and not: what it makes of every scenario."""

from __future__ import annotations

import asyncio
import json

import anthropic
import pydantic
import pytest
from anthropic.types import Message, RawMessageStreamEvent

from mockllm.server.thread import ServerThread
from tests.clients.anthropic_client import ASK, ASK_ASYNC
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
    tools,
    work,
)
from tests.clients.dialects import DIALECTS, Json
from tests.clients.matrix import BLIND
from tests.clients.oracle import Answer, expected
from tests.protocols.strict import problems

API = "anthropic"
MODEL = DIALECTS[API].model

every_plain = pytest.mark.parametrize("scenario", PLAIN, ids=lambda s: s.name)
every_way = pytest.mark.parametrize("how", ASK)


def blind(scenario, how: str) -> tuple[str, ...]:
    return BLIND.get((scenario.name, API, f"anthropic {how}"), ())


@pytest.mark.slow
@every_way
@every_plain
def test_conversation(claude, run, scenario, how):
    """The client understands every answer of every scenario, and its history is understood."""
    talk = converse(scenario, API, blind=blind(scenario, how))
    drive(talk, lambda request: ASK[how](claude, request))
    run.expects_plays(plays(scenario, API))


@pytest.mark.slow
@every_way
@every_plain
def test_conversation_async(async_claude, loop, run, scenario, how):
    """The same with the asynchronous client."""
    talk = converse(scenario, API, blind=blind(scenario, how))
    loop.run(drive_async(talk, lambda request: ASK_ASYNC[how](async_claude, request)))
    run.expects_plays(plays(scenario, API))


@pytest.mark.slow
def test_conversations_at_once(async_claude, loop):
    """Ten conversations of the same scenario at once do not mix: the state is in each of them."""

    async def all_of_them() -> None:
        talks = [converse(SCENARIOS["multi-hop"], API) for _ in range(10)]
        ask = ASK_ASYNC["stream"]
        await asyncio.gather(*(drive_async(t, lambda r: ask(async_claude, r)) for t in talks))

    loop.run(all_of_them())


@every_way
def test_conversation_named_by_header(claude, run, how):
    """A scenario that is named in a header plays whatever the user says."""
    named = claude.with_options(default_headers={"x-mockllm-scenario": "multi-hop"})
    scenario = SCENARIOS["multi-hop"]

    def ask(request: Json) -> Answer:
        other = {"role": "user", "content": "Nobody matches this."}
        return ASK[how](named, {**request, "messages": [other, *request["messages"][1:]]})

    drive(converse(scenario, API), ask)
    run.expects_plays(plays(scenario, API))


@pytest.mark.parametrize("model", ["mock/refusal", "claude-mock@refusal"])
@every_way
def test_scenario_named_by_model(claude, how, model):
    """A scenario can be named in the model's name, where a client lets nothing else be set."""
    request = {**first(SCENARIOS["auto"], API), "model": model}
    assert ASK[how](claude, request).seen == expected(SCENARIOS["refusal"], 0, API)


# Streams, bodies, and what is on the wire

_FRAGMENTED = ("malformed-arguments",)
"""What the helper of the client puts together in its own way."""


@pytest.mark.slow
@every_plain
def test_stream_equals_body(claude, run, scenario):
    """The message that the helper puts together is the one that is not streamed, ids and all."""
    tries = ["error"] * len(scenario.turns[0].attempts) + ["played"]
    run.expects(*tries, *tries)
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
def test_all_that_is_sent_is_of_the_official_types(http, run, scenario):
    """No event or body has a field too many or too few, or of another type."""
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


def test_stream_comes_fragment_by_fragment(claude):
    """Each fragment of the scenario is an event of its own."""
    with claude.messages.stream(**first(SCENARIOS["long-text"], API)) as stream:
        assert len(list(stream.text_stream)) == 200


def test_partial_arguments(claude):
    """The helper shows arguments while they come in."""
    with claude.messages.stream(**first(SCENARIOS["secret-numbers"], API)) as stream:
        shown = [event.snapshot for event in stream if event.type == "input_json"]
    assert shown[0] == {}
    assert {"name": "alice"} in shown
    assert shown[-1] == {"name": "bob"}


def test_reasoning_is_signed(claude):
    """Reasoning has the signature of the scenario, and may come back in the history."""
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
    """Structured output becomes an object of the client's own type."""
    request = first(SCENARIOS["structured-output"], API)
    parsed = claude.messages.parse(**request, output_format=City).parsed_output
    assert parsed == City(
        city="Paris", population=2102650, rivers=["Seine", "Bièvre"], capital=True
    )


def test_automatic_answer_fits_the_type(claude):
    """What no scenario answers is answered by an object of the type that was asked for."""
    asked = [{"role": "user", "content": "Anything at all."}]
    message = claude.messages.parse(model=MODEL, max_tokens=64, messages=asked, output_format=City)
    assert isinstance(message.parsed_output, City)


@pytest.mark.parametrize("thread", [False, True], ids=["whole", "thread"])
@pytest.mark.parametrize("stream", [False, True], ids=["body", "stream"])
@pytest.mark.parametrize("name", ["secret-numbers", "multi-hop"])
def test_tool_runner(claude, run, name, stream, thread):
    """The client's own loop runs the tools and comes to the scenario's end; where it asks for a
    thread to be kept, it is told to send the history, once."""
    scenario = SCENARIOS[name]

    def runnable(tool: Json):
        def call(**arguments: str) -> str:
            return work(tool["name"], arguments)

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
    wanted = expected(scenario, len(scenario.turns) - 1, API)
    assert "".join(block.text for block in last.content) == wanted.text
    *_, played = run.exchanges
    assert played.stream is stream
    refused = [(None, None, "invalid")] if thread else []
    run.expects_plays([*refused, *plays(scenario, API)])


# Around the answers


@pytest.mark.parametrize("credential", [{"api_key": "sk-ant-x"}, {"auth_token": "token-x"}])
def test_both_credentials(anthropic_sdk, run, credential):
    """A key and a token will do, and the journal shows neither."""
    http = anthropic_sdk._client
    client = anthropic.Anthropic(base_url=run.root, http_client=http, **credential)
    assert ASK["stream"](client, first(SCENARIOS["refusal"], API)).seen.finish == "refusal"
    headers = run.exchanges[0].headers
    # Newer versions send keys as bearer tokens too.
    assert "***" in (headers.get("x-api-key"), headers.get("authorization"))
    assert not {"sk-ant-x", "token-x", "Bearer token-x"} & set(headers.values())


def test_count_tokens(claude):
    """Tokens can be counted beforehand: more text and more tools are more."""
    few = claude.messages.count_tokens(**_counted("auto")).input_tokens
    more = claude.messages.count_tokens(**_counted("secret-numbers")).input_tokens
    assert 0 < few < more


def _counted(name: str) -> Json:
    request = first(SCENARIOS[name], API)
    del request["max_tokens"]
    return request


def test_models(claude):
    """The models listed name the scenarios, page by page, and any model can be asked for."""
    names = [model.id for model in claude.models.list(limit=7)]
    assert names == sorted(f"mock/{name}" for name in SCENARIOS)
    assert claude.models.retrieve(MODEL).id == MODEL
    assert claude.models.retrieve("mock/secret-numbers").display_name == "mock/secret-numbers"


def test_models_async(async_claude, loop):
    """The asynchronous client reads the pages as well."""

    async def names() -> list[str]:
        return [model.id async for model in async_claude.models.list(limit=11)]

    assert loop.run(names()) == sorted(f"mock/{name}" for name in SCENARIOS)


def test_request_id(claude):
    """Every answer has the id that the client shows in bug reports."""
    request = first(SCENARIOS["refusal"], API)
    assert claude.messages.create(**request)._request_id.startswith("req_01")
    raw = claude.messages.with_raw_response.create(**request)
    assert raw.headers["anthropic-ratelimit-requests-limit"] == "4000"


def test_sessions_are_apart(claude, server: ServerThread, run):
    """Two sessions count their tries apart, though they ask for the same at the same time."""
    run.expects("error", "error", "played")
    other = Run(server, f"{run.name}-other")
    other.expects("error", "error", "played")
    one = claude.with_options(max_retries=0)
    two = one.with_options(base_url=other.root)
    request = first(SCENARIOS["rate-limited"], API)
    for _ in range(2):
        for each in (one, two):
            with pytest.raises(anthropic.RateLimitError):
                ASK["body"](each, request)
    for each in (one, two):
        assert ASK["body"](each, request).seen.text == "Third time lucky."
    other.judge()
