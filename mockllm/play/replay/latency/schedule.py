"""One schedule for each request: when each beat of its answer is due. Pure.

An answer is compiled once, with the number of its beat as the time of each part. For a request only
the times are made anew, before its first byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from mockllm.core.record import record
from mockllm.core.turn import Turn, beats
from mockllm.scenario.latency_model import Latency


@record
class LatencyPlan:
    """The latency of a server or a session.

    Args:
        latency: of answers that have no times of their own; None: they come at once.
        seed: of all drawn times, also of those that scenarios have; with it, the session and the
            number of the request decide.
    """

    latency: Latency | None = None
    seed: str = "0"


NO_LATENCY = LatencyPlan()
"""No latency, but where scenarios have it."""


@record
class Draw:
    """The source from which the times of one answer are drawn.

    Args:
        session, number: the request: the name of its session, and its number there, from 1.
        running: how many other answers are on their way.
    """

    seed: str = "0"
    session: str = "default"
    number: int = 1
    running: int = 0


@record
class Pace:
    """The way in which an answer gets its times.

    Args:
        pauses: for each beat, the written pauses up to it, in microseconds. They are added.
        tokens: of an answer that is no stream, which has one beat; None for a stream.
    """

    latency: Latency
    pauses: tuple[int, ...]
    tokens: int | None = None

    def due(self, draw: Draw, prompt: int) -> list[int]:
        """When each beat is due, in microseconds after the request, by its number: what stands
        before the first one has 0.

        Args:
            prompt: the tokens of the request.
        """
        latency, seed = self.latency, (draw.seed, draw.session, draw.number)
        first = prompt * (latency.prefill or 0.0)
        if latency.ttft is not None:
            first += latency.ttft.draw(*seed, "ttft", count=1)[0]
        count = len(self.pauses) - 1 if self.tokens is None else self.tokens
        gaps = [0.0] * count
        if latency.itl is not None:
            gaps = latency.itl.draw(*seed, "itl", count=count)
            if latency.load_factor is not None and draw.running:
                factor = latency.load_factor.at(draw.running)
                gaps = [gap * factor for gap in gaps]
        at = accumulate(gaps, initial=first) if self.tokens is None else [first + sum(gaps)]
        return [0, *(round(time) + pause for time, pause in zip(at, self.pauses, strict=True))]


def number_beats(choices: Sequence[Turn]) -> tuple[list[Turn], tuple[int, ...]]:
    """The choices of an answer with the number of each beat as its time, and `pauses` of their
    `Pace`, which are those of the longest choice.

    The end of a stream comes with the last beat; after a pause it is a beat of its own.
    """
    pairs = [_number_beats_of(choice) for choice in choices]
    return [turn for turn, _ in pairs], max((pauses for _, pauses in pairs), key=len)


def _number_beats_of(turn: Turn) -> tuple[Turn, tuple[int, ...]]:
    count = sum(map(beats, turn.parts))
    pauses = turn.gaps or (0,) * (count + 1)
    last = int(not count or pauses[-1] > 0)
    numbers = replace(turn, gaps=(1,) * count + (last,))
    return numbers, tuple(accumulate(pauses))[: count + last]
