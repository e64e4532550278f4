"""Log probabilities that a scenario writes, as the official SDKs read them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ollama
import openai
import pytest

from mockllm.replay.loading import loads
from mockllm.server.options import ServerOptions
from mockllm.server.thread import ServerThread
from tests.timeouts import GIVE_UP

TEXT = """\
scenario: tokens
match: any
turns:
  - reply:
      text: Hello there
      logprobs:
        - token: Hel
          logprob: -0.1
          top: [{token: Hel, logprob: -0.1}, {token: Hey, logprob: -2.5}]
        - {token: lo, logprob: 0}
        - {token: " there", logprob: -1.25}
"""
SPLIT = TEXT.replace(
    "      text: Hello there", "      text: Hello there\n      split: [Hell, o there]"
)
ALL = [("Hel", -0.1), ("lo", 0), (" there", -1.25)]
ASK: Any = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "logprobs": True}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ServerThread(loads(TEXT), ServerOptions(speed=0)) as running:
        yield running.url


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[openai.OpenAI]:
    with sdk(url) as made:
        yield made


def sdk(url: str) -> openai.OpenAI:
    http = openai.DefaultHttpxClient(trust_env=False)
    return openai.OpenAI(api_key="k", base_url=f"{url}/v1", timeout=GIVE_UP, http_client=http)


def pairs(tokens: Any) -> list[tuple[str, float]]:
    return [(token.token, token.logprob) for token in tokens]


def test_chat_has_them_in_a_body_and_in_a_stream(client: openai.OpenAI) -> None:
    """A token is a fragment of its own where `split` is not written."""
    body = client.chat.completions.create(**ASK).choices[0].logprobs
    assert body is not None
    assert pairs(body.content) == ALL
    assert body.content is not None
    assert pairs(body.content[0].top_logprobs) == [("Hel", -0.1), ("Hey", -2.5)]
    assert body.content[0].bytes == list(b"Hel")
    with client.chat.completions.stream(**ASK) as stream:
        chunks = [event.chunk for event in stream if event.type == "chunk"]
        final = stream.get_final_completion().choices[0].logprobs
    assert final is not None
    assert pairs(final.content) == ALL
    sent = [
        (chunk.choices[0].delta.content, pairs(chunk.choices[0].logprobs.content))
        for chunk in chunks
        if chunk.choices and chunk.choices[0].logprobs and chunk.choices[0].delta.content
    ]
    assert sent == [("Hel", ALL[:1]), ("lo", ALL[1:2]), (" there", ALL[2:])]


def test_a_token_is_sent_where_it_begins() -> None:
    """Where fragments end inside of tokens, a chunk has the tokens that begin in it."""
    with ServerThread(loads(SPLIT), ServerOptions(speed=0)) as server, sdk(server.url) as client:
        chunks = list(client.chat.completions.create(**ASK, stream=True))
        completion = client.completions.create(model="m", prompt="Hi", logprobs=2, stream=True)
        offsets = [
            (choice.text, choice.logprobs.text_offset)
            for chunk in completion
            for choice in chunk.choices
            if choice.logprobs is not None
        ]
    sent = [
        (choice.delta.content, pairs(choice.logprobs.content))
        for chunk in chunks
        for choice in chunk.choices
        if choice.logprobs and choice.delta.content
    ]
    assert sent == [("Hell", ALL[:2]), ("o there", ALL[2:])]
    assert offsets == [("Hell", [0, 3]), ("o there", [5])]


def test_responses_has_them(client: openai.OpenAI) -> None:
    """In the content of the message, and in the deltas of a stream."""
    ask: Any = {"model": "m", "input": "Hi", "include": ["message.output_text.logprobs"]}
    (item,) = client.responses.create(**ask).output
    assert item.type == "message"
    (content,) = item.content
    assert content.type == "output_text"
    assert pairs(content.logprobs) == ALL
    deltas = [
        pairs(event.logprobs)
        for event in client.responses.create(**ask, stream=True)
        if event.type == "response.output_text.delta"
    ]
    assert deltas == [ALL[:1], ALL[1:2], ALL[2:]]


def test_completions_has_them(client: openai.OpenAI) -> None:
    """Tokens, probabilities, offsets and the likely tokens of each position."""
    logprobs = client.completions.create(model="m", prompt="Hi", logprobs=2).choices[0].logprobs
    assert logprobs is not None
    assert logprobs.tokens == ["Hel", "lo", " there"]
    assert logprobs.token_logprobs == [-0.1, 0, -1.25]
    assert logprobs.text_offset == [0, 3, 5]
    assert logprobs.top_logprobs == [{"Hel": -0.1, "Hey": -2.5}, {"lo": 0}, {" there": -1.25}]


def test_ollama_has_them(url: str) -> None:
    """The same tokens, with the likely ones where there are some."""
    client = ollama.Client(host=url, trust_env=False)
    messages = [{"role": "user", "content": "Hi"}]
    body = client.chat(model="m", messages=messages, logprobs=True)
    assert pairs(body.logprobs) == ALL
    assert body.logprobs is not None
    assert pairs(body.logprobs[0].top_logprobs) == [("Hel", -0.1), ("Hey", -2.5)]
    assert body.logprobs[1].top_logprobs is None
