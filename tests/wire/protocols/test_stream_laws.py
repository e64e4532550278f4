"""The laws of streams, over any turn of each API, with what only this API has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockllm.core.timeline import expand, fold, normal
from mockllm.core.turn import Reasoning, Text, TokenUsage, ToolCall, Turn
from mockllm.wire.framing import sse
from mockllm.wire.protocols import PROTOCOLS
from mockllm.wire.protocols.base import Reply, WireProtocol
from tests.wire.protocols import (
    anthropic_turns,
    test_ag_ui,
    test_gemini_laws,
    test_openai_chat_laws,
    test_openai_responses,
    test_openai_responses_server_tools,
)
from tests.wire.protocols.streams import decoded, played, untimed

APIS: list[tuple[str, Reply, st.SearchStrategy[Turn]]] = [
    ("chat", test_openai_chat_laws.reply(stream_usage=True), test_openai_chat_laws.any_turns),
    ("responses", test_openai_responses.REPLY, test_openai_responses_server_tools.turns),
    ("anthropic", anthropic_turns.REPLY, anthropic_turns.any_turn),
    ("gemini", test_gemini_laws.reply(), test_gemini_laws.any_turns),
    ("agui", test_ag_ui.REPLY, test_ag_ui.turns),
]
each_api = pytest.mark.parametrize(
    ("protocol", "reply", "turns"),
    [pytest.param(PROTOCOLS[name], reply, turns, id=name) for name, reply, turns in APIS],
)


@each_api
@settings(deadline=None)
@given(data=st.data())
def test_the_stream_decodes_to_the_projection(
    protocol: WireProtocol, reply: Reply, turns: st.SearchStrategy[Turn], data: st.DataObject
) -> None:
    """Decoding what was encoded gives the projection of the turn, times and order included."""
    turn = data.draw(turns)
    end = max((item.at for item in expand(turn)), default=0)
    got = fold(decoded(protocol, played(protocol, turn, reply), end))
    assert got == normal(protocol.project(turn))


@each_api
@settings(deadline=None)
@given(data=st.data())
def test_projection_is_final(
    protocol: WireProtocol, reply: Reply, turns: st.SearchStrategy[Turn], data: st.DataObject
) -> None:
    """Projecting a decoded turn changes nothing."""
    once = protocol.project(data.draw(turns))
    assert protocol.project(once) == once


@each_api
@settings(deadline=None)
@given(data=st.data())
def test_split_anywhere(
    protocol: WireProtocol, reply: Reply, turns: st.SearchStrategy[Turn], data: st.DataObject
) -> None:
    """The events are the same, however the bytes are cut."""
    stream = encoded(protocol, data.draw(turns), reply, data.draw(st.sampled_from(["lf", "crlf"])))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=8)))
    assert in_pieces(protocol, stream, cuts) == in_pieces(protocol, stream, [])


@pytest.mark.slow
@each_api
def test_split_at_every_byte(protocol: WireProtocol, reply: Reply, turns: Any) -> None:
    """A stream cut in two at any byte gives the same events."""
    call = ToolCall("get_time", "call_q", ('{"z', 'one":"日本"}'))
    turn = Turn((Reasoning(("é",)), Text(("日本",)), call), "tool_calls", TokenUsage(11, 7))
    stream = encoded(protocol, turn, reply, "crlf")
    whole = in_pieces(protocol, stream, [])
    for cut in range(len(stream)):
        assert in_pieces(protocol, stream, [cut]) == whole, cut


def encoded(protocol: WireProtocol, turn: Turn, reply: Reply, newline: Any) -> bytes:
    """The bytes of a turn's stream."""
    return b"".join(sse.encode(frame, newline) for _, frame in played(protocol, turn, reply))


def in_pieces(protocol: WireProtocol, stream: bytes, cuts: list[int]) -> list[Any]:
    """The events of a stream that arrives in pieces."""
    decoder, frames = sse.SSEDecoder(), []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        frames += decoder.decode(stream[start:end])
    return decoded(protocol, untimed(frames))
