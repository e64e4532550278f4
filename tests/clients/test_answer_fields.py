"""Facts about an answer that a scenario states, as the official SDKs read them."""

from __future__ import annotations

from collections.abc import Iterator

import anthropic
import httpx
import openai
import pytest
from google import genai
from google.genai import types

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
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
scenario: long-manual
match: {user: manual}
defaults: {usage: {cached: prefix}}
turns: [{reply: {text: It is long.}, repeat: true}]
---
scenario: cheap
match: {user: in flex}
turns:
  - reply: {text: "It will take a while.", split: words}
    service_tier: flex
    fingerprint: fp_44709d6fcb
    repeat: true
---
scenario: opinions
match: {user: how to}
turns:
  - reply: [{reasoning: Hm.}, {text: Take the train., split: words}]
    choices:
      - reply: {text: Take, split: words}
        finish: length
      - reply: [{tool: find, arguments: {to: Oslo}}, {tool: find, id: call_own}]
    repeat: true
---
scenario: broken
match: {user: broken}
turns:
  - reply: [{text: Take}, {error: {message: gone}}]
    choices: [{reply: {text: a b c d e, split: words}}]
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


MANUAL = "The manual: " + "x" * 4788


def test_a_common_prefix_of_chat(client):
    """A system prompt is cached from the second request on, whatever the user asks."""
    found = []
    for text in ("manual, page 1?", "manual, page 2?"):
        messages = [{"role": "system", "content": MANUAL}, *asked(text)]
        usage = client.chat.completions.create(model="m", messages=messages).usage
        found.append((usage.prompt_tokens, usage.prompt_tokens_details.cached_tokens))
    assert found == [(1204, 0), (1204, 1152)]


def test_a_common_prefix_of_anthropic(claude):
    """What `cache_control` marks is written by the first request, and read by the next one."""
    mark = {"type": "ephemeral"}
    found = []
    for text in ("manual, page 1?", "manual, page 2?"):
        usage = claude.messages.create(
            model="m",
            max_tokens=9,
            system=[{"type": "text", "text": MANUAL, "cache_control": mark}],
            messages=asked(text),
        ).usage
        read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
        found.append((usage.input_tokens, read, written))
    assert found == [(4, 0, 1200), (4, 1200, 0)]


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


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1beta/models/m:generateContent", '"serviceTier":"flex"'),
        ("/v1beta/models/m:streamGenerateContent", '"serviceTier": "flex"'),
    ],
)
def test_tier_of_gemini(server, path, field):
    """Streamed and whole, the usage names it; the SDK drops it."""
    contents = [{"role": "user", "parts": [{"text": "in flex"}]}]
    headers = {"x-goog-api-key": "k"}
    answer = httpx.post(f"{server.url}{path}", json={"contents": contents}, headers=headers)
    assert field in answer.text


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


# Several choices

HOW = {"model": "m", "messages": asked("how to get there")}
TEXTS = ["Take the train.", "Take", None, "Take the train."]
FINISHES = ["stop", "length", "tool_calls", "stop"]


def test_choices_of_chat(client):
    """As many choices as are wanted, in order, and from the beginning again; calls have ids of
    their own."""
    for n in (1, 2, 4):
        choices = client.chat.completions.create(**HOW, n=n).choices
        assert [choice.index for choice in choices] == list(range(n))
        assert [choice.message.content for choice in choices] == TEXTS[:n]
        assert [choice.finish_reason for choice in choices] == FINISHES[:n]
    derived, own = choices[2].message.tool_calls
    assert derived.id.startswith("call_")
    assert (derived.function.arguments, own.id) == ('{"to":"Oslo"}', "call_own")


