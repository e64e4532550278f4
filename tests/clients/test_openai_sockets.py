"""Responses over WebSockets, with the official `openai` client, sync and async, and with the
transport of `openai-agents`: the same scenarios as over HTTP, a conversation on one connection."""

from __future__ import annotations

import json

import openai
import pytest
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect

from mockllm import ServerOptions, ServerThread, loads
from tests.clients.conversation import (
    LONGER,
    MODEL,
    SCENARIOS,
    Answer,
    Json,
    converse,
    drive,
    drive_async,
    ending,
    opening,
    plays,
    run_tool,
)
from tests.clients.observed import ENDINGS, of_events


def read_answer(events) -> list:
    """The events of one answer, up to its end."""
    read = []
    for event in events:
        read.append(event)
        if event.type in (*ENDINGS, "error"):
            return read
    raise AssertionError("the connection ended in the middle of an answer")


def asked(connection, request: Json) -> Answer:
    """An answer; a request that is refused for now is sent again, as the client does over HTTP."""
    while True:
        connection.response.create(**request)
        events = read_answer(connection)
        if events[-1].type != "error":
            return of_events(events)
        assert events[-1].status in (429, 500, 503, 529), events[-1]


def continued(request: Json, answer: Answer, new: list[Json]) -> Json:
    """Only what is new, after an answer that is not stored: this connection remembers it."""
    return {**request, "input": new, "previous_response_id": answer.id, "store": False}


@pytest.mark.parametrize("carry", [None, continued], ids=["whole history", "continued"])
@pytest.mark.parametrize("scenario", LONGER, ids=lambda s: s.name)
def test_conversations_on_one_connection(client, run, scenario, carry):
    ignored = {"usage"} if carry is not None and scenario.turns[-1].is_auto else ()
    conversation = converse(scenario, "responses", carry=carry, ignored=ignored)
    with client.responses.connect() as connection:
        drive(conversation, lambda request: asked(connection, request))
    run.expects_plays(plays(scenario, "responses"))


def test_asynchronous_client(async_client, run, loop):
    scenario = SCENARIOS["multi-hop"]

    async def talk() -> None:
        async with async_client.responses.connect() as connection:

            async def send(request: Json) -> Answer:
                await connection.response.create(**request)
                read = []
                async for event in connection:
                    read.append(event)
                    if event.type in ENDINGS:
                        break
                return of_events(read)

            await drive_async(converse(scenario, "responses", carry=continued), send)

    loop.run(talk())
    run.expects_plays(plays(scenario, "responses"))


@pytest.mark.slow
def test_agents(async_client, run, loop):
    """openai-agents sends the whole history on one connection, and runs the tools."""
    import agents  # takes seconds
    from agents.models.openai_responses import OpenAIResponsesWSModel

    scenario = SCENARIOS["multi-hop"]

    def tool(spec):
        async def invoke(context, arguments):
            return run_tool(spec.name, json.loads(arguments))

        return agents.FunctionTool(spec.name, spec.description, dict(spec.parameters), invoke)

    async def talk():
        model = OpenAIResponsesWSModel(model=MODEL, openai_client=async_client)
        agent = agents.Agent(name="tester", model=model, tools=[*map(tool, scenario.tools)])
        untraced = agents.RunConfig(tracing_disabled=True)
        try:
            return await agents.Runner.run(agent, opening(scenario), run_config=untraced)
        finally:
            await model.close()

    assert loop.run(talk()).final_output == ending(scenario)
    assert {entry.headers.get("upgrade") for entry in run.exchanges} == {"websocket"}
    run.expects_plays(plays(scenario, "responses"))


def test_errors_end_a_request_and_not_the_connection(client, run):
    run.expects("invalid", "invalid", "played")
    with client.responses.connect() as connection:
        connection.response.create(model=MODEL, input="Hi", previous_response_id="resp_68a1")
        (error,) = read_answer(connection)
        assert (error.status, error.error.code) == (400, "previous_response_not_found")
        connection.response.create(model=MODEL, input="Hi", temperature=7)
        (error,) = read_answer(connection)
        assert (error.status, error.error.param) == (400, "temperature")
        assert asked(connection, {"model": MODEL, "input": opening(SCENARIOS["multi-hop"])}).id


CLOSED = """
scenario: closed
match: any
turns:
  - reply: {text: one two three four, split: words}
    fault: {cut: {after: 5 events, end: reset}}
"""


def test_a_connection_that_breaks_off_as_the_client_sees_it():
    with (
        ServerThread(loads(CLOSED), ServerOptions(speed=0)) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="k") as client,
        client.responses.connect() as connection,
    ):
        connection.response.create(model=MODEL, input="Hi")
        assert [connection.recv().sequence_number for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(ConnectionClosedError, match="no close frame"):
            connection.recv()


def test_an_api_without_messages_refuses_the_upgrade():
    with ServerThread(loads(CLOSED), ServerOptions()) as server:
        url = f"{server.url.replace('http', 'ws')}/v1/chat/completions"
        with pytest.raises(InvalidStatus, match="501"), connect(url, proxy=None):
            pass
