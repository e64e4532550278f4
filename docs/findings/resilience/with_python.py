"""Python SDKs and frameworks as their documentation has them, with a read timeout of 0.5 s.

python raw_server.py chat orderly -- python with_python.py openai

DEFAULTS=1: with the timeouts that the clients have by default.

CANCEL=leave, call or drop: after the first piece, the loop is left (and the `with`) and the stream
kept; what the client has to cancel is called; or nothing refers to the stream any more.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # it downloads a table of prices otherwise
URL = os.environ["BASE_URL"]
WAY = os.environ.get("CANCEL", "")
READ = 10 if WAY else 0.5
DEFAULTS = "DEFAULTS" in os.environ  # of the timeout, too
REQUESTS = int(os.environ.get("REQUESTS", "1"))
ASK = [{"role": "user", "content": "hi"}]
KEY = "k"
KEPT = []


class Enough(Exception):  # noqa: N818 - no error
    """The user wants no more."""


def read(stream, cancel=None):
    for piece in stream:
        if WAY == "call" and cancel is not None:
            cancel()
            hold()
        if WAY:
            KEPT.append(stream if WAY == "leave" else None)
            raise Enough
        yield piece


async def aread(stream, cancel=None, is_text=lambda piece: True):
    async for piece in stream:
        if not is_text(piece):
            continue
        if WAY == "call" and cancel is not None:
            done = cancel()
            if done is not None:
                await done
            await asyncio.to_thread(hold)
        if WAY:
            KEPT.append(stream if WAY == "leave" else None)
            raise Enough
        yield piece


def hold():
    say(f"cancels: {WAY}")
    for _ in range(2):
        if WAY == "drop":
            gc.collect()
        time.sleep(3)
    say("six seconds later")


@contextmanager
def entered(manager):
    with ExitStack() as stack:
        try:
            yield stack.enter_context(manager)
        finally:
            if WAY == "drop":
                stack.pop_all()


@asynccontextmanager
async def aentered(manager):
    async with AsyncExitStack() as stack:
        try:
            yield await stack.enter_async_context(manager)
        finally:
            if WAY == "drop":
                stack.pop_all()


def run(work):
    async def whole():
        try:
            await work()
        except Enough:
            await asyncio.to_thread(hold)

    asyncio.run(whole())


def openai():
    from openai import OpenAI, Timeout

    client = OpenAI(base_url=URL, api_key=KEY, timeout=Timeout(10, read=READ))
    for _ in range(REQUESTS):
        with entered(client.chat.completions.stream(model="gpt-4o", messages=ASK)) as stream:
            for _ in read(stream, stream.close):
                pass
            choice = stream.get_final_completion().choices[0]
        say(choice.message.content, choice.message.tool_calls, choice.finish_reason)


def openai_create():
    from openai import OpenAI, Timeout

    client = OpenAI(base_url=URL, api_key=KEY, timeout=Timeout(10, read=READ))
    stream = client.chat.completions.create(model="gpt-4o", messages=ASK, stream=True)
    deltas = [chunk.choices[0].delta for chunk in read(stream, stream.close)]
    say([delta.content for delta in deltas], [delta.tool_calls for delta in deltas])


def responses():
    from openai import OpenAI, Timeout

    client = OpenAI(base_url=URL, api_key=KEY, timeout=Timeout(10, read=READ))
    with entered(client.responses.stream(model="gpt-4o", input="hi")) as stream:
        for _ in read(stream, stream.close):
            pass
        say(stream.get_final_response().output_text)


def anthropic():
    from anthropic import Anthropic, Timeout

    client = Anthropic(base_url=URL, api_key=KEY, timeout=Timeout(10, read=READ))
    for _ in range(REQUESTS):
        with entered(client.messages.stream(model="m", max_tokens=99, messages=ASK)) as stream:
            for _ in read(stream, stream.close):
                pass
            message = stream.get_final_message()
        say(message.content, message.stop_reason)


def gemini():
    from google import genai
    from google.genai import types

    limits = {"timeout": int(READ * 1000), "retry_options": types.HttpRetryOptions(attempts=3)}
    options = types.HttpOptions(base_url=URL, **({} if DEFAULTS else limits))
    client = genai.Client(api_key=KEY, http_options=options)
    for _ in range(REQUESTS):
        stream = client.models.generate_content_stream(model="m", contents="hi")
        chunks = list(read(stream))
        say([chunk.text for chunk in chunks], [chunk.function_calls for chunk in chunks])


def langchain():
    from langchain_openai import ChatOpenAI

    limits = {} if DEFAULTS else {"timeout": READ}
    message_of(ChatOpenAI(model="gpt-4o", base_url=URL, api_key=KEY, **limits))


def langchain_anthropic():
    from langchain_anthropic import ChatAnthropic

    limits = {} if DEFAULTS else {"timeout": READ}
    message_of(ChatAnthropic(model="m", base_url=URL, api_key=KEY, max_tokens=99, **limits))


def message_of(model):
    message = None
    stream = model.stream("hi")
    for chunk in read(stream):
        message = chunk if message is None else message + chunk
    say(message.content, message.tool_calls, message.invalid_tool_calls, message.response_metadata)


def pydantic_ai():
    from pydantic_ai.models.openai import OpenAIChatModel

    run(lambda: pydantic(openai_model(OpenAIChatModel)))


def pydantic_ai_responses():
    from pydantic_ai.models.openai import OpenAIResponsesModel

    run(lambda: pydantic(openai_model(OpenAIResponsesModel)))


def openai_model(kind):
    from openai import AsyncOpenAI, Timeout
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=URL, api_key=KEY, timeout=Timeout(10, read=READ))
    return kind("gpt-4o", provider=OpenAIProvider(openai_client=client))


def pydantic_ai_anthropic():
    run(lambda: pydantic(anthropic_model()))


def anthropic_model():
    from anthropic import AsyncAnthropic, Timeout
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(base_url=URL, api_key=KEY, timeout=Timeout(10, read=READ))
    return AnthropicModel("m", provider=AnthropicProvider(anthropic_client=client))


async def pydantic(model):
    from pydantic_ai import ModelRequest
    from pydantic_ai.direct import model_request_stream

    ask = [ModelRequest.user_text_prompt("hi")]
    async with aentered(model_request_stream(model, ask)) as stream:
        async for _ in aread(stream, stream.cancel):
            pass
        say(stream.get().parts, stream.get().finish_reason)


def pydantic_ai_tool():
    """An agent with a tool, which says when it is executed."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel

    agent = Agent(openai_model(OpenAIChatModel))

    @agent.tool_plain
    def get_weather(city: str = "nowhere") -> str:
        say("EXECUTES get_weather", city)
        return "sunny"

    async def work():
        async with agent.run_stream_events("hi") as events:
            async for event in events:
                if event.event_kind == "agent_run_result":
                    say(event.result.output)

    run(work)


