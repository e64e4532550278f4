"""The quirks of Anthropic Messages, group H.

`stream` has those of the stream around the blocks, `blocks` those of calls and other blocks;
`events` is the access to events that they share.
"""

from __future__ import annotations

from mockllm.play.quirks.anthropic import blocks, stream
from mockllm.play.quirks.base import Quirk

QUIRKS: tuple[Quirk, ...] = (*stream.QUIRKS, *blocks.QUIRKS, *stream.ENDINGS)
