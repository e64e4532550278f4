"""llama.cpp's own server, recorded and replayed, with a deterministic model of random weights.

It serves Chat Completions, Responses and Messages, each with further fields, and its answers have
measured times.
"""

from __future__ import annotations

import json

import openai
import pytest

from tests.upstreams import gguf
from tests.upstreams.conversations import CONVERSATIONS, Chat, Responses, transcript
from tests.upstreams.raw import REQUESTS, post

pytestmark = pytest.mark.heavy

APIS = ("chat", "responses", "anthropic")
LENGTH = {"chat": "max_tokens", "responses": "max_output_tokens", "anthropic": "max_tokens"}
PROMPT = "Where does the train go?"

every_way = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def short(api, tokens=16):
    """The options of a short, deterministic answer."""
    return {LENGTH[api]: tokens, "extra_body": {"temperature": 0}}


def calling(api, *, once=True):
    """The options with which the model makes one call, or calls up to the token limit."""
    weights = {gguf.token(gguf.CALL): 50} | ({gguf.token(gguf.END): 60} if once else {})
    found = short(api, 200)
    found["extra_body"]["logit_bias"] = {str(token): weight for token, weight in weights.items()}
    return {**found, "tool_choice": "required"}


@pytest.mark.parametrize("api", APIS)
@every_way
def test_texts(llama, runs, api, stream):
    """An answer at the token limit is the same from the server, recorded and replayed; a second
    turn follows."""

    def run(url):
        with CONVERSATIONS[api](url, **short(api)) as conversation:
            given = transcript(conversation, PROMPT, stream=stream)
            gist = conversation.gist()
            conversation.history.append({"role": "user", "content": "And then?"})
            return gist, given, list(conversation.events(stream=stream)), conversation.answer

    direct, *_ = run(llama.url)
    recorded, replayed = runs.both(llama.url, run)
    assert recorded == replayed
    assert recorded[0] == direct
    text, calls = direct
    assert len(text.split()) == 16
    assert set(text.split()) <= set(gguf.WORDS)
    assert not calls
    (scenario,) = runs.scenarios.values()
    assert [turn.usage.output for turn in scenario.turns] == [16, 16]


@pytest.mark.parametrize("kind", [Chat, Responses])
@every_way
def test_calls(llama, runs, kind, stream):
    """A call that the server's grammar forces, its result, and the next turn."""
    api = kind.api

    def run(url):
        with kind(url, **calling(api)) as conversation:
            conversation.begin(PROMPT)
            first = [*conversation.events(stream=stream), conversation.answer]
            gist = conversation.gist()
            assert conversation.go_on()
            conversation.options = short(api)
            return gist, first, [*conversation.events(stream=stream), conversation.answer]

    direct, *_ = run(llama.url)
    recorded, replayed = runs.both(llama.url, run)
    assert recorded == replayed
    assert recorded[0] == direct
    assert direct[1] == [("get_weather", {"city": "Rome"})]
    (scenario,) = runs.scenarios.values()
    assert len(scenario.turns) == 2


@every_way
def test_many_calls(llama, runs, stream):
    """Calls up to the token limit, the last of them incomplete."""

    def run(url):
        with Chat(url, **calling("chat", once=False), parallel_tool_calls=True) as conversation:
            conversation.begin(PROMPT)
            return list(conversation.events(stream=stream)), conversation.answer

    recorded, replayed = runs.both(llama.url, run)
    assert recorded == replayed
    _, answer = recorded
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "length"
    assert len(choice["message"]["tool_calls"]) >= 2


@every_way
def test_structured_answers(llama, runs, stream):
    """JSON that fits a schema, with log probabilities."""
    schema = {"type": "object", "properties": {"city": {"enum": ["Rome"]}}, "required": ["city"]}
    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema}}
    options = {**short("chat", 100), "response_format": form, "tools": openai.omit}
    options |= {"logprobs": True, "top_logprobs": 2}

    def run(url):
        with Chat(url, **options) as conversation:
            conversation.begin(PROMPT)
            return list(conversation.events(stream=stream)), conversation.answer

    recorded, replayed = runs.both(llama.url, run)
    assert recorded == replayed
    _, answer = recorded
    (choice,) = answer["choices"]
    assert json.loads(choice["message"]["content"]) == {"city": "Rome"}
    assert choice["finish_reason"] == "stop"
    assert choice["logprobs"]["content"]


def test_errors(llama, runs):
    """A prompt that exceeds the context, and an invalid schema."""
    invalid = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nothing"}}}

    def run(url):
        with Chat(url, **short("chat")) as conversation:
            long = transcript(conversation, "and " * 3000, stream=True)
            conversation.options["response_format"] = invalid
            return long, transcript(conversation, PROMPT, stream=False)

    recorded, replayed = runs.both(llama.url, run)
    assert recorded == replayed
    assert [given[0][0]["status"] for given in recorded] == [400, 400]


@pytest.mark.parametrize("api", APIS)
@every_way
def test_bytes(llama, runs, api, stream):
    """Recorder, tape and replay have the same HTTP chunks."""
    path, body = REQUESTS[api](PROMPT, stream)
    body |= {LENGTH[api]: 20, "temperature": 0}
    keys = {"x_api_key": "test", "anthropic_version": "2023-06-01"}
    passed, replayed = runs.both(llama.url, lambda url: post(url, path, body, **keys))
    (tape,) = runs.tapes()
    assert passed.status == replayed.status == tape.status == 200
    assert passed.chunks == replayed.chunks == tuple(chunk.data for chunk in tape.chunks)
    assert (len(passed.chunks) > 20) == stream
