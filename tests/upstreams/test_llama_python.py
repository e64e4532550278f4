"""The server of llama-cpp-python, recorded and replayed, with the same model as llama.cpp's.

It sends JSON with spaces, `null` for unknown fields, no usage in streams, and status 500 for a
request that it cannot read.
"""

from __future__ import annotations

import openai
import pytest

from tests.upstreams import gguf
from tests.upstreams.conversations import TOOLS, Chat, transcript
from tests.upstreams.raw import REQUESTS, post

pytestmark = pytest.mark.heavy

PROMPT = "Where does the train go?"
PLAIN = {"temperature": 0, "seed": 1, "max_tokens": 16, "tools": openai.omit}

every_way = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@every_way
def test_texts(llama_python, runs, stream):
    """An answer at the token limit, and a second turn."""

    def run(url):
        with Chat(url, **PLAIN) as conversation:
            given = transcript(conversation, PROMPT, stream=stream)
            gist = conversation.gist()
            conversation.history.append({"role": "user", "content": "And then?"})
            return gist, given, [*conversation.events(stream=stream), conversation.answer]

    direct, *_ = run(llama_python.url)
    recorded, replayed = runs.both(llama_python.url, run)
    assert recorded == replayed
    assert recorded[0] == direct
    assert set(direct[0].split()) <= set(gguf.WORDS)
    (scenario,) = runs.scenarios.values()
    assert [turn.finish for turn in scenario.turns] == ["length", "length"]


@every_way
def test_calls(llama_python, runs, stream):
    """A call that a grammar forces, its result, and the next turn."""
    choice = {"type": "function", "function": {"name": "get_weather"}}
    calling = {"temperature": 0, "seed": 1, "max_tokens": 100, "tool_choice": choice}

    def run(url):
        with Chat(url, **calling) as conversation:
            conversation.begin(PROMPT)
            first = [*conversation.events(stream=stream), conversation.answer]
            gist = conversation.gist()
            assert conversation.go_on()
            conversation.options = PLAIN
            return gist, first, [*conversation.events(stream=stream), conversation.answer]

    direct, *_ = run(llama_python.url)
    # When it streams, the server sends the name in each chunk, and the SDK joins them to one long
    # name. OpenAI would refuse that name in the history; this server accepts it.
    recorded, replayed = runs.both(llama_python.url, run)
    assert recorded == replayed
    assert recorded[0] == direct
    ((name, arguments),) = direct[1]
    assert name.replace("get_weather", "") == ""
    assert arguments["city"] in TOOLS["get_weather"]["properties"]["city"]["enum"]


def test_errors(llama_python, runs):
    """A prompt that exceeds the context, and a request that the server cannot read."""

    def run(url):
        with Chat(url, **PLAIN) as conversation:
            long = transcript(conversation, "and " * 3000, stream=False)
            conversation.options = {**PLAIN, "extra_body": {"top_k": "many"}}
            return long, transcript(conversation, PROMPT, stream=True)

    recorded, replayed = runs.both(llama_python.url, run)
    assert recorded == replayed
    assert [given[0][0]["status"] for given in recorded] == [400, 500]


@every_way
def test_bytes(llama_python, runs, stream):
    """Recorder, tape and replay have the same HTTP chunks."""
    path, body = REQUESTS["chat"](PROMPT, stream)
    body |= {"max_tokens": 20, "temperature": 0}
    passed, replayed = runs.both(llama_python.url, lambda url: post(url, path, body))
    (tape,) = runs.tapes()
    assert passed.chunks == replayed.chunks == tuple(chunk.data for chunk in tape.chunks)
    assert (len(passed.chunks) > 20) == stream
