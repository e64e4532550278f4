"""The legacy Completions with the official `openai` client."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from mockllm.play.replay.loading import loads
from mockllm.serve.server.options import ServerOptions
from mockllm.serve.server.thread import ServerThread
from tests.timeouts import GIVE_UP

SCENARIOS = """
scenario: france
match: {user: {contains: capital of France}}
turns:
  - reply: [{text: Paris., split: [Pa, ris.]}]
    usage: {input: 8, output: 2}
  - reply: {text: Rome.}
---
scenario: broken
match: {user: {contains: broken}}
turns: [{reply: [{text: Half}, {error: {message: gone}}]}]
---
scenario: limited
match: {user: {contains: limited}}
turns:
  - attempts: [{http: 429, retry_after: 1ms}]
    reply: {text: At last.}
"""

ASKED = "What is the capital of France?"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerThread]:
    with ServerThread(loads(SCENARIOS), ServerOptions(speed=0)) as running:
        yield running


@pytest.fixture
def client(server: ServerThread) -> Iterator[openai.OpenAI]:
    base = f"{server.url}/v1"
    with openai.OpenAI(base_url=base, api_key="k", max_retries=0, timeout=GIVE_UP) as made:
        yield made


def test_a_body(client: openai.OpenAI) -> None:
    """An answer has its text, its finish reason and its usage."""
    answer = client.completions.create(model="m", prompt=ASKED)
    (choice,) = answer.choices
    assert (choice.text, choice.finish_reason, choice.logprobs) == ("Paris.", "stop", None)
    assert answer.object == "text_completion"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (8, 2)


def test_a_stream(client: openai.OpenAI) -> None:
    """Chunks have the fragments, then the finish reason, then, if it is wanted, the usage."""
    options = {"include_usage": True}
    chunks = list(
        client.completions.create(model="m", prompt=ASKED, stream=True, stream_options=options)
    )
    *texts, usage = chunks
    assert [chunk.choices[0].text for chunk in texts] == ["Pa", "ris.", ""]
    assert [chunk.choices[0].finish_reason for chunk in texts] == [None, None, "stop"]
    assert usage.choices == []
    assert usage.usage is not None
    assert usage.usage.total_tokens == 10
    assert len({chunk.id for chunk in chunks}) == 1


def test_two_choices_of_two_prompts(client: openai.OpenAI) -> None:
    """There are `n` choices for each prompt, one prompt after the other."""
    prompts = [ASKED, f"{ASKED} Now."]
    answer = client.completions.create(model="m", prompt=prompts, n=2, echo=True)
    assert [(choice.index, choice.text) for choice in answer.choices] == [
        (0, f"{ASKED}Paris."),
        (1, f"{ASKED}Paris."),
        (2, f"{ASKED} Now.Paris."),
        (3, f"{ASKED} Now.Paris."),
    ]
    texts = dict.fromkeys(range(4), "")
    for chunk in client.completions.create(model="m", prompt=prompts, n=2, echo=True, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.text
    assert texts == {choice.index: choice.text for choice in answer.choices}


@pytest.mark.parametrize("echo", [False, True])
def test_log_probabilities(client: openai.OpenAI, echo: bool) -> None:
    """Offsets count from the beginning of the choice's text; nothing predicts its first token if
    that is the prompt's."""
    answer = client.completions.create(model="m", prompt=ASKED, echo=echo, logprobs=2)
    (choice,) = answer.choices
    found = choice.logprobs
    assert found is not None
    assert found.tokens is not None
    assert found.text_offset is not None
    assert found.token_logprobs is not None
    assert found.top_logprobs is not None
    assert "".join(found.tokens) == choice.text
    for at, token in zip(found.text_offset, found.tokens, strict=True):
        assert choice.text[at : at + len(token)] == token
    assert (found.token_logprobs[0] is None) == (found.top_logprobs[0] is None) == echo
    streamed: list[str] = []
    for chunk in client.completions.create(
        model="m", prompt=ASKED, echo=echo, logprobs=2, stream=True
    ):
        logprobs = chunk.choices[0].logprobs
        streamed += (logprobs.tokens or []) if logprobs else []
    assert streamed == found.tokens


def test_tokens_as_a_prompt(client: openai.OpenAI) -> None:
    """Tokens stand for the text of their numbers, which no scenario here expects."""
    with pytest.raises(openai.NotFoundError, match="user said '1 2 3'"):
        client.completions.create(model="m", prompt=[1, 2, 3])


def test_a_conversation_in_a_prompt(client: openai.OpenAI) -> None:
    """A transcript as LangChain writes it is a history, so the second turn answers."""
    prompt = f"System: Be brief.\nHuman: {ASKED}\nAI: Paris.\nHuman: And of Italy?\nAI:"
    assert client.completions.create(model="m", prompt=prompt).choices[0].text == "Rome."


def test_an_error_in_the_stream(client: openai.OpenAI) -> None:
    """It is raised after the text before it."""
    texts: list[str] = []
    chunks = client.completions.create(model="m", prompt="broken", stream=True)
    with pytest.raises(openai.APIError, match="gone"):
        texts.extend(chunk.choices[0].text for chunk in chunks)
    assert texts == ["Half"]


def test_a_rate_limit_is_retried(client: openai.OpenAI) -> None:
    """Without retries it is raised; with one the answer arrives."""
    with pytest.raises(openai.RateLimitError):
        client.completions.create(model="m", prompt="limited", user="one")
    answer = client.with_options(max_retries=1).completions.create(model="m", prompt="limited")
    assert answer.choices[0].text == "At last."


def test_refused_requests(client: openai.OpenAI) -> None:
    """Refusals have the service's form."""
    with pytest.raises(openai.BadRequestError, match="best_of") as caught:
        client.completions.create(model="m", prompt=ASKED, n=3, best_of=2)
    assert caught.value.param == "best_of"
    with pytest.raises(openai.BadRequestError, match="'logprobs'"):
        client.completions.create(model="m", prompt=ASKED, logprobs=6)
