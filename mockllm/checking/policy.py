"""The policies of a client: its choices where good designs differ. Only data may live here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Policy:
    """The behaviour that a client intends.

    Args:
        malformed: a call whose arguments never parse to an object is reported as an `error`,
            left out (`skip`), kept with its arguments as text (`keep`), or makes the whole answer
            fail (`fail`).
        missing_id: a call that never gets an id is given one (`synthesise`), is an `error`, or
            is kept without one (`none`).
        unknown_tool: a call of a tool that was not offered is kept (`keep`), left out (`skip`),
            or reported as an `error`.
        order: the calls are in the order of their `index`, or in `any` order.
        ignore: the fields of `Outcome` that the client does not have; `call_id` for ids of calls.
        intermediate: also check the state after every chunk. The probe's `outcome()` must then
            work in the middle of a stream.
        usage_requested: whether the client requests usage, where the service sends it on request
            only. None: yes; for a whole client, its requests decide.
        allow: the cases that the client may get wrong, each with the reason: names of quirks
            (`chat-name-split`, `sse-crlf:cr`) or of cases, as reports have them.
    """

    malformed: Literal["error", "skip", "keep", "fail"] = "error"
    missing_id: Literal["synthesise", "error", "none"] = "synthesise"
    unknown_tool: Literal["keep", "skip", "error"] = "keep"
    order: Literal["index", "any"] = "index"
    ignore: frozenset[str] = frozenset()
    intermediate: bool = False
    usage_requested: bool | None = None
    allow: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ResiliencePolicy:
    """The behaviour that a client intends under faults, where good designs differ.

    Args:
        tries: how often it sends one request at most; None: it takes the number of the case.
        idle_timeout: after how many seconds without a byte it gives up; None: it takes that of the
            case.
        has_idle_timeout: whether it has such a timeout at all.
        longest_wait: the longest `retry-after` that it waits for, in seconds; None: any.
        final_errors: the codes of errors that it never repeats.
        cancel: the ways to cancel that it has, of `Case.cancel`.
    """

    tries: int | None = None
    idle_timeout: float | None = None
    has_idle_timeout: bool = True
    longest_wait: float | None = None
    final_errors: frozenset[str] = frozenset()
    retries: bool = True
    cancel: frozenset[str] = frozenset({"leave", "call", "drop"})

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> ResiliencePolicy:
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
            cancel=frozenset(settings.get("cancel", ("leave", "call", "drop"))),
        )
