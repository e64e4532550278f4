"""The quirks of OpenAI Responses, group I.

`items` has those of output items, `stream` those of the stream around them; `events` is the access
to events that they share.
"""

from __future__ import annotations

from mockllm.quirks.base import Quirk
from mockllm.quirks.responses import items, stream

__all__ = ["QUIRKS"]

QUIRKS: tuple[Quirk, ...] = (
    items.ARGS_DONE_ONLY,
    items.ZERO_ARG,
    items.ARGS_IN_ADDED,
    items.EMPTY_DELTA,
    items.ITEM_ID_ROTATES,
    items.ITEM_ID_NULL,
    items.CALL_ID_MISSING,
    items.OUTPUT_INDEX,
    items.INTERLEAVED,
    stream.COMPLETED_OUTPUT_EMPTY,
    stream.ERROR_SHAPE,
    items.DUP_DONE,
    items.DELTA_AFTER_DONE,
    stream.KEEPALIVE,
    stream.UNKNOWN_EVENT,
    stream.REQUIRED_MISSING,
    stream.MISSING_OPENERS,
    stream.INCOMPLETE,
    stream.NO_TERMINAL,
    stream.AFTER_COMPLETED,
    items.REASONING_IDS,
    stream.LEGACY_NAMES,
    stream.DONE_SENTINEL,
)
