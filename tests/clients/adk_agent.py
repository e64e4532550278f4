"""An agent of google-adk over Gemini Interactions: `python adk_agent.py URL STREAMED`.

It runs in the environment of the frameworks, and prints what the agent did as one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys

from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types


def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"22 degrees in {city}"


async def run(url: str, *, streamed: bool) -> dict[str, object]:
    """The calls and the last text of one conversation."""
    model = Gemini(model="gemini-3.5-flash", use_interactions_api=True, base_url=url)
    agent = Agent(name="agent", model=model, tools=[get_weather])
    runner = InMemoryRunner(agent=agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="weather")])
    mode = StreamingMode.SSE if streamed else StreamingMode.NONE
    calls, text = [], ""
    async for event in runner.run_async(
        user_id="u",
        session_id=session.id,
        new_message=message,
        run_config=RunConfig(streaming_mode=mode),
    ):
        if event.partial:
            continue
        parts = (event.content and event.content.parts) or ()
        calls += [
            [part.function_call.name, part.function_call.args]
            for part in parts
            if part.function_call
        ]
        text = "".join(part.text for part in parts if part.text and not part.thought)
    return {"calls": calls, "text": text}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(sys.argv[1], streamed=sys.argv[2] == "True"))))
