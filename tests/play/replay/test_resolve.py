"""Resolving: the neutral turn that a written turn becomes."""

from textwrap import dedent

import pytest

from mockllm.core.events import StreamError
from mockllm.core.timeline import expand
from mockllm.core.turn import Reasoning, Refusal, Text, TokenUsage
from mockllm.play.matching.conversation import PlannedCall, planned_calls, turn_index
from mockllm.play.replay.compilation.resolve import resolve
from mockllm.play.replay.loading import loads


def scenario(text):
    """The scenario of a YAML text that has only its turns."""
    return loads("scenario: s\n" + dedent(text))[0]


def turn(text, position=0, api="chat"):
    """The neutral turn at a position."""
    return resolve(scenario(text), position, api)


def test_text_is_cut_as_written():
    """Text is split at the listed fragments, or by a rule."""
    played = turn("""
        turns:
          - reply:
              - {text: Hello, split: [He, llo]}
              - {text: one two, split: words}
              - {refusal: abcd, split: 3}
              - {reasoning: ab, split: chars}
    """)
    assert played.parts == (
        Text(("He", "llo")),
        Text(("one", " two")),
        Refusal(("abc", "d")),
        Reasoning(("a", "b")),
    )


def test_the_finish_follows_from_the_parts():
    """Calls finish with `tool_calls`, a refusal with `refusal`, text with `stop`."""
    assert turn("turns: [{reply: {tool: f}}]").finish == "tool_calls"
    assert turn("turns: [{reply: {refusal: no}}]").finish == "refusal"
    assert turn("turns: [{reply: {text: hi}}]").finish == "stop"
    assert turn("turns: [{reply: {text: hi}, finish: length}]").finish == "length"


def test_an_error_ends_the_turn_without_a_finish():
    """An error part is the end of the turn; without a message it gets a default one."""
    played = turn("turns: [{reply: [{text: Par}, {error: {type: server_error}}]}]")
    assert played.finish is None
    assert played.error == StreamError(
        "The server had an error while processing your request.", "server_error"
    )


def test_parallel_calls_open_in_order_and_alternate():
    """Round robin: all calls open, then their fragments alternate until none is left."""
    played = turn("""
        turns:
          - reply:
              parallel:
                - {tool: a, id: c1, arguments: '{"x":1}', split: 3}
                - {tool: b, id: c2, arguments: {y: 2}, split: 4}
                - {tool: c, id: c3}
    """)
    assert played.order == (0, 1, 2, 0, 1, 0, 1, 0)
    assert [call.arguments for call in played.tool_calls] == ['{"x":1}', '{"y":2}', "{}"]


def test_parallel_calls_follow_an_order():
    """`order` has an entry for each fragment. A call opens before its first fragment, and not
    before a call with a smaller index."""
    played = turn("""
        turns:
          - reply:
              parallel:
                - {tool: a, id: c1, arguments: {x: 1}, split: [ '{"x"', ':1}' ]}
                - {tool: b, id: c2, arguments: {y: 2}, split: [ '{"y"', ':2}' ]}
              order: [1, 0, 0, 1]
    """)
    assert played.order == (0, 1, 1, 0, 0, 1)


def test_timing_becomes_gaps():
    """`ttft` is the first gap and `every` the ones between beats; a part's own `every` and its
    pauses take precedence."""
    played = turn("""
        turns:
          - reply:
              - {text: abc, split: chars}
              - pause: 1s
              - {text: de, split: chars, every: 5ms}
              - pause: 2s
            timing: {ttft: 300ms, every: 20ms}
    """)
    assert played.gaps == (300_000, 20_000, 20_000, 1_005_000, 5_000, 2_000_000)
    assert expand(played)[-1].at == 3_350_000


def test_exact_offsets():
    """`at` has the offset of each beat; beats after the end of the list follow at once."""
    played = turn("""
        turns:
          - reply: {text: abc, split: chars}
            timing: {at: [10ms, 30ms]}
    """)
    assert played.gaps == (10_000, 20_000, 0, 0)


