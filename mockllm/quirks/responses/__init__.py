"""The quirks of OpenAI Responses, group I.

`values` has those of arguments and texts, `items` those of output items, `stream` and `extras`
those of the stream around them; `events` is the access to events that they share.
"""

from __future__ import annotations

from mockllm.quirks.base import Quirk
from mockllm.quirks.responses.extras import (
    DONE_SENTINEL,
    KEEPALIVE,
    LEGACY_NAMES,
    REQUIRED_MISSING,
    UNKNOWN_EVENT,
)
from mockllm.quirks.responses.items import (
    CALL_ID_MISSING,
    INTERLEAVED,
    ITEM_ID_NULL,
    ITEM_ID_ROTATES,
    OUTPUT_INDEX,
    REASONING_IDS,
)
from mockllm.quirks.responses.stream import (
    AFTER_COMPLETED,
    COMPLETED_OUTPUT_EMPTY,
    ERROR_SHAPE,
    INCOMPLETE,
    MISSING_OPENERS,
    NO_TERMINAL,
)
from mockllm.quirks.responses.values import (
    ARGS_DONE_ONLY,
    ARGS_IN_ADDED,
    DELTA_AFTER_DONE,
    DUP_DONE,
    EMPTY_DELTA,
    ZERO_ARG,
)

__all__ = ["QUIRKS"]

QUIRKS: tuple[Quirk, ...] = (
    ARGS_DONE_ONLY,
    ZERO_ARG,
    ARGS_IN_ADDED,
    EMPTY_DELTA,
    ITEM_ID_ROTATES,
    ITEM_ID_NULL,
    CALL_ID_MISSING,
    OUTPUT_INDEX,
    INTERLEAVED,
    COMPLETED_OUTPUT_EMPTY,
    ERROR_SHAPE,
    DUP_DONE,
    DELTA_AFTER_DONE,
    KEEPALIVE,
    UNKNOWN_EVENT,
    REQUIRED_MISSING,
    MISSING_OPENERS,
    INCOMPLETE,
    NO_TERMINAL,
    AFTER_COMPLETED,
    REASONING_IDS,
    LEGACY_NAMES,
    DONE_SENTINEL,
)
