"""Gates in answers: the bytes are those of the scenario without them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.play.replay.compilation.gates import BEFORE_HEAD
from mockllm.play.replay.compilation.http_answer import HttpAnswer
from mockllm.play.replay.loading import loads
from mockllm.play.replay.turn_answer import turn_answer, usual_request
from mockllm.scenario import model as m
from mockllm.scenario.dump import dump
from mockllm.scenario.part_model import Gate, GatePart, PausePart, TextPart, ToolPart
from mockllm.wire.protocols import PROTOCOLS

PARTS = st.one_of(
    st.builds(TextPart, st.text(min_size=1, max_size=8), st.sampled_from(["chars", "whole", 3])),
    st.builds(ToolPart, st.just("find"), arguments=st.sampled_from([None, '{"a":"bcdef"}'])),
    st.builds(PausePart, st.integers(0, 10**6)),
    st.just(None),  # a gate
)


@st.composite
def gated(draw: st.DrawFn) -> m.Scenario:
    """A scenario with gates anywhere in its reply."""
    parts = draw(st.lists(PARTS, min_size=1, max_size=7))
    reply = tuple(
        GatePart(Gate(f"gate-{number}")) if part is None else part
        for number, part in enumerate(parts)
    )
    turn = m.TurnSpec(
        reply=reply,
        gate=draw(st.none() | st.just(Gate("first", 5))),
        timing=draw(st.none() | st.just(m.Timing(ttft=3000, every=2000, jitter=0.5))),
        wire=draw(
            st.none()
            | st.just(m.Wire(group=3))
            | st.just(m.Wire(comments=m.Comments(2, "x"), bom=True))
        ),
        finish=draw(st.sampled_from([None, "none"])),
    )
    return m.Scenario("gated", (turn,))


def answer_of(scenario: m.Scenario, api: str, *, stream: bool) -> HttpAnswer:
    protocol = PROTOCOLS[api]
    request = usual_request(scenario, protocol, stream=stream, fields=protocol.client.usage)
    return turn_answer(scenario, 0, protocol, request)


@given(gated(), st.sampled_from(tuple(PROTOCOLS)), st.booleans())
def test_an_answer_has_the_bytes_and_times_of_one_without_gates(
    scenario: m.Scenario, api: str, stream: bool
) -> None:
    """Over each API, streamed or not. The gates come in their order, each where an event of the
    stream begins."""
    found = answer_of(scenario, api, stream=stream)
    plain = answer_of(scenario.without_gates(), api, stream=stream)
    assert replace(found, gates=()) == plain
    assert tuple(gate.gate.name for gate in found.gates) == scenario.gates
    places = [gate.before for gate in found.gates]
    assert places == sorted(places)
    ends = {BEFORE_HEAD, 0, *(sum(map(len, found.data[:n])) for n in range(len(found.data) + 1))}
    assert ends.issuperset(places)
    if not found.streamed:
        assert set(places) <= {BEFORE_HEAD}


@pytest.mark.parametrize("api", PROTOCOLS)
def test_what_comes_before_a_gate(api: str) -> None:
    """The parts before it, and no byte of those after it."""
    (scenario,) = loads(
        "{scenario: s, turns: [{reply: [{text: one}, {gate: a}, {text: two}, {gate: b}]}]}"
    )
    found = answer_of(scenario, api, stream=True)
    body = b"".join(found.data)
    for gate, texts in zip(found.gates, ([b"one"], [b"one", b"two"]), strict=True):
        before = body[: gate.before]
        assert [text for text in (b"one", b"two") if text in before] == texts


def test_gates_with_latency_and_with_several_choices() -> None:
    """Times that are drawn are those without the gate; other choices come before it."""
    text = (
        "{scenario: s, turns: [{reply: [{text: one}, {gate: a}, {text: two}], timing: "
        "{latency: 'ttft=uniform(1s, 2s) itl=normal(20ms, 5ms)'}, choices: [{reply: other}]}]}"
    )
    (scenario,) = loads(text)
    found = answer_of(scenario, "chat", stream=True)
    plain = answer_of(scenario.without_gates(), "chat", stream=True)
    assert replace(found, gates=()) == plain
    protocol = PROTOCOLS["chat"]
    request = usual_request(scenario, protocol, stream=True, fields={"n": 2})
    both = turn_answer(scenario, 0, protocol, request)
    before = b"".join(both.data)[: both.gates[0].before]
    assert (b"one" in before, b"other" in before, b"two" in before) == (True, True, False)


def test_nobody_opens_gates_where_nothing_waits() -> None:
    """`without_gates` leaves none, in no form of a turn and in no try."""
    text = """
scenario: s
turns:
- gate: a
  reply: [{gate: b}, {text: x}]
  attempts: [{http: 429, gate: c}, {reply: [{gate: d}]}]
  when: {api: chat, gate: e, reply: [{gate: f}, {text: y}]}
- one_of: [{reply: one, gate: g}, [{text: two}, {gate: h}]]
"""
    (scenario,) = loads(text)
    assert sorted(set(scenario.gates)) == list("abcdefgh")
    plain = scenario.without_gates()
    assert plain.gates == ()
    assert loads(dump(plain)) == (plain,)
    assert plain.without_gates() is plain