def test_jitter_is_seeded():
    """Jitter stays within its share, differs between beats, and is the same each time."""
    text = """
        seed: {seed}
        turns:
          - reply: {{text: abcdefghij, split: chars}}
            timing: {{every: 100ms, jitter: 20%}}
    """
    gaps = turn(text.format(seed="one")).gaps[1:-1]
    assert gaps == turn(text.format(seed="one")).gaps[1:-1]
    assert gaps != turn(text.format(seed="two")).gaps[1:-1]
    assert all(80_000 <= gap <= 120_000 for gap in gaps)
    assert len(set(gaps)) > 3


def test_defaults_apply_where_the_turn_has_no_value():
    """`defaults` give split, pauses and usage; the turn's own values take precedence."""
    text = """
        defaults: {split: chars, every: 1ms, ttft: 2ms, usage: {input: 7}}
        turns:
          - reply: {text: ab}
          - reply: {text: ab, split: whole}
            usage: {input: 9, output: 3}
            timing: {ttft: 5ms}
    """
    first, second = turn(text), turn(text, 1)
    assert (first.parts, first.gaps) == ((Text(("a", "b")),), (2_000, 1_000, 0))
    assert first.usage == TokenUsage(7, 1)
    assert (second.parts, second.gaps) == ((Text(("ab",)),), (5_000, 0))
    assert second.usage == TokenUsage(9, 3)


def test_derived_ids_differ_between_calls_and_positions():
    """The id of a call without one depends on scenario, turn and position only."""
    text = """
        turns:
          - reply: [{tool: f}, {tool: f}]
            repeat: true
    """
    ids = [call.id for position in (0, 1, 5) for call in turn(text, position).tool_calls]
    assert len(set(ids)) == 6
    assert all(id.startswith("call_") and len(id) == 29 for id in ids)
    assert ids == [call.id for position in (0, 1, 5) for call in turn(text, position).tool_calls]


def test_planned_calls_are_those_that_are_played():
    """The calls that matching compares with the history are the calls that the turn sends."""
    s = scenario("""
        turns:
          - reply:
              - {tool: f}
              - parallel: [{tool: g, id: c2}, {tool: h}]
              - {tool: bad, arguments: '{', malformed: true}
    """)
    calls = resolve(s, 0, "chat").tool_calls
    assert planned_calls(s, 0, "chat") == tuple(
        PlannedCall(call.name, call.id, call.name == "bad") for call in calls
    )


def test_which_turn_is_played():
    """After the last turn: none, the last one again, or the first one."""
    plain = scenario("turns: [{reply: {text: a}}, {reply: {text: b}}]")
    repeating = scenario("turns: [{reply: {text: a}}, {reply: {text: b}, repeat: true}]")
    restarting = scenario("then: restart\nturns: [{reply: {text: a}}, {reply: {text: b}}]")
    assert [turn_index(plain, n) for n in range(4)] == [0, 1, None, None]
    assert [turn_index(repeating, n) for n in range(4)] == [0, 1, 1, 1]
    assert [turn_index(restarting, n) for n in range(4)] == [0, 1, 0, 1]


def test_a_turn_may_differ_for_a_protocol():
    """`when` replaces whole keys of the turn for one protocol."""
    text = """
        turns:
          - reply: {text: hi}
            finish: length
            when: {api: responses, reply: {text: ho}}
    """
    assert (turn(text).text, turn(text).finish) == ("hi", "length")
    assert (turn(text, 0, "responses").text, turn(text, 0, "responses").finish) == ("ho", "length")


def test_usage_is_counted_by_a_fixed_rule():
    """One token for every four bytes of UTF-8, rounded up; reasoning counts as output."""
    played = turn("""
        match: {user: five!}
        turns:
          - reply: [{reasoning: abcdefgh}, {text: abcde}, {tool: f, arguments: {a: 1}}]
    """)
    assert played.usage == TokenUsage(input=2, output=2 + 2 + 1 + 2, reasoning=2)


def test_there_is_nothing_past_the_end():
    """Resolving a turn that does not exist is a programming error."""
    with pytest.raises(LookupError, match="no reply at position 1"):
        turn("turns: [{reply: {text: hi}}]", 1)
