"""Clients of Responses over a WebSocket, as their documentation has them.

python with_python.py CLIENT < URLS: for each URL a line of JSON with what the user gets: `text`,
the calls that were executed, `error`, and whether the client still waited after LIMIT seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from contextlib import suppress

LIMIT = 8
ENDS = ("response.completed", "response.incomplete", "response.failed", "error")
TOOL = {"type": "function", "name": "get_weather", "strict": False, "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}}}  # fmt: skip
EXECUTED: list[str] = []
TEXT: list[str] = []


async def openai(url: str) -> None:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="k")
    async with client.responses.connect() as connection:
        await connection.response.create(model="gpt-5.2", input="hi", tools=[TOOL])
        async for event in connection:
            if event.type == "response.output_text.delta":
                TEXT.append(event.delta)
            if event.type == "error":
                raise RuntimeError(f"event error: {event.error.code}")
            if event.type in ENDS:
                return


async def openai_reconnecting(url: str) -> None:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="k")
    async with client.responses.connect(on_reconnecting=lambda event: None) as connection:
        await connection.response.create(model="gpt-5.2", input="hi", tools=[TOOL])
        async for event in connection:
            if event.type == "response.output_text.delta":
                TEXT.append(event.delta)
            if event.type == "error":
                raise RuntimeError(f"event error: {event.error.code}")
            if event.type in ENDS:
                return


async def agents(url: str) -> None:
    from agents import Agent, RunConfig, Runner, function_tool
    from agents.models.openai_responses import OpenAIResponsesWSModel
    from openai import AsyncOpenAI

    @function_tool
    def get_weather(city: str) -> str:
        """The weather."""
        EXECUTED.append(city)
        return "rain"

    model = OpenAIResponsesWSModel("gpt-5.2", AsyncOpenAI(base_url=url, api_key="k"))
    agent = Agent(name="a", model=model, tools=[get_weather])
    try:
        result = Runner.run_streamed(agent, "hi", run_config=RunConfig(tracing_disabled=True))
        async for event in result.stream_events():
            data = getattr(event, "data", None)
            if getattr(data, "type", "") == "response.output_text.delta":
                TEXT.append(data.delta)
    finally:
        await model.close()


async def pydantic_ai(url: str) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIResponsesModel("gpt-5.2", provider=OpenAIProvider(base_url=url, api_key="k"))
    agent = Agent(model, model_settings={"openai_transport": "websocket"})

    @agent.tool_plain
    def get_weather(city: str) -> str:
        EXECUTED.append(city)
        return "rain"

    async def handle(context, events) -> None:
        async for event in events:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                TEXT.append(event.part.content)
            if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                TEXT.append(event.delta.content_delta)

    await agent.run("hi", event_stream_handler=handle)


CLIENTS = {
    "openai": openai,
    "openai-reconnecting": openai_reconnecting,
    "agents": agents,
    "pydantic-ai": pydantic_ai,
}


async def main(name: str) -> None:
    with suppress(Exception):  # nobody listens there: the client loads what it needs
        await CLIENTS[name]("http://127.0.0.1:9/v1")
    for line in sys.stdin.read().split():
        EXECUTED.clear()
        TEXT.clear()
        error, waits = "", False
        try:
            await asyncio.wait_for(CLIENTS[name](line), LIMIT)
        except TimeoutError:
            waits = True
        except Exception as raised:  # noqa: BLE001 - it is what the user gets
            error = f"{type(raised).__name__}: {raised}".splitlines()[0][:200]
        outcome = {
            "text": "".join(TEXT), "executed": list(EXECUTED), "error": error, "waits": waits,
        }  # fmt: skip
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asyncio.run(main(sys.argv[1]))
