"""Gates: places in an answer that wait until a test opens them. Pure.

On the clock of an answer a gate is a pause that is longer than all others (`HELD`). So encoders,
quirks and the cutting of segments know nothing of gates, and the bytes are those without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from mockllm.core.http import TimedBytes
from mockllm.core.record import record
from mockllm.core.turn import Turn, beats
from mockllm.scenario.part_model import Gate

BEFORE_HEAD = -1
"""The place of a gate before status and headers."""

HELD = 1 << 62
"""A gate on the clock of an answer, in microseconds."""


@record
class TurnGate:
    """A gate in a turn.

    Args:
        beat: the beat that waits, as in `Turn.order`; their number: the end of the answer.
        pause: the pauses between the beat before and the gate, in microseconds.
    """

    gate: Gate
    beat: int
    pause: int = 0


@record
class AnswerGate:
    """A gate in the bytes of an answer.

    Args:
        before: how many bytes of the body are sent before it, or `BEFORE_HEAD`.
        pause: the time between them and the gate, in microseconds.
    """

    gate: Gate
    before: int = BEFORE_HEAD
    pause: int = 0


def hold(turn: Turn, gates: Iterable[TurnGate]) -> Turn:
    """The turn with its gates on its clock."""
    gaps = list(turn.gaps or (0,) * (sum(map(beats, turn.parts)) + 1))
    for gate in gates:
        gaps[gate.beat] += HELD
    return replace(turn, gaps=tuple(gaps))


def place_gates(
    parts: Sequence[TimedBytes], gates: Sequence[TurnGate]
) -> tuple[list[TimedBytes], tuple[AnswerGate, ...]]:
    """The parts of a body on the clock without gates, and where the gates are among them.

    Args:
        parts: of turns that `hold` put the gates into.
    """
    passed = list(accumulate((part.at // HELD for part in parts), max))
    ends = list(accumulate((len(part.data) for part in parts), initial=0))
    places = [
        next((n for n, count in enumerate(passed) if count > number), len(parts))
        for number in range(len(gates))
    ]
    return [TimedBytes(part.at % HELD, part.data) for part in parts], tuple(
        AnswerGate(gate.gate, ends[place], gate.pause)
        for gate, place in zip(gates, places, strict=True)
    )
