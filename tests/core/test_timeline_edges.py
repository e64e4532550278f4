"""Turns and events at the edges: endings, pauses, orders that are repaired or refused."""

from __future__ import annotations

import pytest

from mockllm.core import events as ev
from mockllm.core.events import Frame
from mockllm.core.timeline import expand, fold, normal
from mockllm.core.turn import (
    Opaque,
    Reasoning,
    Refusal,
    Text,
    TokenUsage,
    ToolCall,
    Turn,
    beats,
)

USAGE = TokenUsage(1, 2)
ERROR = ev.StreamError("broken", "server_error", "500")
FRAME = Frame("{}")


def test_every_kind_of_part_has_its_events() -> None:
    """Citations and signatures come right before the end of their part; a frame has no end."""
    cite = ev.Cite(0, "https://example.com/", "title", "cited")
    turn = Turn(
        (
            Reasoning(("think",), "sig", summary=True),
            Text(("a", "b"), (cite,), logprobs=True),
            Refusal(("no",)),
            ToolCall("f", "1", ("{", "}"), "proof"),
            Opaque("chat", FRAME),
        ),
        "tool_calls",
        USAGE,
        finish_raw="function_call",
    )
    assert [timed.event for timed in expand(turn)] == [
        ev.Start(),
        ev.ReasoningDelta(0, "think", summary=True),
        ev.Signature(0, "sig"),
        ev.PartEnd(0),
        ev.TextDelta(1, "a", logprobs=True),
        ev.TextDelta(1, "b", logprobs=True),
        ev.Cite(1, "https://example.com/", "title", "cited"),
        ev.PartEnd(1),
        ev.RefusalDelta(2, "no"),
        ev.PartEnd(2),
        ev.ToolStart(3, "1", "f"),
        ev.ToolArgs(3, "{"),
        ev.ToolArgs(3, "}"),
        ev.Signature(3, "proof"),
        ev.PartEnd(3),
        ev.Raw(4, "chat", FRAME),
        USAGE,
        ev.Finish("tool_calls", "function_call"),
    ]
    assert fold(expand(turn)) == turn


def test_an_error_takes_the_place_of_the_finish() -> None:
    """A stream that ends in an error has no finish reason, also where both were sent."""
    assert [timed.event for timed in expand(Turn((), "stop", USAGE, error=ERROR))] == [
        ev.Start(),
        USAGE,
        ERROR,
    ]
    both = [ev.Timed(0, ev.Finish("stop", "x")), ev.Timed(0, ERROR)]
    assert fold(both) == Turn(error=ERROR)


def test_the_pauses_of_a_turn_without_parts() -> None:
    """The only pause is the one before the end."""
    turn = Turn(finish="stop", gaps=(7,))
    assert [timed.at for timed in expand(turn)] == [7, 7]
    assert fold(expand(turn)) == turn
    assert fold([ev.Timed(9, ev.Start()), ev.Timed(7, ev.Start())]) == Turn(gaps=(9,))


def test_the_pause_before_the_end() -> None:
    """The last pause belongs to the event at the end; where the stream was cut there is none."""
    parts = (Text(("a",)),)
    ended = [ev.Timed(1, ev.TextDelta(0, "a")), ev.Timed(5, ev.Finish("stop"))]
    assert fold(ended) == Turn(parts, "stop", gaps=(1, 4))
    assert normal(Turn(parts, gaps=(1, 4))) == Turn(parts, gaps=(1, 0))
    for ending in ({"usage": USAGE}, {"error": ERROR}, {"finish": "stop"}):
        turn = Turn(parts, gaps=(1, 4), **ending)  # type: ignore[arg-type]
        assert normal(turn) == turn
    assert normal(Turn(gaps=(4,))) == Turn(gaps=(4,))


def test_an_end_before_the_last_event_is_no_pause() -> None:
    """Usage may come early; no pause is negative."""
    early = [ev.Timed(3, USAGE), ev.Timed(8, ev.TextDelta(0, "a"))]
    assert fold(early) == Turn((Text(("a",)),), usage=USAGE, gaps=(8, 0))


def test_what_normal_leaves_out() -> None:
    """A sequential order and pauses of no length say nothing."""
    parts = (Text(("a", "b")), Refusal(("c",)))
    assert normal(Turn(parts, order=(0, 0, 1), gaps=(0, 0, 0, 0))) == Turn(parts)
    turned = Turn(parts, "stop", order=(0, 1, 0), gaps=(0, 0, 0, 1))
    assert normal(turned) == turned


def test_an_order_with_too_many_beats_is_repaired() -> None:
    """The beat of a fragment that was dropped goes, its pause to the next beat, or to the end."""
    parts = (ToolCall("f", "1", ("{}",)), Text(("a", "b")))
    order = (0, 1, 0, 1)
    repaired = Turn(parts, "stop", order=(0, 1, 1), gaps=())
    assert normal(Turn(parts, "stop", order=order)) == normal(repaired)
    with_gaps = normal(Turn(parts, "stop", order=order, gaps=(1, 2, 4, 8, 16)))
    assert with_gaps == Turn(parts, "stop", gaps=(1, 2, 12, 16))
    last = normal(Turn(parts, "stop", order=(0, 1, 1, 0), gaps=(1, 2, 4, 8, 16)))
    assert last == Turn(parts, "stop", gaps=(1, 2, 4, 24))