def test_choices_of_a_stream_of_chat(client):
    """Each chunk has one choice. Choices alternate; each has a role and a finish, all one usage."""
    options = {"include_usage": True}
    chunks = list(client.chat.completions.create(**HOW, n=4, stream=True, stream_options=options))
    *parts, last = chunks
    indexes = [choice.index for chunk in parts for choice in chunk.choices]
    assert len(indexes) == len(parts)
    assert indexes[:8] == [0, 1, 2, 3] * 2
    deltas = [(chunk.choices[0].index, chunk.choices[0].delta) for chunk in parts]
    assert sorted(index for index, delta in deltas if delta.role) == [0, 1, 2, 3]
    ends = [chunk.choices[0] for chunk in parts if chunk.choices[0].finish_reason]
    assert {end.index: end.finish_reason for end in ends} == dict(enumerate(FINISHES))
    assert last.choices == []
    whole = client.chat.completions.create(**HOW, n=4)
    assert last.usage == whole.usage
    assert [chunk.usage for chunk in parts] == [None] * len(parts)
    texts = dict.fromkeys(range(4), "")
    calls = []
    for index, delta in deltas:
        texts[index] += delta.content or ""
        calls += [(index, call.index, call.id) for call in delta.tool_calls or () if call.id]
    assert [text or None for text in texts.values()] == TEXTS
    ids = [call.id for call in whole.choices[2].message.tool_calls]
    assert calls == [(2, number, id) for number, id in enumerate(ids)]


def test_tokens_of_all_choices_count(client):
    """Those that are sent; the prompt counts once."""
    usages = [client.chat.completions.create(**HOW, n=n).usage for n in (1, 2, 4)]
    tokens = {"reply": 1 + 4, "Take": 1, "calls": (1 + 4) + (1 + 1)}
    assert [usage.completion_tokens for usage in usages] == [
        tokens["reply"],
        tokens["reply"] + tokens["Take"],
        2 * tokens["reply"] + tokens["Take"] + tokens["calls"],
    ]
    assert len({usage.prompt_tokens for usage in usages}) == 1


def test_an_error_ends_all_choices(client):
    """What was sent of the others before it arrives."""
    texts = {0: "", 1: ""}
    broken = asked("broken")
    stream = client.chat.completions.create(model="m", messages=broken, n=2, stream=True)
    with pytest.raises(openai.APIError, match="gone"):  # noqa: PT012 - it is raised on the way
        for chunk in stream:
            texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts[0] == "Take"
    assert "a b c d e".startswith(texts[1])
    assert texts[1] != "a b c d e"


def test_choices_of_completions(client):
    """Of two prompts the first ones come first; each text begins with its own prompt."""
    asking = {"model": "m", "prompt": ["how to", "how to?"], "n": 2, "echo": True}
    whole = client.completions.create(**asking).choices
    assert [(choice.index, choice.text) for choice in whole] == [
        (0, "how toTake the train."),
        (1, "how toTake"),
        (2, "how to?"),
        (3, "how to?Take the train."),
    ]
    texts = dict.fromkeys(range(4), "")
    for chunk in client.completions.create(**asking, stream=True):
        (choice,) = chunk.choices
        texts[choice.index] += choice.text
    assert texts == {choice.index: choice.text for choice in whole}


@pytest.mark.parametrize("count", [1, 2, 4])
def test_choices_of_gemini(gemini, count):
    """Whole and streamed, candidates have their own content, and the last chunk the usage of
    all."""
    asking = {"model": "m", "contents": "how to", "config": {"candidate_count": count}}
    whole = gemini.models.generate_content(**asking)
    chunks = list(gemini.models.generate_content_stream(**asking))
    texts, finishes = dict.fromkeys(range(count), ""), {}
    for chunk in chunks:
        for candidate in chunk.candidates:
            for part in candidate.content.parts or ():
                texts[candidate.index] += "" if part.thought else part.text or ""
            if candidate.finish_reason:
                finishes[candidate.index] = candidate.finish_reason.value
    assert [text or None for text in texts.values()] == TEXTS[:count]
    assert [finishes[index] for index in range(count)] == ["STOP", "MAX_TOKENS", "STOP", "STOP"][
        :count
    ]
    for index, candidate in enumerate(whole.candidates):
        assert (candidate.index, candidate.finish_reason.value) == (index, finishes[index])
        told = "".join(part.text or "" for part in candidate.content.parts if not part.thought)
        assert told == texts[index]
    assert chunks[-1].usage_metadata == whole.usage_metadata


def test_other_apis_have_one_choice(client, claude):
    """They send the reply."""
    assert client.responses.create(model="m", input="how to").output_text == TEXTS[0]
    answer = claude.messages.create(model="m", max_tokens=9, messages=asked("how to"))
    assert answer.content[-1].text == TEXTS[0]
