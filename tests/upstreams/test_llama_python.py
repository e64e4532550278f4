"""The server of llama-cpp-python, recorded and replayed, with the same nonsense as llama.cpp's.

It has JSON with spaces, `null` for what it does not know, no usage in streams, and says 500 to
what it cannot read.
"""

from __future__ import annotations

import openai
import pytest

from tests.upstreams import gguf
from tests.upstreams.raw import REQUESTS, ask
from tests.upstreams.talks import TOOLS, Chat, talked

pytestmark = pytest.mark.slow

SAID = "Where does the train go?"
PLAIN = {"temperature": 0, "seed": 1, "max_tokens": 16, "tools": openai.omit}

every_way = pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])


@every_way
def test_texts(llama_python, runs, stream):
    """An answer that reached its limit, and what comes after it."""

    def run(url):
        with Chat(url, **PLAIN) as talk:
            given = talked(talk, SAID, stream=stream)
            gist = talk.gist()
            talk.history.append({"role": "user", "content": "And then?"})
            return gist, given, [*talk.events(stream=stream), talk.answer]

    direct, *_ = run(llama_python.url)
    recorded, replayed = runs.both(llama_python.url, run)
    assert recorded == replayed
    assert recorded[0] == direct
    assert set(direct[0].split()) <= set(gguf.WORDS)
    (scenario,) = runs.scenarios.values()
    assert [turn.finish for turn in scenario.turns] == ["length", "length"]


@every_way
def test_calls(llama_python, runs, stream):
    """A function that has to be called, by a grammar; its result, and what comes then."""
    choice = {"type": "function", "function": {"name": "get_weather"}}
    calling = {"temperature": 0, "seed": 1, "max_tokens": 100, "tool_choice": choice}

    def run(url):
        with Chat(url, **calling) as talk:
            talk.begin(SAID)
            first = [*talk.events(stream=stream), talk.answer]
            gist = talk.gist()
            assert talk.go_on()
            talk.options = PLAIN
            return gist, first, [*talk.events(stream=stream), talk.answer]

    direct, *_ = run(llama_python.url)
    # Streamed, the server has the name in each chunk, and the SDK makes one long name of them;
    # the service that it is made for would not take that back, but this one does.
    recorded, replayed = runs.both(llama_python.url, run)
    assert recorded == replayed
    assert recorded[0] == direct
    ((name, arguments),) = direct[1]
    assert name.replace("get_weather", "") == ""
    assert arguments["city"] in TOOLS["get_weather"]["properties"]["city"]["enum"]


def test_errors(llama_python, runs):
    """What the server cannot read, and a question that does not fit into its memory."""

    def run(url):
        with Chat(url, **PLAIN) as talk:
            long = talked(talk, "and " * 3000, stream=False)
            talk.options = {**PLAIN, "extra_body": {"top_k": "many"}}
            return long, talked(talk, SAID, stream=True)

    recorded, replayed = runs.both(llama_python.url, run)
    assert recorded == replayed
    assert [given[0][0]["status"] for given in recorded] == [400, 500]


@every_way
def test_bytes(llama_python, runs, stream):
    """What a client of the recorder gets is on the tape, and comes again, cut in the same
    places."""
    path, body = REQUESTS["chat"](SAID, stream)
    body |= {"max_tokens": 20, "temperature": 0}
    passed, replayed = runs.both(llama_python.url, lambda url: ask(url, path, body))
    (tape,) = runs.tapes()
    assert passed.chunks == replayed.chunks == tuple(piece.data for piece in tape.pieces)
    assert (len(passed.chunks) > 20) == stream