def test_a_signature_and_a_citation_after_their_part() -> None:
    """They are attributes of their part, not beats; a citation of no part is left out."""
    cite = ev.Cite(3, "https://example.com/")
    events = [
        ev.ReasoningDelta(2, "a"),
        ev.TextDelta(3, "b"),
        ev.Signature(2, "sig"),
        cite,
        ev.Cite(9, "https://example.com/"),
        ev.Finish("stop"),
    ]
    assert fold(ev.Timed(0, event) for event in events).parts == (
        Reasoning(("a",), "sig"),
        Text(("b",), (ev.Cite(0, "https://example.com/"),)),
    )


def test_a_signature_alone_has_a_time() -> None:
    """Hidden reasoning is a beat."""
    events = [ev.Timed(4, ev.Signature(0, "sig")), ev.Timed(9, ev.Finish("stop"))]
    assert fold(events) == Turn((Reasoning((), "sig"),), "stop", gaps=(4, 5))


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([ev.ToolArgs(3, "{")], "arguments for part 3, which never opened"),
        ([ev.Replacement(3, "a")], "a replacement for part 3, which has no fragments"),
        (
            [ev.Raw(3, "chat", FRAME), ev.Replacement(3, "a")],
            "a replacement for part 3, which has no fragments",
        ),
        ([ev.ToolStart(3, "1", "f"), ev.ToolStart(3, "2", "g")], "part 3 opens twice"),
        ([ev.Raw(3, "chat", FRAME), ev.Raw(3, "chat", FRAME)], "part 3 opens twice"),
        (
            [ev.TextDelta(3, "a"), ev.RefusalDelta(3, "b")],
            "part 3 is TextDelta(part=3, text='a', logprobs=False, tokens=None), "
            "yet gets RefusalDelta(part=3, text='b')",
        ),
    ],
)
def test_the_messages_of_contradictions(events: list[ev.Event], message: str) -> None:
    """A message names the part and what is wrong with it."""
    with pytest.raises(ValueError, match="part 3") as caught:
        fold(ev.Timed(0, event) for event in events)
    assert str(caught.value) == message


def test_the_messages_of_orders_that_do_not_fit() -> None:
    """A message has the order and the beats that there are."""
    parts = (Text(("a", "b")), ToolCall("f", "1", ("{", "}")))
    with pytest.raises(ValueError, match="order") as caught:
        expand(Turn(parts, order=(0, 1)))
    assert str(caught.value) == "order (0, 1) does not have the beats [2, 3] of the parts"
    with pytest.raises(ValueError, match="gaps") as caught:
        expand(Turn(parts, gaps=(1, 2)))
    assert str(caught.value) == "2 gaps for 5 beats; one more is needed"


def test_beats() -> None:
    """A fragment is a beat, and so are the opening of a call and a frame."""
    found = (Text(("a", "b")), Reasoning(()), ToolCall("f", "1", ("x",)), Opaque("chat", FRAME))
    assert [beats(part) for part in found] == [2, 1, 2, 1]


def test_a_whole_turn() -> None:
    """Each part has one fragment; order and pauses go, all else stays."""
    turn = Turn(
        (
            Text(("a", "b"), (ev.Cite(0, "u"),), True),
            ToolCall("f", "1", ("{", '"a":1}'), "s"),
            ToolCall("g", "2"),
            Opaque("chat", FRAME),
        ),
        "tool_calls",
        USAGE,
        order=(1, 0, 1, 0, 1, 2, 3),
        gaps=(1, 0, 0, 0, 0, 0, 0, 2),
        finish_raw="x",
    )
    assert turn.whole() == Turn(
        (
            Text(("ab",), (ev.Cite(0, "u"),), True),
            ToolCall("f", "1", ('{"a":1}',), "s"),
            ToolCall("g", "2"),
            Opaque("chat", FRAME),
        ),
        "tool_calls",
        USAGE,
        finish_raw="x",
    )
    assert turn.tool_calls[0].parse_arguments() == {"a": 1}


def test_a_stop_sequence() -> None:
    """It is in the finish, and comes back; an answer with an error has none."""
    turn = Turn((Text(("a",)),), "stop", USAGE, finish_raw="x", stop_sequence="END")
    assert expand(turn)[-1].event == ev.Finish("stop", "x", "END")
    assert fold(expand(turn)) == turn
    failed = fold((*expand(turn), ev.Timed(0, ev.StreamError("boom"))))
    assert failed.stop_sequence is None


def test_parts_without_fragments_have_an_empty_one() -> None:
    """So that each part has a beat; a call without arguments has none."""
    for kind in (Text, Reasoning, Refusal):
        assert kind(()).fragments == ("",)
        assert kind(("a",)).fragments == ("a",)
    assert ToolCall("f", "1", ("", "{}")).fragments == ("", "{}")