def agents():
    run(lambda: agent_run("OpenAIChatCompletionsModel"))


def agents_responses():
    run(lambda: agent_run("OpenAIResponsesModel"))


def agents_tool():
    """An agent with a tool, which says when it is executed."""
    import agents as library

    @library.function_tool(strict_mode=False)
    def get_weather(city: str = "nowhere") -> str:
        say("EXECUTES get_weather", city)
        return "sunny"

    run(lambda: agent_run("OpenAIChatCompletionsModel", [get_weather]))


async def agent_run(kind, tools=()):
    import agents as library
    from openai import AsyncOpenAI, Timeout

    client = AsyncOpenAI(base_url=URL, api_key=KEY, timeout=Timeout(10, read=READ))
    model = getattr(library, kind)(model="gpt-4o", openai_client=client)
    agent = library.Agent(
        name="tester", model=model, tools=list(tools), tool_use_behavior="stop_on_first_tool"
    )
    config = library.RunConfig(tracing_disabled=True)
    result = library.Runner.run_streamed(agent, "hi", run_config=config)
    events = result.stream_events()
    async for _ in aread(events, result.cancel, lambda one: one.type == "raw_response_event"):
        pass
    say(result.final_output, [response.output for response in result.raw_responses])


def litellm():
    import litellm as library

    library.suppress_debug_info = True
    chunks = library.completion(
        model="openai/gpt-4o", api_base=URL, api_key=KEY, messages=ASK, stream=True,
        timeout=READ, num_retries=2,
    )  # fmt: skip
    message = library.stream_chunk_builder(list(read(chunks)), messages=ASK)
    say(message and (message.choices[0].message, message.choices[0].finish_reason))


def smolagents():
    from smolagents import OpenAIModel
    from smolagents.models import ChatMessage, MessageRole, agglomerate_stream_deltas

    model = OpenAIModel("gpt-4o", api_base=URL, api_key=KEY, client_kwargs={"timeout": READ})
    ask = ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": "hi"}])
    message = agglomerate_stream_deltas(list(read(model.generate_stream([ask]))))
    say(message.content, message.tool_calls)


def llama_index():
    from llama_index.core.tools import FunctionTool
    from llama_index.llms.openai import OpenAI

    def get_weather(city: str = "nowhere") -> str:
        return "sunny"

    llm = OpenAI(model="gpt-4o", api_base=URL, api_key=KEY, timeout=READ)
    tools = [FunctionTool.from_defaults(get_weather)]
    answers = list(read(llm.stream_chat_with_tools(tools, user_msg="hi")))
    for last in answers[-1:]:
        calls = llm.get_tool_calls_from_response(last, error_on_no_tool_call=False)
        say(last.message.content, calls)
    say(len(answers), "responses")


def say(*values):
    print("  CLIENT returns:", *(" ".join(repr(one).split())[:300] for one in values), flush=True)


def named(error):
    """What tells a program the cause: the class, and what it has of a status, a code and a type."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    names = ("status_code", "code", "type", "status")
    has = {name: value for name in names if (value := getattr(error, name, None)) is not None}
    kind = type(error)
    return f"{kind.__module__}.{kind.__qualname__}{has or ''}: {' '.join(str(error).split())}"[:300]


try:
    globals()[sys.argv[1]]()
except Enough:
    hold()
except Exception as error:  # noqa: BLE001 - what the user gets
    print(f"  CLIENT raises: {named(error)}", flush=True)
