"""Expanding a turn to events and folding them gives the same turn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm.core import events as ev
from mockllm.core.timeline import expand, fold, normal
from mockllm.core.turn import Reasoning, Refusal, Text, TokenUsage, ToolCall, Turn
from tests.strategies import opaques, parts, tool_calls, turns


@given(turns(st.one_of(parts, opaques, tool_calls(well_formed=False))))
def test_fold_is_the_inverse_of_expand(turn):
    """Parts, fragments, order, timing and ending survive."""
    assert fold(expand(turn)) == turn


@given(turns(st.one_of(parts, opaques)))
def test_normal_is_idempotent(turn):
    """A turn in normal form does not change."""
    assert normal(turn) == turn


@given(turns())
def test_times_never_run_backwards(turn):
    """No event is due before the previous one, and the last one is due after all pauses."""
    times = [timed.at for timed in expand(turn)]
    assert times == sorted(times)
    if turn.gaps and (turn.usage or turn.finish or turn.error):
        assert times[-1] == sum(turn.gaps)


@given(turns())
def test_whole_keeps_text_and_calls(turn):
    """Joining the fragments changes neither text nor calls nor the ending."""
    whole = turn.whole()
    assert (whole.text, whole.reasoning, whole.refusal) == (
        turn.text,
        turn.reasoning,
        turn.refusal,
    )
    assert [call.arguments for call in whole.tool_calls] == [
        call.arguments for call in turn.tool_calls
    ]
    assert (whole.finish, whole.error, whole.usage) == (turn.finish, turn.error, turn.usage)


def test_interleaved_calls_expand_in_order():
    """`order` names the part of each beat; a part ends right after its last beat."""
    turn = Turn(
        (ToolCall("a", "1", ("x", "y")), ToolCall("b", "2", ("z",))),
        "tool_calls",
        order=(0, 1, 0, 1, 0),
    )
    assert [timed.event for timed in expand(turn)] == [
        ev.Start(),
        ev.ToolStart(0, "1", "a"),
        ev.ToolStart(1, "2", "b"),
        ev.ToolArgs(0, "x"),
        ev.ToolArgs(1, "z"),
        ev.PartEnd(1),
        ev.ToolArgs(0, "y"),
        ev.PartEnd(0),
        ev.Finish("tool_calls"),
    ]


def test_gaps_become_absolute_times():
    """The first gap is before the start, the last before the end."""
    turn = Turn((Text(("a", "b")),), "stop", TokenUsage(1, 2), gaps=(5, 7, 11))
    assert [timed.at for timed in expand(turn)] == [5, 5, 12, 12, 23, 23]


@pytest.mark.parametrize("spelling", [("{}",), ("",), ()])
def test_a_call_without_arguments_has_one_form(spelling):
    """`{}`, an empty string and no arguments are the same zero-argument call."""
    call = ToolCall("list_issues", "call_1", spelling)
    assert (call.fragments, call.arguments, call.parse_arguments()) == ((), "{}", {})


def test_a_zero_argument_call_keeps_its_pause():
    """A `{}` in a beat of its own is removed, its pause is not."""
    events = [
        ev.Timed(10, ev.Start()),
        ev.Timed(10, ev.ToolStart(0, "1", "f")),
        ev.Timed(30, ev.ToolArgs(0, "{}")),
        ev.Timed(60, ev.TextDelta(1, "hi")),
        ev.Timed(70, ev.Finish("stop")),
    ]
    assert fold(events) == Turn((ToolCall("f", "1"), Text(("hi",))), "stop", gaps=(10, 50, 10))


def test_reasoning_that_is_hidden_has_a_signature_alone():
    """A signature without any reasoning text is a part."""
    events = [ev.Timed(0, ev.Signature(0, "sig")), ev.Timed(0, ev.RefusalDelta(1, "no"))]
    assert fold(events).parts == (Reasoning((), "sig"), Refusal(("no",)))


def test_a_replacement_leaves_no_fragment_before_it():
    """The whole value is the only fragment; the pauses before the others add up before the next
    beat."""
    events = [
        ev.Timed(0, ev.ToolStart(0, "1", "f")),
        ev.Timed(10, ev.ToolArgs(0, '{"a"')),
        ev.Timed(30, ev.ToolArgs(0, ":1")),
        ev.Timed(30, ev.Replacement(0, '{"b":2}')),
        ev.Timed(40, ev.TextDelta(1, "hi")),
        ev.Timed(40, ev.Replacement(1, "Hi")),
        ev.Timed(50, ev.Finish("stop")),
    ]
    parts = ToolCall("f", "1", ('{"b":2}',)), Text(("Hi",))
    assert fold(events) == Turn(parts, "stop", gaps=(0, 10, 30, 10))


@pytest.mark.parametrize(
    "events",
    [
        [ev.ToolArgs(0, "{")],
        [ev.Replacement(0, "a")],
        [ev.ToolStart(0, "1", "f"), ev.ToolStart(0, "2", "g")],
        [ev.TextDelta(0, "a"), ev.RefusalDelta(0, "b")],
    ],
)
def test_events_that_contradict_each_other_are_refused(events):
    """Arguments for a call that was never opened, and parts of two kinds, are errors."""
    with pytest.raises(ValueError, match="part 0"):
        fold(ev.Timed(0, event) for event in events)


@pytest.mark.parametrize(
    "turn",
    [
        Turn((Text(("a",)),), order=(0, 0)),
        Turn((Text(("a",)),), order=(1,)),
        Turn((Text(("a",)),), gaps=(1,)),
    ],
)
def test_an_order_that_does_not_fit_is_refused(turn):
    """Order and gaps must match the beats of the parts."""
    with pytest.raises(ValueError, match="beats"):
        expand(turn)
