"""Realtime with the official `openai` clients (sync, async, Azure's, for Node), `openai-agents` and
Pydantic AI: text, tools and sound."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import openai
import pytest
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from mockllm import ServerOptions, ServerThread, loads
from tests.timeouts import GIVE_UP

PHONE = """
scenario: phone
match: any
turns:
  - hears: What is the weather in Oslo?
    reply: {tool: get_weather, id: call_1, arguments: {city: Oslo}, split: 4}
  - request: {results: {call_1: {contains: rain}}}
    reply: {text: It rains. Take a coat., split: words}
  - hears: {say: Bye, after: 300ms}
    reply: {text: All right.}
"""
TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}
SILENCE = base64.b64encode(bytes(4800)).decode()
"""100 ms of PCM."""

STRICT = TypeAdapter(RealtimeServerEvent)


@pytest.fixture(scope="module")
def server():
    with ServerThread(loads(PHONE), ServerOptions(speed=0)) as running:
        yield running


@pytest.fixture
def client(server, request):
    with openai.OpenAI(base_url=f"{server.url}/s/{request.node.name}/v1", api_key="k") as made:
        yield made


def read(connection, end="response.done"):
    """The events up to one of a type, each valid by the types of the SDK."""
    events = []
    while not events or events[-1]["type"] not in (end, "error"):
        data = json.loads(connection.recv_bytes())
        STRICT.validate_python(data)
        events.append(data)
    return events


def said(events):
    return "".join(
        event["delta"]
        for event in events
        if event["type"] in ("response.output_text.delta", "response.output_audio_transcript.delta")
    )


def text(words):
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}


def result(id, output):
    return {"type": "function_call_output", "call_id": id, "output": output}


def kinds(events):
    return [event["type"] for event in events]


def test_text_and_a_tool(client):
    with client.realtime.connect(model="gpt-realtime") as connection:
        (created,) = read(connection, "session.created")
        assert created["session"]["model"] == "gpt-realtime"
        connection.session.update(
            session={"type": "realtime", "output_modalities": ["text"], "tools": [TOOL]}
        )
        (updated,) = read(connection, "session.updated")
        assert updated["session"]["output_modalities"] == ["text"]
        assert updated["session"]["audio"]["output"]["voice"] == "alloy"
        connection.conversation.item.create(item=text("The weather?"))
        connection.response.create()
        events = read(connection)
        assert kinds(events)[:5] == [
            "conversation.item.added",
            "conversation.item.done",
            "response.created",
            "response.output_item.added",
            "conversation.item.added",
        ]
        deltas = [e["delta"] for e in events if e["type"].endswith("arguments.delta")]
        assert (len(deltas), json.loads("".join(deltas))) == (4, {"city": "Oslo"})
        (call,) = events[-1]["response"]["output"]
        assert (call["name"], call["call_id"], call["status"]) == (
            "get_weather",
            "call_1",
            "completed",
        )
        assert read(connection, "rate_limits.updated")
        connection.conversation.item.create(item=result("call_1", "rain"))
        connection.response.create()
        events = read(connection)
        assert said(events) == "It rains. Take a coat."
        assert kinds(events)[-4:] == [
            "response.content_part.done",
            "conversation.item.done",
            "response.output_item.done",
            "response.done",
        ]
        assert all(event["event_id"] for event in events)
        usage = events[-1]["response"]["usage"]
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
        assert usage["output_token_details"]["audio_tokens"] == 0


def test_a_spoken_conversation(client):
    """The service finds the ends of speech; sound has the length of the words, and comes behind
    them."""
    with client.realtime.connect(model="gpt-realtime") as connection:
        listening = {"input": {"transcription": {"model": "gpt-realtime-whisper"}}}
        connection.session.update(session={"type": "realtime", "audio": listening})
        read(connection, "session.updated")
        for _ in range(5):
            connection.input_audio_buffer.append(audio=SILENCE)
        events = read(connection)
        assert kinds(events)[:7] == [
            "input_audio_buffer.speech_started",
            "input_audio_buffer.speech_stopped",
            "input_audio_buffer.committed",
            "conversation.item.added",
            "conversation.item.done",
            "response.created",
            "conversation.item.input_audio_transcription.delta",
        ]
        assert events[7]["transcript"] == "What is the weather in Oslo?"
        assert {events[n]["item_id"] for n in (0, 1, 2, 6, 7)} == {events[3]["item"]["id"]}
        connection.conversation.item.create(item=result("call_1", "rain"))
        connection.response.create()
        read(connection, "rate_limits.updated")
        events = read(connection)
        assert said(events) == "It rains. Take a coat."
        spoken = [e for e in events if e["type"] == "response.output_audio.delta"]
        sound = b"".join(base64.b64decode(event["delta"]) for event in spoken)
        assert len(sound) == 2 * 24 * 40 * len("It rains. Take a coat.")
        assert len(set(sound)) == 4  # a tone of two heights
        assert {len(base64.b64decode(event["delta"])) for event in spoken[:-1]} >= {4800}
        first = [e["type"] for e in events if e["type"].endswith(".delta")][:2]
        assert first == ["response.output_audio_transcript.delta", "response.output_audio.delta"]
        details = events[-1]["response"]["usage"]["output_token_details"]
        assert details["audio_tokens"] > details["text_tokens"]
        id = events[-1]["response"]["output"][0]["id"]
        connection.conversation.item.truncate(item_id=id, content_index=0, audio_end_ms=400)
        assert read(connection, "conversation.item.truncated")[-1]["audio_end_ms"] == 400


def test_the_client_ends_the_turn(client):
    """Without detection of speech, by a commit and a request; in other formats of sound."""
    sound = {
        "input": {"turn_detection": None, "format": {"type": "audio/pcmu"}},
        "output": {"format": {"type": "audio/pcma"}},
    }
    with client.realtime.connect(model="gpt-realtime") as connection:
        connection.session.update(session={"type": "realtime", "audio": sound})
        read(connection, "session.updated")
        connection.input_audio_buffer.append(audio=base64.b64encode(bytes(400)).decode())
        connection.input_audio_buffer.commit()
        (error,) = read(connection)
        assert error["error"]["code"] == "input_audio_buffer_commit_empty"
        connection.input_audio_buffer.append(audio=base64.b64encode(bytes(1200)).decode())
        connection.input_audio_buffer.commit()
        read(connection, "conversation.item.done")
        connection.response.create(response={"output_modalities": ["audio"]})
        assert read(connection)[-1]["response"]["output"][0]["type"] == "function_call"
        connection.conversation.item.create(item=result("call_1", "rain"))
        connection.response.create()
        read(connection, "rate_limits.updated")
        events = read(connection)
        deltas = (e["delta"] for e in events if e["type"] == "response.output_audio.delta")
        sound = b"".join(map(base64.b64decode, deltas))
        assert (len(sound), set(sound)) == (8 * 40 * len(said(events)), {0x9A, 0x1A})


def test_asynchronous_client_of_azure(server):
    """Azure's preview has the names of the beta."""

    async def talk():
        client = openai.AsyncAzureOpenAI(
            websocket_base_url=server.url.replace("http", "ws") + "/s/azure/openai",
            azure_endpoint=server.url,
            api_key="k",
            api_version="2025-04-01-preview",
        )
        async with client, client.realtime.connect(model="gpt-realtime") as connection:
            created = await connection.recv()
            assert created.session.modalities == ["text", "audio"]
            update = {"modalities": ["text"], "tools": [TOOL], "input_audio_format": "g711_ulaw"}
            await connection.send({"type": "session.update", "session": update})
            updated = await connection.recv()
            assert updated.session.modalities == ["text"]
            assert updated.session.input_audio_format == "g711_ulaw"
            await connection.send({"type": "conversation.item.create", "item": text("Hi")})
            assert (await connection.recv()).type == "conversation.item.created"
            await connection.send({"type": "response.create"})
            async for event in connection:
                if event.type == "response.done":
                    break
            await connection.send(
                {"type": "conversation.item.create", "item": result("call_1", "rain")}
            )
            await connection.send({"type": "response.create"})
            words = ""
            async for event in connection:
                if event.type == "response.text.delta":
                    words += event.delta
                if event.type == "response.done" and words:
                    break
            return words

    assert asyncio.run(talk()) == "It rains. Take a coat."


