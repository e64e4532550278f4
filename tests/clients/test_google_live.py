"""Gemini Live with the official clients: google-genai for Python, through TLS, and pydantic-ai's
sessions on it."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from google import genai
from google.genai import errors, types

from mockllm import ServerOptions, ServerThread, loads
from tests.timeouts import GIVE_UP

PHONE = """
scenario: phone
match: any
turns:
  - hears: {say: What is the weather in Oslo?, after: 200ms}
    reply: {tool: get_weather, id: call_1, arguments: {city: Oslo}}
  - request: {results: {call_1: {contains: rain}}}
    reply: [{reasoning: Rain.}, {text: It rains. Take a coat., split: words}]
    usage: {input: 20, output: 14, reasoning: 3}
  - reply: {text: Bye.}
---
scenario: long
match: {user: long}
turns:
  - reply: {text: one two three four, split: words, every: 10m}
  - reply: {text: All right.}
---
scenario: parallel
match: {user: both}
turns:
  - reply:
      parallel:
        - {tool: get_weather, id: a, arguments: {city: Oslo}}
        - {tool: get_weather, id: b, arguments: {city: Rome}}
  - request: {results: {a: rain, b: sun}}
    reply: {text: Rain and sun.}
  - reply: {text: As I said.}
---
scenario: broken
match: {user: broken}
turns: [{reply: [{text: one}, {error: {message: Broken.}}]}]
---
scenario: refused
match: {user: refused}
turns: [{http: {status: 404, error: {message: No such model.}}}]
"""
SPOKEN = {
    "response_modalities": ["AUDIO"],
    "input_audio_transcription": {},
    "output_audio_transcription": {},
}
WRITTEN = {"response_modalities": ["TEXT"]}


@pytest.fixture(scope="module")
def secured():
    """A server with TLS, which google-genai insists on."""
    with ServerThread(loads(PHONE), ServerOptions(speed=1, tls=True)) as thread:
        yield thread


def live_client(thread: ServerThread) -> genai.Client:
    authority = thread.server.authority
    assert authority is not None
    context = ssl.create_default_context(cadata=authority.trust_bundle("").decode())
    return genai.Client(
        api_key="AIza-test",
        http_options={"base_url": thread.url, "async_client_args": {"ssl": context}},
    )


@pytest.fixture
def live(secured: ServerThread, loop: asyncio.Runner):
    """Runs what talks to a session with a configuration."""

    def run(talk, config, model="gemini-live"):
        async def connect():
            async with (
                asyncio.timeout(GIVE_UP),
                live_client(secured).aio.live.connect(model=model, config=config) as session,
            ):
                return await talk(session)

        return loop.run(connect())

    return run


async def say(session, text):
    await session.send_client_content(turns={"role": "user", "parts": [{"text": text}]})


async def turn(session):
    """The messages of one turn, up to its end or to calls."""
    messages = []
    async for message in session.receive():
        messages.append(message)
        if message.tool_call:
            break
    return messages


def words(messages):
    contents = [message.server_content for message in messages if message.server_content]
    return "".join(c.output_transcription.text for c in contents if c.output_transcription)


async def answer(session, messages, **results):
    await session.send_tool_response(
        function_responses=[
            types.FunctionResponse(
                id=call.id, name=call.name, response={"output": results[call.id]}
            )
            for message in messages
            if message.tool_call
            for call in message.tool_call.function_calls
            if call.id in results
        ]
    )


def test_a_spoken_conversation(live):
    """Sound goes in, and comes out with its words; the call waits for its result."""

    async def talk(session):
        for _ in range(10):
            sound = types.Blob(data=bytes(640), mime_type="audio/pcm;rate=16000")
            await session.send_realtime_input(audio=sound)
        called = await turn(session)
        assert called[0].server_content.input_transcription.text == "What is the weather in Oslo?"
        (call,) = called[1].tool_call.function_calls
        assert (call.id, call.name, call.args) == ("call_1", "get_weather", {"city": "Oslo"})
        await answer(session, called, call_1="rain")
        spoken = await turn(session)
        assert spoken[0].server_content.model_turn.parts[0].thought
        assert words(spoken) == "It rains. Take a coat."
        sound = b"".join(message.data for message in spoken if message.data)
        assert len(sound) == 2 * 24 * 40 * len("It rains. Take a coat.")
        assert spoken[-2].server_content.generation_complete
        assert spoken[-1].server_content.turn_complete
        usage = spoken[-1].usage_metadata
        assert (usage.prompt_token_count, usage.response_token_count) == (20, 11)
        assert usage.thoughts_token_count == 3
        assert usage.response_tokens_details[0].modality == types.MediaModality.AUDIO
        await session.send_realtime_input(text="Thanks")
        assert words(await turn(session)) == "Bye."

    live(talk, SPOKEN)


def test_results_one_by_one(live):
    async def talk(session):
        await say(session, "both")
        called = await turn(session)
        await answer(session, called, b="sun")
        await answer(session, called, a="rain")
        return await turn(session)

    messages = live(talk, WRITTEN)
    assert messages[0].text == "Rain and sun."


def test_an_interruption(live):
    async def talk(session):
        await say(session, "long")
        async for message in session.receive():
            assert message.text == "one"
            break
        await say(session, "Stop.")
        stopped = await turn(session)
        assert [message.server_content.interrupted for message in stopped] == [True, None]
        return await turn(session)

    assert live(talk, WRITTEN)[0].text == "All right."


@pytest.mark.parametrize(("text", "code"), [("broken", 1011), ("refused", 1008)])
def test_errors_as_the_client_sees_them(live, text, code):
    async def talk(session):
        await say(session, text)
        return await turn(session)

    with pytest.raises(errors.APIError) as raised:
        live(talk, WRITTEN)
    assert raised.value.code == code
    assert ("Broken." if text == "broken" else "No such model.") in str(raised.value)


def test_a_handle(live):
    """The next connection goes on where the first one ended."""
    resumed = {**WRITTEN, "session_resumption": {}}

    async def first(session):
        await say(session, "both")
        await answer(session, await turn(session), a="rain", b="sun")
        await turn(session)
        async for message in session.receive():
            return message.session_resumption_update
        return None

    async def second(session):
        await say(session, "And now?")
        return await turn(session)

    update = live(first, resumed)
    assert update.resumable
    again = {**WRITTEN, "session_resumption": {"handle": update.new_handle}}
    assert live(second, again)[0].text == "As I said."


# Node

NODE = shutil.which("node")
FOLDER = Path(__file__).parent / "sdks"
needs_node = pytest.mark.skipif(
    NODE is None or not (FOLDER / "node_modules" / "@google" / "genai").is_dir(),
    reason="Node or @google/genai is not installed: run `npm install` in sdks/",
)


@pytest.fixture
def node():
    """Runs a conversation of @google/genai against a server without TLS."""

    def run(*says: str):
        assert NODE is not None
        with ServerThread(loads(PHONE), ServerOptions(speed=1)) as thread:
            command = [NODE, str(FOLDER / "live.mjs"), thread.url, *says]
            done = subprocess.run(command, capture_output=True, text=True, timeout=GIVE_UP)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@needs_node
def test_a_spoken_conversation_with_node(node):
    messages = node("sound", "Thanks")["messages"]
    contents = [message.get("serverContent", {}) for message in messages]
    assert contents[1]["inputTranscription"]["text"] == "What is the weather in Oslo?"
    assert messages[2]["toolCall"]["functionCalls"][0]["args"] == {"city": "Oslo"}
    spoken = "".join(
        c["outputTranscription"]["text"] for c in contents if "outputTranscription" in c
    )
    assert spoken == "It rains. Take a coat.Bye."
    assert sum(content.get("turnComplete", False) for content in contents) == 2


@needs_node
def test_an_error_with_node(node):
    assert node("broken")["closed"] == {"code": 1011, "reason": "Broken."}


# pydantic-ai


def test_pydantic_ai(secured: ServerThread, loop: asyncio.Runner):
    """A session runs the tool, and transcribes both sides."""
    from pydantic_ai import Agent, BinaryAudio
    from pydantic_ai.providers.google import GoogleProvider
    from pydantic_ai.realtime.google import GoogleRealtimeModel

    provider = GoogleProvider(client=live_client(secured))
    agent = Agent()

    @agent.tool_plain
    def get_weather(city: str) -> str:
        return "rain"

    async def talk():
        model = GoogleRealtimeModel("gemini-live", provider=provider)
        said = []
        async with asyncio.timeout(GIVE_UP), agent.realtime(model).session() as session:
            await session.send(BinaryAudio(bytes(6400), media_type="audio/pcm"))
            async for part in session.stream_transcripts():
                said.append((part.speaker, part.transcript))
                if len(said) == 2:
                    return set(said), session.all_messages()
        raise AssertionError("the session ended early")

    said, messages = loop.run(talk())
    assert said == {
        ("user", "What is the weather in Oslo?"),
        ("assistant", "It rains. Take a coat."),
    }
    call = messages[1].parts[0]
    assert (call.tool_name, call.args_as_dict()) == ("get_weather", {"city": "Oslo"})
    usage = messages[-1].usage
    assert (usage.input_tokens, usage.output_tokens, usage.output_audio_tokens) == (20, 14, 11)
