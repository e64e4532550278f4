"""The quirks of Anthropic Messages, group H.

`stream` has those of the stream around the blocks, `blocks` those of calls and other blocks;
`events` is the access to events that they share.
"""

from __future__ import annotations

from mockllm.quirks.anthropic.blocks import BLOCKS, CALLS
from mockllm.quirks.anthropic.stream import ENDINGS, STREAM
from mockllm.quirks.base import Quirk

__all__ = ["QUIRKS"]

QUIRKS: tuple[Quirk, ...] = (*STREAM, *CALLS, *BLOCKS, *ENDINGS)