@pytest.mark.slow
def test_agents(server):
    """openai-agents runs the tool, and speaks the answer."""
    from agents import function_tool
    from agents.realtime import RealtimeAgent, RealtimeRunner

    @function_tool
    def get_weather(city: str) -> str:
        return f"rain in {city}"

    async def talk():
        runner = RealtimeRunner(RealtimeAgent(name="tester", tools=[get_weather]))
        url = server.url.replace("http", "ws") + "/s/agents/v1/realtime?model=gpt-realtime"
        session = await runner.run(model_config={"url": url, "api_key": "k"})
        sound = b""
        async with session, asyncio.timeout(GIVE_UP):
            await session.send_message("The weather?")
            async for event in session:
                assert event.type != "error", event
                if event.type == "audio":
                    sound += event.audio.data
                if event.type == "agent_end" and sound:
                    break
        return len(sound)

    assert asyncio.run(talk()) == 2 * 24 * 40 * len("It rains. Take a coat.")


@pytest.mark.slow
def test_pydantic_ai(server):
    from pydantic_ai import Agent
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.realtime.openai import OpenAIRealtimeModel

    provider = OpenAIProvider(base_url=f"{server.url}/s/pydantic/v1", api_key="k")
    agent = Agent()

    @agent.tool_plain
    def get_weather(city: str) -> str:
        return f"rain in {city}"

    async def talk():
        model = OpenAIRealtimeModel("gpt-realtime", provider=provider)
        names = []
        async with asyncio.timeout(GIVE_UP), agent.realtime(model).session() as session:
            await session.send("The weather?")
            async for event in session:
                names.append(type(event).__name__)
                if names.count("RealtimeTurnCompleteEvent") == 1 and "ToolResult" in str(names):
                    return names, session.all_messages()
        return names, []

    names, messages = asyncio.run(talk())
    assert "coat" in str(messages), (names, messages)


