"""Clients of Responses, Realtime and Gemini Live over a WebSocket, as their documentation has them.

python with_python.py CLIENT < CASES. A case is a line of JSON: the `url` of a server, how many
seconds it may take (`limit`), and how the user `cancel`s after two words: "" not at all, `task` by
ending the task that reads, `call` with what the client has for it. For each a line of JSON says
what the user gets: `text`, the calls that were executed, `error`, whether the client still waited
at the end.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from contextlib import suppress

HOLD = 3
"""Seconds after a cancellation in which nothing else is done."""
ENDS = ("response.completed", "response.incomplete", "response.failed", "response.done")
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL = {"type": "function", "name": "get_weather", "parameters": PARAMETERS}
EXECUTED: list[str] = []
TEXT: list[str] = []
CASE: dict = {}


def get_weather(city: str) -> str:
    """The weather."""
    EXECUTED.append(city)
    return "rain"


async def heard(text: str, cancel=None) -> None:
    """The user gets a piece of the answer, and may want no more of it.

    Args:
        cancel: what the client has to end an answer.
    """
    if text:
        TEXT.append(text)
    if CASE["cancel"] == "task" and len(TEXT) == 2:
        CASE["task"].cancel()
        await asyncio.sleep(0)
    if CASE["cancel"] == "call" and len(TEXT) == 2:
        result = cancel()
        if result is not None:
            await result


async def held() -> None:
    """After a cancellation with what the client has, nothing else is done for a time."""
    if CASE["cancel"] == "call":
        await asyncio.sleep(HOLD)


async def openai_events(connection) -> None:
    """As the user of openai reads; calls would be executed at the end of the answer."""
    async for event in connection:
        if event.type in ("response.output_text.delta", "response.output_audio_transcript.delta"):
            await heard(event.delta, connection.close)
        if event.type == "error":
            raise RuntimeError(f"event error: {event.error.code}")
        if event.type in ENDS:
            return


async def openai(url: str, **options) -> None:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="k")
    async with client.responses.connect(**options) as connection:
        await connection.response.create(
            model="gpt-5.2", input="hi", tools=[{**TOOL, "strict": False}]
        )
        await openai_events(connection)


async def openai_reconnecting(url: str) -> None:
    await openai(url, on_reconnecting=lambda event: None)


async def openai_realtime(url: str, **options) -> None:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="k")
    async with client.realtime.connect(model="gpt-realtime", **options) as connection:
        session = {"type": "realtime", "output_modalities": ["text"], "tools": [TOOL]}
        await connection.session.update(session=session)
        content = [{"type": "input_text", "text": "hi"}]
        await connection.conversation.item.create(
            item={"type": "message", "role": "user", "content": content}
        )
        await connection.response.create()
        await openai_events(connection)


async def openai_realtime_reconnecting(url: str) -> None:
    await openai_realtime(url, on_reconnecting=lambda event: None)


async def agents(url: str) -> None:
    from agents import Agent, RunConfig, Runner, function_tool
    from agents.models.openai_responses import OpenAIResponsesWSModel
    from openai import AsyncOpenAI

    model = OpenAIResponsesWSModel("gpt-5.2", AsyncOpenAI(base_url=f"{url}/v1", api_key="k"))
    agent = Agent(name="a", model=model, tools=[function_tool(get_weather)])
    try:
        result = Runner.run_streamed(agent, "hi", run_config=RunConfig(tracing_disabled=True))
        async for event in result.stream_events():
            data = getattr(event, "data", None)
            if getattr(data, "type", "") == "response.output_text.delta":
                await heard(data.delta, result.cancel)
        await held()
    finally:
        await model.close()


async def agents_realtime(url: str) -> None:
    from agents import function_tool
    from agents.realtime import RealtimeAgent, RealtimeRunner

    agent = RealtimeAgent(name="a", tools=[function_tool(get_weather)])
    settings = {"output_modalities": ["text"]}
    runner = RealtimeRunner(agent, config={"model_settings": settings})
    address = url.replace("http", "ws", 1) + "/v1/realtime?model=gpt-realtime"
    session = await runner.run(model_config={"url": address, "api_key": "k"})
    async with session:
        await session.send_message("hi")
        async for event in session:
            if event.type == "raw_model_event" and event.data.type in (
                "output_text_delta", "transcript_delta"
            ):  # fmt: skip
                await heard(event.data.delta, session.interrupt)
            if event.type == "error":
                raise RuntimeError(f"event error: {event.error}")
            if event.type == "agent_end" and not (EXECUTED and not TEXT):
                await held()
                return


async def pydantic_ai(url: str) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=f"{url}/v1", api_key="k")
    model = OpenAIResponsesModel("gpt-5.2", provider=provider)
    agent = Agent(model, model_settings={"openai_transport": "websocket"}, tools=[get_weather])

    async def handle(context, events) -> None:
        async for event in events:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                await heard(event.part.content)
            if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                await heard(event.delta.content_delta)

    await agent.run("hi", event_stream_handler=handle)


async def pydantic_session(model, settings: dict) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent

    realtime = Agent(tools=[get_weather]).realtime(model, model_settings=settings)
    async with realtime.session() as session:
        await session.send("hi")
        async for event in session:
            piece = event.part if isinstance(event, PartStartEvent) else None
            piece = event.delta if isinstance(event, PartDeltaEvent) else piece
            for name in ("content", "content_delta", "transcript_delta"):
                if isinstance(text := getattr(piece, name, None), str) and text:
                    await heard(text, session.interrupt)
            kind = getattr(event, "event_kind", "")
            if kind == "realtime_session_error":
                raise RuntimeError(f"event error: {event.code or event.message}")
            if kind == "realtime_turn_complete" and not (EXECUTED and not TEXT):
                await held()
                return


async def pydantic_ai_realtime(url: str, **settings) -> None:
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.realtime.openai import OpenAIRealtimeModel

    provider = OpenAIProvider(base_url=f"{url}/v1", api_key="k")
    model = OpenAIRealtimeModel("gpt-realtime", provider=provider)
    await pydantic_session(model, {"output_modality": "text", **settings})


async def pydantic_ai_realtime_reconnecting(url: str) -> None:
    await pydantic_ai_realtime(url, reconnect={})


async def pydantic_ai_live(url: str) -> None:
    from google import genai
    from pydantic_ai.providers.google import GoogleProvider
    from pydantic_ai.realtime.google import GoogleRealtimeModel

    client = genai.Client(api_key="k", http_options={"base_url": url})
    model = GoogleRealtimeModel("gemini-live", provider=GoogleProvider(client=client))
    await pydantic_session(model, {})


async def google_genai(url: str) -> None:
    from google import genai

    client = genai.Client(api_key="k", http_options={"base_url": url})
    tool = {"name": "get_weather", "parameters": PARAMETERS}
    config = {"response_modalities": ["TEXT"], "tools": [{"function_declarations": [tool]}]}
    async with client.aio.live.connect(model="gemini-live", config=config) as session:
        await session.send_client_content(turns={"role": "user", "parts": [{"text": "hi"}]})
        while not (TEXT or EXECUTED):  # receive() ends after each turn
            async for message in session.receive():
                content = message.server_content
                for part in content.model_turn.parts if content and content.model_turn else ():
                    await heard(part.text, session.close)
                for call in message.tool_call.function_calls if message.tool_call else ():
                    result = {"output": get_weather(**call.args)}
                    await session.send_tool_response(
                        function_responses={"id": call.id, "name": call.name, "response": result}
                    )


CLIENTS = {
    "openai": openai,
    "openai-reconnecting": openai_reconnecting,
    "agents": agents,
    "pydantic-ai": pydantic_ai,
    "openai-realtime": openai_realtime,
    "openai-realtime-reconnecting": openai_realtime_reconnecting,
    "agents-realtime": agents_realtime,
    "pydantic-ai-realtime": pydantic_ai_realtime,
    "pydantic-ai-realtime-reconnecting": pydantic_ai_realtime_reconnecting,
    "google-genai": google_genai,
    "pydantic-ai-live": pydantic_ai_live,
}


async def outcome(client) -> dict:
    """The outcome of a case for the user of a client."""
    EXECUTED.clear()
    TEXT.clear()
    error, waits = "", False
    CASE["task"] = task = asyncio.ensure_future(client(CASE["url"]))
    try:
        await asyncio.wait_for(asyncio.shield(task), CASE["limit"])
    except TimeoutError:
        waits = True
        task.cancel()
        await asyncio.wait([task])
    except asyncio.CancelledError:
        await asyncio.sleep(HOLD)
    except Exception as raised:  # noqa: BLE001 - it is what the user gets
        error = f"{type(raised).__name__}: {raised}".splitlines()[0][:200]
    text = "".join(TEXT)
    return {"text": text, "executed": list(EXECUTED), "error": error, "waits": waits}


async def main(client) -> None:
    with suppress(Exception):  # nobody listens there: the client loads what it needs
        CASE.update(cancel="")
        await client("http://127.0.0.1:9")
    for line in sys.stdin.read().splitlines():
        CASE.update(json.loads(line))
        print(json.dumps(await outcome(client)), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asyncio.run(main(CLIENTS[sys.argv[1]]))
