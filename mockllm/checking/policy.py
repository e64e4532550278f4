"""What a client is meant to do where good designs differ. Only data may live here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Policy"]


@dataclass(frozen=True, slots=True)
class Policy:
    """How a client means to behave.

    Args:
        malformed: a call whose arguments never parse to an object is reported as an `error`,
            left out (`skip`), or kept with its arguments as text (`keep`).
        missing_id: a call that never gets an id is given one (`synthesise`), is an `error`, or
            is kept without (`none`).
        unknown_tool: a call of a tool that was not offered is kept, left out, or reported.
        order: of the calls: by their `index`, or `any`.
        ignore: the fields of `Outcome` that the client has no way to tell.
        intermediate: also look at the state after every chunk; the probe's `outcome()` has to
            bear being asked in the middle of a stream.
    """

    malformed: Literal["error", "skip", "keep"] = "error"
    missing_id: Literal["synthesise", "error", "none"] = "synthesise"
    unknown_tool: Literal["keep", "skip", "error"] = "keep"
    order: Literal["index", "any"] = "index"
    ignore: frozenset[str] = frozenset()
    intermediate: bool = False
