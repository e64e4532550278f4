"""The quirks of OpenAI Responses, group I.

`values` has those of arguments and texts, `items` those of output items, `stream` and `extras`
those of the stream around them; `events` is the access to events that they share.
"""

from __future__ import annotations

from mockllm.quirks.base import Quirk
from mockllm.quirks.responses import extras, items, stream, values

__all__ = ["QUIRKS"]

QUIRKS: tuple[Quirk, ...] = (
    values.ARGS_DONE_ONLY,
    values.ZERO_ARG,
    values.ARGS_IN_ADDED,
    values.EMPTY_DELTA,
    items.ITEM_ID_ROTATES,
    items.ITEM_ID_NULL,
    items.CALL_ID_MISSING,
    items.OUTPUT_INDEX,
    items.INTERLEAVED,
    stream.COMPLETED_OUTPUT_EMPTY,
    stream.ERROR_SHAPE,
    values.DUP_DONE,
    values.DELTA_AFTER_DONE,
    extras.KEEPALIVE,
    extras.UNKNOWN_EVENT,
    extras.REQUIRED_MISSING,
    stream.MISSING_OPENERS,
    stream.INCOMPLETE,
    stream.NO_TERMINAL,
    stream.AFTER_COMPLETED,
    items.REASONING_IDS,
    extras.LEGACY_NAMES,
    extras.DONE_SENTINEL,
)
