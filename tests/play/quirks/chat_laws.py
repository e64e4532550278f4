"""Laws of every quirk of Chat Completions, for the tests of its groups."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import note
from hypothesis import strategies as st

from mockllm.core.events import Frame
from mockllm.core.http import TimedBytes
from mockllm.core.turn import TokenUsage, Turn
from mockllm.play.quirks.base import Context, Quirk, Variant, change_frames
from mockllm.play.replay.compilation.encoding import stream
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.scenario.model import Scenario, Wire
from mockllm.wire.framing.sse import decode
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply, dumps
from mockllm.wire.protocols.decoding import decode_turn
from mockllm.wire.protocols.openai_chat.request import Options
from tests.play.quirks.meaning import expected_turn
from tests.play.quirks.playing import frames, plain, play

CHAT = PROTOCOLS["chat"]
_ENVELOPE = re.compile(r'"id":"chatcmpl-\w+","object".*?"system_fingerprint":"fp_\w+"')


def each_variant(quirks: Iterable[Quirk]) -> list[Any]:
    """A parameter for each variant of each quirk."""
    return [
        pytest.param(quirk, variant, id=f"{quirk.name}:{variant.name}".rstrip(":"))
        for quirk in quirks
        for variant in quirk.variants
    ]


def sent(quirk: Quirk, name: str = "", scenario: Scenario | None = None) -> list[str]:
    """The data of a sample's events, with the envelope that all chunks share as `<E>`."""
    variant = quirk.variant(name)
    assert variant is not None
    return shortened(play(quirk, variant, "chat", scenario))


def shortened(answer: HttpAnswer) -> list[str]:
    """The data of the events, with the shared envelope as `<E>`."""
    return [_ENVELOPE.sub("<E>", frame.data) for frame in frames(answer) if frame.data is not None]


def chunk(delta: str, finish: str = "null") -> str:
    """A chunk with one choice, as without quirks; `finish` is JSON."""
    choice = f'{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}'
    return f'{{<E>,"choices":[{choice}],"usage":null}}'


def usage_chunk(output: int = 7, reasoning: int = 0) -> str:
    """The chunk of usage, as without quirks."""
    return f'{{<E>,"choices":[],"usage":{usage(output, reasoning)}}}'


def usage(output: int = 7, reasoning: int = 0) -> str:
    """The usage of the samples."""
    return (
        f'{{"prompt_tokens":12,"completion_tokens":{output},"total_tokens":{12 + output},'
        '"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},'
        f'"completion_tokens_details":{{"reasoning_tokens":{reasoning},"audio_tokens":0,'
        '"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}'
    )


OPENING = chunk('{"role":"assistant","content":"","refusal":null}')
HEL, LO = chunk('{"content":"Hel"}'), chunk('{"content":"lo"}')
STOP, USAGE, DONE = chunk("{}", '"stop"'), usage_chunk(), "[DONE]"

A1 = (
    '{"index":0,"id":"call_A1","type":"function",'
    '"function":{"name":"get_weather","arguments":"%s"}}'
)
CITY, PARIS = '{\\"city\\":', '\\"Paris\\"}'


def calling(entry: str) -> str:
    """A chunk with one entry of `tool_calls`."""
    return chunk(f'{{"tool_calls":[{entry}]}}')


def fragment(index: int, text: str) -> str:
    """A chunk with a fragment of arguments."""
    return calling(f'{{"index":{index},"function":{{"arguments":"{text}"}}}}')


def streamed(turn: Turn, options: Options, *quirks: str) -> list[TimedBytes]:
    """The timed bytes of a turn's stream, with quirks."""
    return stream((turn,), CHAT, _reply(turn, options), Wire(quirks=quirks))


def _reply(turn: Turn, options: Options) -> Reply:
    used = turn.usage or TokenUsage(0, 0)
    return Reply("seed", "0" * 40, "mock-model", options, used)


def plays(quirks: Iterable[Quirk], turn: Turn, options: Options) -> None:
    """Every variant plays: times are sorted, and data that were JSON, or are new, are JSON or
    `[DONE]`."""
    before = {frame.data for frame in _frames(streamed(turn, options))}
    for name, _ in named(quirks):
        note(name)
        found = streamed(turn, options, name)
        assert all(a.at <= b.at for a, b in pairwise(found)), name
        for frame in _frames(found):
            if frame.data not in (None, "[DONE]") and frame.data not in before:
                json.loads(frame.data)


