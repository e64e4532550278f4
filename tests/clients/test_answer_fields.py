"""Facts about an answer that a scenario states, as the official SDKs read them."""

from __future__ import annotations

from collections.abc import Iterator

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from mockllm.replay.loading import loads
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread
from tests.clients.bedrock_client import bedrock
from tests.timeouts import GIVE_UP

SCENARIOS = """
scenario: warm-cache
match: {user: contract}
turns:
  - reply: {text: It ends in May.}
    usage: {input: 2100, output: 6, cached: 1024, cache_written: 1000}
    repeat: true
---
scenario: cheap
match: {user: in flex}
turns:
  - reply: {text: "It will take a while.", split: words}
    service_tier: flex
    fingerprint: fp_44709d6fcb
    repeat: true
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    """A server of the scenarios above."""
    with ServerThread(loads(SCENARIOS), ServerOptions(speed=0)) as running:
        yield running


@pytest.fixture
def client(server: ServerThread) -> Iterator[openai.OpenAI]:
    """The SDK of OpenAI for that server."""
    base = f"{server.url}/v1"
    with openai.OpenAI(base_url=base, api_key="k", max_retries=0, timeout=GIVE_UP) as made:
        yield made


@pytest.fixture
def claude(server: ServerThread) -> Iterator[anthropic.Anthropic]:
    """The SDK of Anthropic for that server."""
    with anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as made:
        yield made


@pytest.fixture
def gemini(server: ServerThread) -> Iterator[genai.Client]:
    """The SDK of Google for that server."""
    options = types.HttpOptions(base_url=server.url, timeout=GIVE_UP * 1000)
    with genai.Client(api_key="k", http_options=options) as made:
        yield made


def asked(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


CONTRACT = asked("When does the contract end?")


def test_cached_tokens_of_chat(client):
    """Streamed and whole, tokens that were read and written are details of the prompt's."""
    options = {"include_usage": True}
    *_, last = client.chat.completions.create(
        model="m", messages=CONTRACT, stream=True, stream_options=options
    )
    whole = client.chat.completions.create(model="m", messages=CONTRACT)
    text = client.completions.create(model="m", prompt="contract")
    for usage in (last.usage, whole.usage, text.usage):
        details = usage.prompt_tokens_details
        assert (usage.prompt_tokens, usage.total_tokens) == (2100, 2106)
        assert (details.cached_tokens, details.cache_write_tokens) == (1024, 1000)


def test_cached_tokens_of_responses(client):
    """Streamed and whole, they are details of the input's."""
    *_, last = client.responses.create(model="m", input="contract", stream=True)
    whole = client.responses.create(model="m", input="contract")
    for usage in (last.response.usage, whole.usage):
        details = usage.input_tokens_details
        assert (usage.input_tokens, usage.total_tokens) == (2100, 2106)
        assert (details.cached_tokens, details.cache_write_tokens) == (1024, 1000)


def test_cached_tokens_of_anthropic(claude):
    """The input leaves them out. What was written is in the breakdown by the life of the cache."""
    asking = {"model": "m", "max_tokens": 99, "messages": CONTRACT}
    with claude.messages.stream(**asking) as stream:
        streamed = stream.get_final_message()
    for usage in (streamed.usage, claude.messages.create(**asking).usage):
        assert (usage.input_tokens, usage.output_tokens) == (76, 6)
        counts = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
        assert counts == (1024, 1000)
        assert usage.cache_creation.ephemeral_5m_input_tokens == 1000
        assert usage.cache_creation.ephemeral_1h_input_tokens == 0


