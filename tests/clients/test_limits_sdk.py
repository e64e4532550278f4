"""Limits of a request with the official clients: what each of them reads of an answer that ends at
a limit, or before a stop sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import anthropic
import cohere
import httpx
import ollama
import openai
import pytest
from google import genai
from google.genai import types

from mockllm.scenario.part_model import AutoPart
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.clients.bedrock_client import bedrock
from tests.clients.conftest import LEAVES_SOCKETS
from tests.clients.dialects import DIALECTS
from tests.timeouts import GIVE_UP

pytestmark = LEAVES_SOCKETS

PROMPT = "One two three four five six seven eight nine ten eleven twelve thirteen."
SAID = [{"role": "user", "content": PROMPT}]


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread([], ServerOptions(speed=0, fallback=True)) as running:
        yield running


Ended = tuple[str | None, str, int | None]
"""What an answer says, how it ended, and how many tokens it has."""


def chat(root: str, most: int, stop: list[str]) -> Ended:
    with openai.OpenAI(base_url=f"{root}/v1", api_key="k", timeout=GIVE_UP) as client:
        answer = client.chat.completions.create(
            model="gpt-4o", messages=SAID, max_completion_tokens=most, stop=stop
        )
    usage = answer.usage
    choice = answer.choices[0]
    return choice.message.content, choice.finish_reason, usage and usage.completion_tokens


def completions(root: str, most: int, stop: list[str]) -> Ended:
    with openai.OpenAI(base_url=f"{root}/v1", api_key="k", timeout=GIVE_UP) as client:
        answer = client.completions.create(model="m", prompt=PROMPT, max_tokens=most, stop=stop)
    usage, choice = answer.usage, answer.choices[0]
    return choice.text, choice.finish_reason, usage and usage.completion_tokens


def responses(root: str, most: int, _stop: list[str]) -> Ended:
    with openai.OpenAI(base_url=f"{root}/v1", api_key="k", timeout=GIVE_UP) as client:
        answer = client.responses.create(model="gpt-4o", input=PROMPT, max_output_tokens=most)
    details, usage = answer.incomplete_details, answer.usage
    reason = answer.status if details is None else details.reason
    return answer.output_text, str(reason), usage and usage.output_tokens


def messages(root: str, most: int, stop: list[str]) -> Ended:
    with (
        anthropic.Anthropic(base_url=root, api_key="k", timeout=GIVE_UP) as client,
        client.messages.stream(
            model=DIALECTS["anthropic"].model, max_tokens=most, messages=SAID, stop_sequences=stop
        ) as stream,
    ):
        answer = stream.get_final_message()
    reason = f"{answer.stop_reason} {answer.stop_sequence}"
    return stream.get_final_text(), reason, answer.usage.output_tokens


def gemini(root: str, most: int, stop: list[str]) -> Ended:
    options = types.HttpOptions(base_url=root, timeout=1000 * int(GIVE_UP))
    config = types.GenerateContentConfig(max_output_tokens=most, stop_sequences=stop)
    with genai.Client(api_key="k", http_options=options) as client:
        answer = client.models.generate_content(model="m", contents=PROMPT, config=config)
    usage, candidate = answer.usage_metadata, (answer.candidates or [])[0]
    assert candidate.finish_reason is not None
    return answer.text, candidate.finish_reason.value, usage and usage.candidates_token_count


def converse(root: str, most: int, stop: list[str]) -> Ended:
    with bedrock(root) as client:
        answer = client.converse(
            modelId="m",
            messages=[{"role": "user", "content": [{"text": PROMPT}]}],
            inferenceConfig={"maxTokens": most, "stopSequences": stop},
        )
    text = answer["output"]["message"]["content"][0]["text"]
    return text, answer["stopReason"], answer["usage"]["outputTokens"]


def v2_chat(root: str, most: int, stop: list[str]) -> Ended:
    with httpx.Client(timeout=GIVE_UP) as http:
        client = cohere.ClientV2(api_key="k", base_url=root, httpx_client=http)
        answer = client.chat(
            model="command-a-03-2025", messages=SAID, max_tokens=most, stop_sequences=stop
        )
    usage = answer.usage and answer.usage.tokens
    text = (answer.message.content or [])[0]
    return text.text, answer.finish_reason, int(usage.output_tokens) if usage else None


def llama(root: str, most: int, stop: list[str]) -> Ended:
    client = ollama.Client(host=root, timeout=GIVE_UP)
    options = {"num_predict": most, "stop": stop}
    answer = client.chat(model="llama3.2", messages=SAID, options=options)
    return answer.message.content, answer.done_reason or "", answer.eval_count


CLIENTS: dict[Callable[[str, int, list[str]], Ended], tuple[str, str]] = {
    chat: ("length", "stop"),
    completions: ("length", "stop"),
    responses: ("max_output_tokens", ""),
    messages: ("max_tokens None", "stop_sequence  three"),
    gemini: ("MAX_TOKENS", "STOP"),
    converse: ("max_tokens", "stop_sequence"),
    v2_chat: ("MAX_TOKENS", "STOP_SEQUENCE"),
    llama: ("length", "stop"),
}
"""By client: how an answer ends at its limit of tokens, and before a stop sequence; "": it has
none."""
by_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)


@by_client
def test_max_tokens(server: ServerThread, client: Callable[..., Ended]) -> None:
    """The text is cut, the client says why, and the usage has the limit."""
    cut, _ = CLIENTS[client]
    # A token is four bytes. Responses requires at least 16.
    assert client(server.url, 16, ["nowhere"]) == (PROMPT[:64], cut, 16)


@by_client
def test_stop_sequences(server: ServerThread, client: Callable[..., Ended]) -> None:
    """The text ends before the sequence; the finish is that of the API."""
    _, stopped = CLIENTS[client]
    if stopped:
        assert client(server.url, 100, ["nine", " three"]) == ("One two", stopped, 2)


def test_a_chunk_for_each_token() -> None:
    """With vLLM's `ignore_eos` the official client gets exactly `max_tokens` chunks with text."""
    options = ServerOptions(speed=0, fallback=AutoPart("lognormal(20, p99=100)"))
    with (
        ServerThread([], options) as server,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", timeout=GIVE_UP) as client,
    ):
        chunks = list(
            client.chat.completions.create(
                model="m",
                messages=SAID,
                max_tokens=150,
                stream=True,
                stream_options={"include_usage": True},
                extra_body={"ignore_eos": True, "min_tokens": 150},
            )
        )
    texts = [choice.delta.content for chunk in chunks for choice in chunk.choices]
    assert len([text for text in texts if text]) == 150
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 150
