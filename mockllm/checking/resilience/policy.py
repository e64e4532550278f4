"""What a client declares about retries and timeouts. Only data may live here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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
    """

    tries: int | None = None
    idle_timeout: float | None = None
    has_idle_timeout: bool = True
    longest_wait: float | None = None
    final_errors: frozenset[str] = frozenset()
    retries: bool = True

    @classmethod
    def declared(cls, settings: Mapping[str, Any]) -> ResiliencePolicy:
        """The policy of a client that declares settings, as the first line of a runner has them.

        `tries` of null, or of 1, says that the client does not retry.
        """
        tries, idle = settings.get("tries"), settings.get("idle_timeout")
        return cls(
            tries=tries,
            idle_timeout=idle,
            has_idle_timeout="idle_timeout" not in settings or idle is not None,
            longest_wait=settings.get("longest_wait"),
            final_errors=frozenset(settings.get("final_errors", ())),
            retries="tries" not in settings or tries not in (None, 1),
        )
