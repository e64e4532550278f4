"""The quirks of OpenAI Responses, group I.

`items` has those of output items, `stream` those of the stream around them; `events` is the access
to events that they share.
"""

from __future__ import annotations

from mockllm.play.quirks.base import Quirk
from mockllm.play.quirks.responses import items, stream

QUIRKS: tuple[Quirk, ...] = (*items.QUIRKS, *stream.QUIRKS)
