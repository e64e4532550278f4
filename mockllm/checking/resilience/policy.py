"""What a client declares about retries and timeouts. Only data may live here."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ResiliencePolicy"]


@dataclass(frozen=True, slots=True)
class ResiliencePolicy:
    """How a client intends to take faults, where good designs differ.

    Args:
        tries: how often it sends one request at most; None: it takes the number of the case.
        idle_timeout: after how many seconds without a byte it gives up; None: it takes that of the
            case.
        has_idle_timeout: whether it has such a timeout at all.
        longest_wait: the longest `retry-after` that it waits for, in seconds; None: any.
        final_errors: the codes of errors that it never repeats.
        retries: whether it retries at all.
    """

    tries: int | None = None
    idle_timeout: float | None = None
    has_idle_timeout: bool = True
    longest_wait: float | None = None
    final_errors: frozenset[str] = frozenset()
    retries: bool = True
