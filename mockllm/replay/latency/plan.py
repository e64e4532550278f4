"""Which latency an answer has: that of its turn, of its scenario or of the server. Pure."""

from __future__ import annotations

from mockllm.core.record import record
from mockllm.scenario.latency_model import Latency
from mockllm.scenario.model import AnyPart, Defaults, PausePart, TurnSpec, members


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


def latency_of(
    turn: TurnSpec, defaults: Defaults, served: Latency | None, *, recorded: bool
) -> Latency | None:
    """The latency of a turn: what the nearest place says, and what it leaves out, from the next
    one. None for a turn whose times are not drawn.

    Exact times (of `timing`, of parts, of a recording) are nearer than the latency of the scenario
    or the server; those of `defaults` are nearer than that of the server.

    Args:
        recorded: whether a recording gives the answer its times.
    """
    timing = turn.timing
    if timing is not None and timing.latency is not None:
        return timing.latency.over(defaults.latency).over(served)
    if served is None and defaults.latency is None:
        return None
    if (
        recorded
        or (timing is not None and timing.is_exact)
        or any(map(takes_time, members(turn.reply)))
    ):
        return None
    if defaults.latency is not None:
        return defaults.latency.over(served)
    return served if defaults.ttft is None and defaults.every is None else None


def takes_time(part: AnyPart) -> bool:
    """Whether a part has a pause as it is written."""
    return bool(part.duration if isinstance(part, PausePart) else getattr(part, "every", None))
