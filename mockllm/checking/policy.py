"""The policy of a client: its choices where good designs differ. Only data may live here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Policy"]


@dataclass(frozen=True, slots=True)
class Policy:
    """How a client intends to behave.

    Args:
        malformed: a call whose arguments never parse to an object is reported as an `error`,
            left out (`skip`), or kept with its arguments as text (`keep`).
        missing_id: a call that never gets an id is given one (`synthesise`), is an `error`, or
            is kept without one (`none`).
        unknown_tool: a call of a tool that was not offered is kept (`keep`), left out (`skip`),
            or reported as an `error`.
        order: the calls are in the order of their `index`, or in `any` order.
        ignore: the fields of `Outcome` that the client does not have.
        intermediate: also check the state after every chunk. The probe's `outcome()` must then
            work in the middle of a stream.
    """

    malformed: Literal["error", "skip", "keep"] = "error"
    missing_id: Literal["synthesise", "error", "none"] = "synthesise"
    unknown_tool: Literal["keep", "skip", "error"] = "keep"
    order: Literal["index", "any"] = "index"
    ignore: frozenset[str] = frozenset()
    intermediate: bool = False
