"""Laws of every quirk of tool calls in Chat Completions, beyond `chat_laws`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import note
from hypothesis import strategies as st

from mockllm.core.http import TimedBytes
from mockllm.core.timeline import expand
from mockllm.core.turn import Turn
from mockllm.play.quirks.base import Quirk, Variant
from mockllm.wire.framing.sse import decode
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.decoding import decode_turn
from mockllm.wire.protocols.openai_chat.request import Options
from tests.clients.oracle import read_arguments
from tests.play.quirks import chat_laws as laws
from tests.play.quirks.chat_laws import DONE, USAGE, chunk
from tests.play.quirks.meaning import expected_turn
from tests.strategies import tool_calls, turns

END = [chunk("{}", '"tool_calls"'), USAGE, DONE]
ROLE = chunk('{"role":"assistant","content":null}')


def first(*entries: str) -> str:
    """The opening chunk with entries of `tool_calls` in it."""
    calls = ",".join(entries)
    return chunk(f'{{"role":"assistant","content":null,"tool_calls":[{calls}],"refusal":null}}')


def then(*entries: str, finish: str = "null") -> str:
    """A chunk of entries of `tool_calls`."""
    return chunk(f'{{"tool_calls":[{",".join(entries)}]}}', finish)


def _distinct_ids(turn: Turn) -> bool:
    ids = [call.id for call in turn.tool_calls]
    return len(set(ids)) == len(ids)


called = st.one_of(
    turns(), turns(st.one_of(tool_calls(), tool_calls(well_formed=False)), max_parts=3)
).filter(_distinct_ids)
"""Turns, most of them with calls, whose ids differ as those of a scenario have to."""


def read(timed: Iterable[TimedBytes]) -> Turn:
    """The turn that our own decoder reads from a stream."""
    return decode_turn(PROTOCOLS["chat"], decode(b"".join(part.data for part in timed)))[0]


SHARED = ("chat-placeholder-null-string", "chat-id-shared")
"""Our decoder keeps the id that all calls have with these."""


def reads_back(quirks: Iterable[Quirk], turn: Turn, *, but: tuple[str, ...] = ()) -> None:
    """Our own decoder reads the turn that each variant declares."""
    for name, variant in laws.named(quirks):
        if name in but:
            continue
        note(name)
        got = read(laws.streamed(turn, Options(stream_usage=True), name))
        expected = expected_turn(name, variant, PROTOCOLS["chat"].project(turn))
        assert expand(expected)
        assert _calls(got, variant) == _calls(expected, variant)
        assert _rest(got) == _rest(expected)
        if not variant.ids and not name.startswith(SHARED):
            ids = [call.id for call in got.tool_calls]
            assert all(ids)
            assert len(set(ids)) == len(ids)


def _calls(turn: Turn, variant: Variant) -> list[Any]:
    return [
        (call.id if variant.ids else None, call.name, read_arguments(call.arguments))
        for call in turn.tool_calls
    ]


def _rest(turn: Turn) -> tuple[Any, ...]:
    finish = turn.finish, turn.finish_raw
    return turn.text, turn.reasoning, turn.refusal, finish, turn.usage, turn.error
