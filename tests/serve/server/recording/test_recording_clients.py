"""The official SDKs through the recording proxy: they read the same answer from the recorder and
from its replay, which has no service behind it."""

import asyncio
import json
from contextlib import closing

import anthropic
import openai
import pytest
from google import genai

from mockllm import ServerOptions, ServerThread
from mockllm.play.replay.loading import load, loads, shipped_scenarios
from mockllm.serve.server.options import RecordOptions

pytestmark = pytest.mark.slow

QUESTION = "tell me the secret numbers"
TOOL = {
    "name": "get_secret_number",
    "description": "Looks a number up.",
    "parameters": {"type": "object", "properties": {"name": {"type": "string"}}},
}
RESULTS = {"alice": "42", "bob": "7"}


@pytest.fixture(scope="module")
def service():
    """A server of scenarios that stands in for the real services."""
    with ServerThread(load([shipped_scenarios()]), ServerOptions(speed=0)) as thread:
        yield thread.url


class Runs:
    """Runs a client against the recorder, then against what was recorded."""

    def __init__(self, service, folder):
        self.folder = folder
        self.options = RecordOptions(
            folder, dict.fromkeys(("chat", "responses", "anthropic", "gemini"), service)
        )

    def both(self, converse, connect):
        """The results of `converse` with a client of the recorder and with one of the replay."""
        with (
            ServerThread((), ServerOptions(record=self.options)) as thread,
            closing(connect(thread.url)) as client,
        ):
            recorded = converse(client)
        with ServerThread(load([self.folder]), ServerOptions(speed=0)) as thread:
            with closing(connect(thread.url)) as client:
                replayed = converse(client)
            played = thread.ask(
                lambda: [
                    entry.played.recorded for entry in thread.server.sessions.get("default").journal
                ]
            )
        assert set(played) == {"exact"}
        return recorded, replayed


@pytest.fixture
def runs(service, tmp_path):
    return Runs(service, tmp_path / "recorded")


def look_up(arguments):
    return RESULTS[json.loads(arguments)["name"]]


def openai_client(url):
    return openai.OpenAI(base_url=f"{url}/v1", api_key="sk-test", max_retries=0)


def openai_chat(client, stream=True):
    """A conversation with two calls over Chat Completions; everything that the SDK returned."""
    messages = [{"role": "user", "content": QUESTION}]
    given = []
    tools = [{"type": "function", "function": TOOL}]
    while True:
        if stream:
            with client.chat.completions.stream(
                model="gpt-4o", messages=messages, tools=tools
            ) as events:
                list(events)
                answer = events.get_final_completion()
        else:
            answer = client.chat.completions.create(model="gpt-4o", messages=messages, tools=tools)
        given.append(answer.model_dump())
        message = answer.choices[0].message
        if not message.tool_calls:
            return given
        messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        for call in message.tool_calls:
            content = look_up(call.function.arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})


@pytest.mark.parametrize("stream", [True, False])
def test_openai_chat(runs, stream):
    """Chat Completions, streamed and not, over a conversation with calls."""
    recorded, replayed = runs.both(lambda client: openai_chat(client, stream), openai_client)
    assert recorded == replayed
    assert len(recorded) == 2
    (scenario,) = load([runs.folder])
    assert len(scenario.turns) == 2


@pytest.mark.parametrize("previous", [True, False])
def test_openai_responses(runs, previous):
    """Responses, with the history in the service and with it in the request."""

    def converse(client):
        items, id, given = [{"role": "user", "content": QUESTION}], None, []
        tools = [{"type": "function", "strict": False, **TOOL}]
        while True:
            more = {"previous_response_id": id} if previous and id else {}
            with client.responses.stream(
                model="gpt-4o", input=items, tools=tools, **more
            ) as events:
                list(events)
                answer = events.get_final_response()
            given.append(answer.model_dump())
            calls = [item for item in answer.output if item.type == "function_call"]
            if not calls:
                return given
            id = answer.id
            kept = [] if previous else items + [
                item.model_dump(exclude_none=True, exclude={"parsed_arguments"})
                for item in answer.output
            ]  # fmt: skip
            items = kept + [
                {
                    "type": "function_call_output",
                    "call_id": call.call_id,
                    "output": look_up(call.arguments),
                }
                for call in calls
            ]

    recorded, replayed = runs.both(converse, openai_client)
    assert recorded == replayed
    assert len(recorded) == 2