def test_cached_tokens_of_bedrock(server):
    """The input leaves them out, the total does not; InvokeModel has them in headers."""
    with bedrock(server.url, attempts=1) as client:
        messages = [{"role": "user", "content": [{"text": "contract"}]}]
        whole = client.converse(modelId="m", messages=messages)["usage"]
        *_, last = client.converse_stream(modelId="m", messages=messages)["stream"]
        body = '{"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [{"role": '
        body += '"user", "content": "contract"}]}'
        invoked = client.invoke_model(modelId="anthropic.m", body=body)
    for usage in (whole, last["metadata"]["usage"]):
        assert (usage["inputTokens"], usage["totalTokens"]) == (76, 2106)
        assert (usage["cacheReadInputTokens"], usage["cacheWriteInputTokens"]) == (1024, 1000)
    headers = invoked["ResponseMetadata"]["HTTPHeaders"]
    names = ("input", "cache-read-input", "cache-write-input")
    counts = [headers[f"x-amzn-bedrock-{name}-token-count"] for name in names]
    assert counts == ["76", "1024", "1000"]


def test_cached_tokens_of_gemini(gemini):
    """Gemini has a count of cached tokens and none of written ones."""
    usage = gemini.models.generate_content(model="m", contents="contract").usage_metadata
    assert (usage.prompt_token_count, usage.cached_content_token_count) == (2100, 1024)


# Service tier and fingerprint


def test_tier_and_fingerprint_of_chat(client):
    """Each chunk and the body have both. A turn that says nothing has the tier of the request."""
    chunks = client.chat.completions.create(model="m", messages=asked("in flex"), stream=True)
    whole = client.chat.completions.create(model="m", messages=asked("in flex"))
    labels = {(chunk.service_tier, chunk.system_fingerprint) for chunk in chunks}
    assert labels == {(whole.service_tier, whole.system_fingerprint)} == {("flex", "fp_44709d6fcb")}
    usual = client.chat.completions.create(model="m", messages=CONTRACT, service_tier="priority")
    assert usual.service_tier == "priority"
    assert usual.system_fingerprint != "fp_44709d6fcb"
    text = client.completions.create(model="m", prompt="in flex")
    assert text.system_fingerprint == "fp_44709d6fcb"
    texts = client.completions.create(model="m", prompt="in flex", stream=True)
    assert {chunk.system_fingerprint for chunk in texts} == {"fp_44709d6fcb"}


def test_tier_of_responses(client):
    """The tier that served is known at the end, whatever was requested."""
    first, *_, last = client.responses.create(model="m", input="in flex", stream=True)
    assert (first.response.service_tier, last.response.service_tier) == ("auto", "flex")
    whole = client.responses.create(model="m", input="in flex", service_tier="priority")
    assert whole.service_tier == "flex"


def test_tier_of_anthropic(claude):
    """The usage names it."""
    asking = {"model": "m", "max_tokens": 99, "messages": asked("in flex")}
    with claude.messages.stream(**asking) as stream:
        assert stream.get_final_message().usage.service_tier == "flex"
    assert claude.messages.create(**asking).usage.service_tier == "flex"


def test_tier_of_gemini(gemini):
    """Streamed and whole, the usage names it."""
    whole = gemini.models.generate_content(model="m", contents="in flex")
    chunks = gemini.models.generate_content_stream(model="m", contents="in flex")
    tiers = {answer.usage_metadata.service_tier for answer in (whole, *chunks)}
    assert tiers == {types.ServiceTier.FLEX}


def test_tier_of_bedrock(server):
    """The metadata of a stream and a body name it, and a header of InvokeModel."""
    with bedrock(server.url, attempts=1) as client:
        messages = [{"role": "user", "content": [{"text": "in flex"}]}]
        whole = client.converse(modelId="m", messages=messages)
        *_, last = client.converse_stream(modelId="m", messages=messages)["stream"]
        body = '{"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": [{"role": '
        body += '"user", "content": "in flex"}]}'
        invoked = client.invoke_model(modelId="anthropic.m", body=body)
    assert whole["serviceTier"] == last["metadata"]["serviceTier"] == {"type": "flex"}
    assert invoked["serviceTier"] == "flex"
