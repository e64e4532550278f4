"""Python SDKs and frameworks as their documentation has them, with a read timeout of 0.5 s.

python raw_server.py chat orderly -- python with_python.py openai
"""

from __future__ import annotations

import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it downloads a table of prices otherwise
URL = os.environ["BASE_URL"]
ASK = [{"role": "user", "content": "hi"}]
KEY = "k"


def openai() -> None:
    from openai import OpenAI, Timeout

    client = OpenAI(base_url=URL, api_key=KEY, timeout=Timeout(10, read=0.5))
    for _ in range(REQUESTS):
        with client.chat.completions.stream(model="gpt-4o", messages=ASK) as stream:
            for _ in stream:
                pass
            choice = stream.get_final_completion().choices[0]
        say(choice.message.content, choice.message.tool_calls, choice.finish_reason)


def responses() -> None:
    from openai import OpenAI, Timeout

    client = OpenAI(base_url=URL, api_key=KEY, timeout=Timeout(10, read=0.5))
    with client.responses.stream(model="gpt-4o", input="hi") as stream:
        for _ in stream:
            pass
        say(stream.get_final_response().output_text)


def anthropic() -> None:
    from anthropic import Anthropic, Timeout

    client = Anthropic(base_url=URL, api_key=KEY, timeout=Timeout(10, read=0.5))
    for _ in range(REQUESTS):
        with client.messages.stream(model="m", max_tokens=99, messages=ASK) as stream:
            for _ in stream:
                pass
            message = stream.get_final_message()
        say(message.content, message.stop_reason)


def gemini() -> None:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(
        base_url=URL, timeout=500, retry_options=types.HttpRetryOptions(attempts=3)
    )
    client = genai.Client(api_key=KEY, http_options=options)
    for _ in range(REQUESTS):
        chunks = list(client.models.generate_content_stream(model="m", contents="hi"))
        say([chunk.text for chunk in chunks], [chunk.function_calls for chunk in chunks])


def langchain() -> None:
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="gpt-4o", base_url=URL, api_key=KEY, timeout=0.5)
    message = None
    for chunk in model.stream("hi"):
        message = chunk if message is None else message + chunk
    say(message.content, message.tool_calls, message.invalid_tool_calls, message.response_metadata)


def langchain_anthropic() -> None:
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model="m", base_url=URL, api_key=KEY, timeout=0.5, max_tokens=99)
    message = None
    for chunk in model.stream("hi"):
        message = chunk if message is None else message + chunk
    say(message.content, message.tool_calls, message.invalid_tool_calls, message.response_metadata)


def pydantic_ai() -> None:
    import asyncio

    from openai import AsyncOpenAI, Timeout
    from pydantic_ai import ModelRequest
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def run() -> None:
        client = AsyncOpenAI(base_url=URL, api_key=KEY, timeout=Timeout(10, read=0.5))
        model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(openai_client=client))
        async with model_request_stream(model, [ModelRequest.user_text_prompt("hi")]) as stream:
            async for _ in stream:
                pass
            say(stream.get())

    asyncio.run(run())


def agents() -> None:
    import asyncio

    import agents as library
    from openai import AsyncOpenAI, Timeout

    async def run() -> None:
        client = AsyncOpenAI(base_url=URL, api_key=KEY, timeout=Timeout(10, read=0.5))
        model = library.OpenAIChatCompletionsModel(model="gpt-4o", openai_client=client)
        agent = library.Agent(name="tester", model=model)
        config = library.RunConfig(tracing_disabled=True)
        result = library.Runner.run_streamed(agent, "hi", run_config=config)
        async for _ in result.stream_events():
            pass
        say(result.final_output)

    asyncio.run(run())


def agents_cancel() -> None:
    import asyncio

    import agents as library
    from openai import AsyncOpenAI

    async def run() -> None:
        client = AsyncOpenAI(base_url=URL, api_key=KEY)
        model = library.OpenAIChatCompletionsModel(model="gpt-4o", openai_client=client)
        agent = library.Agent(name="tester", model=model)
        config = library.RunConfig(tracing_disabled=True)
        result = library.Runner.run_streamed(agent, "hi", run_config=config)
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                say("leaves the loop")
                break
        await asyncio.sleep(6)
        say("six seconds later")

    asyncio.run(run())


def litellm() -> None:
    import litellm as library

    chunks = library.completion(
        model="openai/gpt-4o", api_base=URL, api_key=KEY, messages=ASK, stream=True,
        timeout=0.5, num_retries=2,
    )  # fmt: skip
    message = library.stream_chunk_builder(list(chunks), messages=ASK)
    say(message.choices[0].message, message.choices[0].finish_reason)


def smolagents() -> None:
    from smolagents import OpenAIModel
    from smolagents.models import ChatMessage, MessageRole, agglomerate_stream_deltas

    model = OpenAIModel("gpt-4o", api_base=URL, api_key=KEY, client_kwargs={"timeout": 0.5})
    ask = ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": "hi"}])
    message = agglomerate_stream_deltas(list(model.generate_stream([ask])))
    say(message.content, message.tool_calls)


def llama_index() -> None:
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai import OpenAI

    llm = OpenAI(model="gpt-4o", api_base=URL, api_key=KEY, timeout=0.5)
    last = list(llm.stream_chat([ChatMessage("hi")]))[-1]
    say(last.message)


def say(*values: object) -> None:
    print("  CLIENT returns:", *map(repr, values), flush=True)


REQUESTS = int(os.environ.get("REQUESTS", "1"))
try:
    globals()[sys.argv[1]]()
except Exception as error:  # noqa: BLE001 - what the user gets
    kind = type(error)
    print(f"  CLIENT raises: {kind.__module__}.{kind.__qualname__}: {error}"[:300], flush=True)
