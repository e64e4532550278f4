"""The policy of a client: its choices where good designs differ. Only data may live here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Policy:
    """How a client intends to behave.

    Args:
        malformed: a call whose arguments never parse to an object is reported as an `error`,
            left out (`skip`), kept with its arguments as text (`keep`), or makes the whole answer
            fail (`fail`).
        missing_id: a call that never gets an id is given one (`synthesise`), is an `error`, or
            is kept without one (`none`).
        unknown_tool: a call of a tool that was not offered is kept (`keep`), left out (`skip`),
            or reported as an `error`.
        order: the calls are in the order of their `index`, or in `any` order.
        ignore: the fields of `Outcome` that the client does not have.
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