FOLDER = Path(__file__).parent / "sdks"
NODE = shutil.which("node")


@pytest.mark.slow
@pytest.mark.skipif(
    NODE is None or not (FOLDER / "node_modules" / "openai").is_dir(),
    reason="Node or openai is not installed: run `npm install` in sdks/",
)
def test_node_over_tls(tmp_path):
    """The SDK for Node dials TLS alone, and trusts the authority of the server."""
    assert NODE is not None
    with ServerThread(loads(PHONE), ServerOptions(speed=0, tls=True)) as secured:
        authority = secured.server.authority
        assert authority is not None
        bundle = tmp_path / "authority.pem"
        bundle.write_bytes(authority.trust_bundle(""))
        done = subprocess.run(
            [NODE, str(FOLDER / "realtime.mjs"), secured.url, "The weather?", "Bye"],
            env=os.environ | {"NODE_EXTRA_CA_CERTS": str(bundle)},
            capture_output=True,
            text=True,
            timeout=GIVE_UP,
        )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["text"], seen["error"]) == ("It rains. Take a coat.All right.", None)
    assert seen["types"].count("response.done") == 3
    assert seen["types"].count("response.function_call_arguments.delta") > 1


@pytest.mark.slow
@pytest.mark.skipif(
    NODE is None or not (FOLDER / "node_modules" / "openai").is_dir(),
    reason="Node or openai is not installed: run `npm install` in sdks/",
)
def test_node_beside_mockllm_run(tmp_path):
    """The base URL is without TLS; the SDK dials TLS at its port, and trusts it."""
    (tmp_path / "phone.yaml").write_text(PHONE)
    code = f"node {FOLDER / 'realtime.mjs'} $MOCKLLM_URL 'The weather?' Bye"
    command = [sys.executable, "-m", "mockllm", "run", tmp_path, "--", "sh", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GIVE_UP)
    assert done.stderr == "mockllm: 3 requests: 3 played\n"
    assert json.loads(done.stdout)["text"] == "It rains. Take a coat.All right."