def named(quirks: Iterable[Quirk]) -> Iterator[tuple[str, Variant]]:
    """Every variant with its name in `wire.quirks`."""
    for quirk in quirks:
        for variant in quirk.variants:
            yield f"{quirk.name}:{variant.name}", variant


def _frames(timed: Iterable[TimedBytes]) -> list[Frame]:
    return decode(b"".join(part.data for part in timed))


def reads_back(quirks: Iterable[Quirk], turn: Turn, *, but: tuple[str, ...] = ()) -> None:
    """Our own decoder reads the turn that each variant declares."""
    projected = CHAT.project(turn)
    for name, variant in named(quirks):
        if name in but:
            continue
        found = streamed(turn, Options(stream_usage=True), name)
        got, _ = decode_turn(CHAT, _frames(found))
        expected = expected_turn(name, variant, projected)
        assert (name, _summed(got)) == (name, _summed(expected))


def _summed(turn: Turn) -> dict[str, Any]:
    return {
        "text": turn.text,
        "reasoning": turn.reasoning,
        "refusal": turn.refusal,
        "calls": [(call.id, call.name, call.arguments) for call in turn.tool_calls],
        "finish": (turn.finish, turn.finish_raw),
        "usage": turn.usage,
        "error": turn.error,
    }


_NOTHING = (
    Frame("no JSON"),
    Frame('{"choices":'),
    Frame("[1, 2]"),
    Frame("{}"),
    Frame('{ "choices": null }'),
    Frame('{ "choices": [1, {"index": "x"}, {"index": 0, "delta": null}] }'),
    Frame('{"error":{"message":"boom"}}', event="error"),
    Frame(event="ping"),
    Frame(comment="keep-alive"),
    Frame(raw="data: [DO"),
)


_odd = st.none() | st.just("") | st.just("x") | st.just({}) | st.just([]) | st.just(0)


def _objects(keys: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """Objects with any of these keys, each with a usual value or another one."""
    return st.fixed_dictionaries({}, optional={key: _odd | it for key, it in keys.items()})


_function = _objects({"name": st.just("f"), "arguments": st.just("{}")})
_entry = _objects({"index": st.integers(0, 2), "id": st.just("call_1"), "function": _function})
_delta = _objects(
    {
        "role": st.just("assistant"),
        "content": st.just("text"),
        "reasoning_content": st.just("thought"),
        "tool_calls": st.lists(_odd | _entry, max_size=3),
    }
)
_choice = _objects({"index": st.integers(0, 1), "delta": _delta, "finish_reason": st.just("stop")})
_chunk = _objects(
    {
        "id": st.just("chatcmpl-1"),
        "choices": st.lists(_odd | _choice, max_size=3),
        "usage": st.just({"prompt_tokens": 1}),
    }
)
odd_streams = st.lists(st.just("[DONE]") | _chunk.map(dumps), max_size=6)
"""The data of streams whose chunks may have any shape."""


def survives_odd_chunks(quirks: Iterable[Quirk], data: list[str]) -> None:
    """No variant fails on chunks of odd shapes, and its results are JSON or `[DONE]`."""
    turn = Turn((), "stop", TokenUsage(1, 2))
    context = Context("chat", turn, _reply(turn, Options()))
    timed = [(n, Frame(text)) for n, text in enumerate(data)]
    for name, variant in named(quirks):
        note(name)
        assert variant.frames is not None
        changed = change_frames(variant.frames, timed, context)
        assert [at for at, _ in changed] == sorted(at for at, _ in changed)
        for _, frame in changed:
            assert frame.data == "[DONE]" or json.loads(frame.data or "") is not None


def leaves_the_unknown(variant: Variant) -> None:
    """Frames that are not chunks of the encoder's shape stay byte for byte."""
    turn = Turn(usage=TokenUsage(1, 2))
    context = Context("chat", turn, _reply(turn, Options(stream_usage=True)))
    timed = [(n, frame) for n, frame in enumerate(_NOTHING)]
    assert variant.frames is not None
    assert change_frames(variant.frames, timed, context) == timed
    assert change_frames(variant.frames, [], context) == []


def leaves(quirk: Quirk, variant: Variant, scenario: Scenario) -> None:
    """A scenario without anything to change has the same bytes with the quirk."""
    assert play(quirk, variant, "chat", scenario).data == plain(scenario, "chat").data
