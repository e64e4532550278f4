"""llama.cpp's own server, recorded and replayed, with a model that says the same nonsense each
time.

It speaks Chat Completions, Responses and Messages, each with fields of its own, and measures its
time in its answers.
"""

from __future__ import annotations

import json

import openai
import pytest

from tests.upstreams import gguf
from tests.upstreams.raw import REQUESTS, ask
from tests.upstreams.talks import TALKS, Chat, Responses, talked

pytestmark = pytest.mark.slow

APIS = ("chat", "responses", "anthropic")
LENGTH = {"chat": "max_tokens", "responses": "max_output_tokens", "anthropic": "max_tokens"}
SAID = "Where does the train go?"

every_way = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


def short(api, tokens=16):
    """The options of an answer that is cut short, and is the same each time."""
    return {LENGTH[api]: tokens, "extra_body": {"temperature": 0}}


def calling(api, *, once=True):
    """The options with which the model makes a call, or calls until it may say no more."""
    weights = {gguf.token(gguf.CALL): 50} | ({gguf.token(gguf.END): 60} if once else {})
    found = short(api, 200)
    found["extra_body"]["logit_bias"] = {str(token): weight for token, weight in weights.items()}
    return {**found, "tool_choice": "required"}


@pytest.mark.parametrize("api", APIS)
@every_way
def test_texts(llama, runs, api, stream):
    """An answer that reached its limit is the same from the server, through the recorder, and
    replayed; then the user says more."""

    def run(url):
        with TALKS[api](url, **short(api)) as talk:
            given = talked(talk, SAID, stream=stream)
            gist = talk.gist()
            talk.history.append({"role": "user", "content": "And then?"})
            return gist, given, list(talk.events(stream=stream)), talk.answer

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


@pytest.mark.parametrize("talk_of", [Chat, Responses])
@every_way
def test_calls(llama, runs, talk_of, stream):
    """A call that the server's grammar makes of the nonsense, its result, and what comes then."""
    api = talk_of.api

    def run(url):
        with talk_of(url, **calling(api)) as talk:
            talk.begin(SAID)
            first = [*talk.events(stream=stream), talk.answer]
            gist = talk.gist()
            assert talk.go_on()
            talk.options = short(api)
            return gist, first, [*talk.events(stream=stream), talk.answer]

    direct, *_ = run(llama.url)
    recorded, replayed = runs.both(llama.url, run)
    assert recorded == replayed
    assert recorded[0] == direct
    assert direct[1] == [("get_weather", {"city": "Rome"})]
    (scenario,) = runs.scenarios.values()
    assert len(scenario.turns) == 2


@every_way
def test_many_calls(llama, runs, stream):
    """Calls until there are no more tokens, the last of them half a call."""

    def run(url):
        with Chat(url, **calling("chat", once=False), parallel_tool_calls=True) as talk:
            talk.begin(SAID)
            return list(talk.events(stream=stream)), talk.answer

    recorded, replayed = runs.both(llama.url, run)
    assert recorded == replayed
    _, answer = recorded
    (choice,) = answer["choices"]
    assert choice["finish_reason"] == "length"
    assert len(choice["message"]["tool_calls"]) >= 2


@every_way
def test_structured_answers(llama, runs, stream):
    """JSON of a schema, which ends by itself, with the probabilities of its tokens."""
    schema = {"type": "object", "properties": {"city": {"enum": ["Rome"]}}, "required": ["city"]}
    form = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema}}
    options = {**short("chat", 100), "response_format": form, "tools": openai.omit}
    options |= {"logprobs": True, "top_logprobs": 2}

    def run(url):
        with Chat(url, **options) as talk:
            talk.begin(SAID)
            return list(talk.events(stream=stream)), talk.answer

    recorded, replayed = runs.both(llama.url, run)
    assert recorded == replayed
    _, answer = recorded
    (choice,) = answer["choices"]
    assert json.loads(choice["message"]["content"]) == {"city": "Rome"}
    assert choice["finish_reason"] == "stop"
    assert choice["logprobs"]["content"]


def test_errors(llama, runs):
    """A question that does not fit into the model's memory, and a schema that is none."""
    wrong = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nothing"}}}

    def run(url):
        with Chat(url, **short("chat")) as talk:
            long = talked(talk, "and " * 3000, stream=True)
            talk.options["response_format"] = wrong
            return long, talked(talk, SAID, stream=False)

    recorded, replayed = runs.both(llama.url, run)
    assert recorded == replayed
    assert [given[0][0]["status"] for given in recorded] == [400, 400]


@pytest.mark.parametrize("api", APIS)
@every_way
def test_bytes(llama, runs, api, stream):
    """What a client of the recorder gets is on the tape, and comes again, cut in the same
    places."""
    path, body = REQUESTS[api](SAID, stream)
    body |= {LENGTH[api]: 20, "temperature": 0}
    keys = {"x_api_key": "test", "anthropic_version": "2023-06-01"}
    passed, replayed = runs.both(llama.url, lambda url: ask(url, path, body, **keys))
    (tape,) = runs.tapes()
    assert passed.status == replayed.status == tape.status == 200
    assert passed.chunks == replayed.chunks == tuple(piece.data for piece in tape.pieces)
    assert (len(passed.chunks) > 20) == stream
