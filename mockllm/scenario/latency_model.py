"""Latency as it is written. Only data may live here."""

from __future__ import annotations

from mockllm.core.distributions import Distribution
from mockllm.core.record import record


@record
class LoadFactor:
    """The effect of load on the time between two beats: it is multiplied by `factor` where
    `running` other answers are on their way, and by less, or more, in proportion where fewer or
    more are."""

    factor: float
    running: int

    def at(self, running: int) -> float:
        """By what the time is multiplied with so many other answers."""
        return 1 + (self.factor - 1) * running / self.running


@record
class Latency:
    """The times of a model; times are in microseconds, and None is what is not said.

    Args:
        ttft: until the first beat of an answer; to it comes what the prompt takes.
        itl: between two beats of a stream, and for each token of an answer that is none.
        prefill: for each token of the prompt.
        text: as it is written; "" for what was joined from several.
    """

    ttft: Distribution | None = None
    itl: Distribution | None = None
    prefill: int | None = None
    load_factor: LoadFactor | None = None
    text: str = ""

    def over(self, other: Latency | None) -> Latency:
        """This latency, with the figures of another one for those that it lacks."""
        if other is None:
            return self
        return Latency(
            other.ttft if self.ttft is None else self.ttft,
            other.itl if self.itl is None else self.itl,
            other.prefill if self.prefill is None else self.prefill,
            other.load_factor if self.load_factor is None else self.load_factor,
        )
