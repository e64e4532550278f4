"""Log probabilities that a scenario writes, as the official SDKs read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import ollama
import openai
import pytest
from google import genai
from google.genai import types

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
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
    messages = [{"role": "user", "content": "Hi"}]
    with ollama.Client(host=url, trust_env=False) as client:
        body = client.chat(model="m", messages=messages, logprobs=True)
    assert pairs(body.logprobs) == ALL
    assert body.logprobs is not None
    assert pairs(body.logprobs[0].top_logprobs) == [("Hel", -0.1), ("Hey", -2.5)]
    assert body.logprobs[1].top_logprobs is None


@pytest.fixture(scope="module")
def google(url: str) -> Iterator[genai.Client]:
    with google_sdk(url) as made:
        yield made


@contextmanager
def google_sdk(url: str) -> Iterator[genai.Client]:
    with httpx.Client(trust_env=False, timeout=GIVE_UP) as http:
        options = types.HttpOptions(base_url=url, httpx_client=http)
        with genai.Client(api_key="k", http_options=options) as made:
            yield made


WANTED = types.GenerateContentConfig(response_logprobs=True, logprobs=2, candidate_count=2)


def chosen(candidate: types.Candidate) -> list[tuple[str | None, float | None]]:
    assert candidate.logprobs_result is not None
    tokens = candidate.logprobs_result.chosen_candidates or ()
    return [(token.token, token.log_probability) for token in tokens]


def top(candidate: types.Candidate) -> list[list[tuple[str | None, float | None]]]:
    assert candidate.logprobs_result is not None
    positions = candidate.logprobs_result.top_candidates or ()
    return [
        [(token.token, token.log_probability) for token in position.candidates or ()]
        for position in positions
    ]


TOP = [[("Hel", -0.1), ("Hey", -2.5)], [("lo", 0)], [(" there", -1.25)]]
"""A position of which the scenario has no likely tokens has its own."""


def test_gemini_has_them_in_a_body(google: genai.Client) -> None:
    """Each candidate has its tokens, the likely ones, their sum and their average."""
    body = google.models.generate_content(model="m", contents="Hi", config=WANTED)
    assert body.candidates is not None
    for candidate in body.candidates:
        assert chosen(candidate) == ALL
        assert top(candidate) == TOP
        assert candidate.logprobs_result is not None
        assert candidate.logprobs_result.log_probability_sum == pytest.approx(-1.35)
        assert candidate.avg_logprobs == pytest.approx(-0.45)
    assert len(body.candidates) == 2


def test_gemini_has_them_in_a_stream(google: genai.Client) -> None:
    """Each chunk has the tokens of its text; the last one has no text and none."""
    sent = [
        (text.parts[0].text, chosen(candidate), top(candidate))
        for chunk in google.models.generate_content_stream(model="m", contents="Hi", config=WANTED)
        for candidate in chunk.candidates or ()
        if (text := candidate.content) and text.parts and text.parts[0].text
    ]
    assert sent[::2] == sent[1::2]
    assert sent[::2] == [
        (text, [token], [likely])
        for text, token, likely in zip(["Hel", "lo", " there"], ALL, TOP, strict=True)
    ]


def test_gemini_makes_them_up_without_likely_tokens() -> None:
    """With `logprobs: true` a fragment is a token; equal tokens are equal."""
    turns = "turns: [{reply: {text: aba, split: chars, logprobs: true}}]"
    scenarios = loads(f"scenario: made-up\nmatch: any\n{turns}\n")
    with (
        ServerThread(scenarios, ServerOptions(speed=0)) as server,
        google_sdk(server.url) as client,
    ):
        body = client.models.generate_content(model="m", contents="Hi")
    assert body.candidates is not None
    (candidate,) = body.candidates
    assert [token for token, _ in chosen(candidate)] == ["a", "b", "a"]
    assert top(candidate) == []
    assert candidate.logprobs_result is not None
    first, _, last = candidate.logprobs_result.chosen_candidates or ()
    assert first == last
    assert first.token_id is not None
