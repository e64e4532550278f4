"""Turns written as YAML: resolving what was written gives the same turn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core.events import Frame, StreamError, Usage
from mockllm.core.text import join_pairs
from mockllm.core.turn import Opaque, Reasoning, Refusal, Text, ToolCall, Turn
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.replay.loading import loads
from mockllm.play.tapes.recorded_turn import writable
from mockllm.record.recording.drafting.turns import answering, unresolve, with_turn
from mockllm.scenario.dump import dump
from mockllm.scenario.model import Scenario, TextCondition
from mockllm.wire.framing.sse import decode
from mockllm.wire.protocols import PROTOCOLS
from tests.cases import for_all
from tests.corpus import corpus_recordings, needs_corpus
from tests.strategies import every_part, json_values, natives, opaques, tool_calls, turns
from tools.corpus import decode_turn


def again(turn: Turn, api: str = "chat") -> Turn:
    """The turn after it was written as YAML, loaded and resolved, in one fragment for each part."""
    scenario = Scenario("a", (unresolve(writable(turn)),))
    assert loads(dump(scenario)) == (scenario,)
    return resolve(scenario, 0, api).whole()


def yaml_of(turn: Turn) -> str:
    """The YAML of a turn without its scenario."""
    lines = dump(Scenario("a", (unresolve(turn),))).splitlines()
    return "\n".join(line[4:] for line in lines[2:])


@given(turns(every_part | opaques | natives | tool_calls(well_formed=False)))
def test_every_turn_survives(turn: Turn) -> None:
    """Parts, native ones, tokens, endings and frames are the same; fragments and times are not
    written."""
    assert again(turn) == turn.whole()
    spec = unresolve(writable(turn))
    assert spec.timing is None
    assert not any(isinstance(getattr(part, "split", None), tuple) for part in spec.reply)


def test_about_as_many_fragments() -> None:
    """A part that came in fragments is cut into fragments of one size."""
    turn = Turn((Text(("Hel", "lo, ", "wo", "rld")), ToolCall("f", "c", ('{"a"', ":1}"))), "stop")
    spec = unresolve(turn)
    assert [part.split for part in spec.reply] == [3, 4]  # type: ignore[union-attr]
    resolved = resolve(Scenario("a", (spec,)), 0, "chat")
    assert [len(part.fragments) for part in resolved.parts] == [4, 2]  # type: ignore[union-attr]


@pytest.mark.slow
@needs_corpus
def test_every_recorded_stream_survives() -> None:
    """Recorded turns of real services are the same; a call without an id gets one."""
    for recording in corpus_recordings():
        turn, _ = decode_turn(PROTOCOLS[recording.api], decode(recording.stream))
        written = again(turn, recording.api)
        ids = iter(call.id for call in written.tool_calls)
        named = tuple(
            replace(part, id=part.id or id)
            if isinstance(part, ToolCall) and (id := next(ids))
            else part
            for part in turn.parts
        )
        assert written == replace(turn, parts=named).whole(), recording.name


def test_defaults_are_left_out() -> None:
    """Keys whose values follow from the rest are not written."""
    turn = Turn(
        (Reasoning(("Hm", "m.")), Text(("Hello.",)), ToolCall("f", "call_1", ('{"a":', "1}"))),
        "tool_calls",
        Usage(12, 7, 1),
    )
    assert yaml_of(turn) == (
        "reply:\n"
        "  - reasoning: Hmm.\n"
        "    split: 2\n"
        "  - text: Hello.\n"
        "  - tool: f\n"
        "    id: call_1\n"
        "    arguments:\n"
        "      a: 1\n"
        "    split: 4\n"
        "usage:\n"
        "  input: 12\n"
        "  output: 7"
    )


@for_all(
    "turn",
    [
        Turn((), "stop"),
        Turn(()),
        Turn((Text(("",)),), None),
        Turn((Text(("", "a", "")),), "length", finish_raw="MAX"),
        Turn((), error=StreamError("")),
        Turn((ToolCall("f", "c", ("", "")),), "tool_calls"),
        Turn((ToolCall("f", "c", ('{"a":1}',), "c2ln"),), "tool_calls"),
        Turn((ToolCall("a.b:c/d", "c"), ToolCall("", "d")), "tool_calls"),
        Turn((ToolCall("f", "c"), ToolCall("f", "c")), "tool_calls"),
        Turn((Opaque("chat", Frame("{}", "", "", 10**18)), Refusal(("No.",))), "stop"),
        Turn((Opaque("gemini", Frame(comment="")),), "stop"),
        Turn((Opaque("gemini", Frame('{"a": 1}')), Opaque("gemini", Frame("[" * 99))), "stop"),
    ],
)
def test_odd_turns_survive(turn: Turn) -> None:
    """Empty answers and fragments, invalid names, repeated ids: servers send all of them."""
    assert again(turn) == turn.whole()


def test_surrogate_halves_are_joined() -> None:
    """A surrogate pair that was split is joined in the later fragment; half of one stays."""
    turn = Turn((Text(("a\ud83d", "\ude00b", "\ude00")), Text(("c\ud83d",))), "stop")
    assert writable(turn).parts == (Text(("a", "😀b", "\ude00")), Text(("c\ud83d",)))


def test_numbers_are_clamped() -> None:
    """Negative or huge token counts become values that a file may have."""
    written = again(Turn((Text(("a",)),), "stop", Usage(-1, 10**12)))
    assert written.usage == Usage(0, 10**9)


user_texts = st.text(st.characters(codec=None), min_size=1).map(join_pairs)


@given(turns(every_part | opaques | tool_calls(well_formed=False)), user_texts, json_values)
def test_a_turn_in_a_scenario_can_be_loaded(turn: Turn, user: str, field: object) -> None:
    """Also with a condition on any text of a user, and with any field of the service."""
    spec = answering(unresolve(writable(turn)), TextCondition("equals", user))
    spec = replace(spec, extra=(("chat", {"event": {"field": field}}),))
    scenario, _ = with_turn(Scenario("a", ()), spec)
    assert loads(dump(scenario)) == (scenario,)