def test_anthropic(runs):
    """Messages, streamed, over a conversation with calls."""

    def converse(client):
        messages, given = [{"role": "user", "content": QUESTION}], []
        schema = {"name": TOOL["name"], "input_schema": TOOL["parameters"]}
        while True:
            with client.messages.stream(
                model="claude-mock", max_tokens=100, messages=messages, tools=[schema]
            ) as events:
                answer = events.get_final_message()
            given.append(answer.model_dump())
            calls = [block for block in answer.content if block.type == "tool_use"]
            if not calls:
                return given
            content = [block.model_dump(exclude_none=True) for block in answer.content]
            messages.append({"role": "assistant", "content": content})
            results = [
                {"type": "tool_result", "tool_use_id": c.id, "content": RESULTS[c.input["name"]]}
                for c in calls
            ]
            messages.append({"role": "user", "content": results})

    def connect(url):
        return anthropic.Anthropic(base_url=url, api_key="sk-test", max_retries=0)

    recorded, replayed = runs.both(converse, connect)
    assert recorded == replayed
    assert len(recorded) == 2


def test_gemini(runs):
    """Gemini, streamed, over a conversation with calls, which have no ids there."""

    def converse(client):
        types = genai.types
        contents, given = [types.UserContent(QUESTION)], []
        declared = types.FunctionDeclaration(
            name=TOOL["name"], parameters_json_schema=TOOL["parameters"]
        )
        config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declared])])
        while True:
            parts = []
            for chunk in client.models.generate_content_stream(
                model="gemini-2.5-flash", contents=contents, config=config
            ):
                parts += chunk.candidates[0].content.parts or []
            given.append([part.model_dump(exclude_none=True) for part in parts])
            calls = [part.function_call for part in parts if part.function_call]
            if not calls:
                return given
            contents.append(types.ModelContent(parts))
            results = [
                types.Part.from_function_response(
                    name=call.name, response={"result": RESULTS[call.args["name"]]}
                )
                for call in calls
            ]
            contents.append(types.UserContent(results))

    def connect(url):
        return genai.Client(api_key="test", http_options={"base_url": url})

    recorded, replayed = runs.both(converse, connect)
    assert recorded == replayed
    assert len(recorded) == 2


def test_many_conversations_at_once(runs):
    """Concurrent conversations, several with the same text, are each recorded whole."""

    async def all_of(url):
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="sk-test", max_retries=0)

        async def converse(number):
            text = f"Hello number {number % 3}"
            messages = [{"role": "user", "content": text}]
            for turn in range(3):
                answer = await client.chat.completions.create(model="gpt-4o", messages=messages)
                messages.append({"role": "assistant", "content": answer.choices[0].message.content})
                messages.append({"role": "user", "content": f"{number} says {turn}"})

        async with client:
            await asyncio.gather(*map(converse, range(9)))

    with ServerThread((), ServerOptions(record=runs.options)) as thread:
        asyncio.run(all_of(thread.url))
    scenarios = load([runs.folder])
    assert len(scenarios) == 9
    for scenario in scenarios:
        assert len(scenario.turns) == 3
        numbers = [turn.request.user.value.split()[0] for turn in scenario.turns[1:]]
        assert numbers[0] == numbers[1]
        assert int(numbers[0]) % 3 == int(scenario.match.user.value[-1])
    assert len({scenario.turns[1].request.user.value for scenario in scenarios}) == 9


ADDING = """
scenario: adding
match: {user: who adds fields}
turns:
  - reply: {text: The service does., split: words}
    extra: {chat: {event: {provider: Some}, usage: {cost: 0.25}}}
"""


def test_added_fields_are_read_from_an_edited_recording(tmp_path):
    """What a service adds to its API is drafted as `extra`, and still sent with an edited text."""
    with ServerThread(loads(ADDING), ServerOptions(speed=0)) as adding:
        options = RecordOptions(tmp_path, {"chat": adding.url})
        with ServerThread((), ServerOptions(record=options)) as thread:
            recorded = _added_fields(thread.url)
    (file,) = tmp_path.glob("*.yaml")
    file.write_text(file.read_text().replace("The service does", "An editor did"))
    with ServerThread(load([tmp_path]), ServerOptions(speed=0)) as thread:
        replayed = _added_fields(thread.url)
        (exchange,) = thread.ask(lambda: thread.server.sessions.get("default").journal)
    assert exchange.played.recorded == "edited"
    assert recorded == ("The service does.", {"Some"}, {"cost": 0.25})
    assert replayed == ("An editor did.", {"Some"}, {"cost": 0.25})


def _added_fields(url):
    """The text of an answer, and what the SDK read of the fields that are not of its API."""
    with closing(openai_client(url)) as client:
        chunks = list(
            client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": "who adds fields"}],
                stream=True,
                stream_options={"include_usage": True},
            )
        )
    texts = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    return "".join(texts), {chunk.provider for chunk in chunks}, chunks[-1].usage.model_extra
