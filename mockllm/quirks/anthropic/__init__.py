"""The quirks of Anthropic Messages, group H.

`stream` has those of the stream around the blocks, `calls` those of tool calls, `blocks` those of
other content blocks, `endings` those of the end; `events` is the access to events that they share.
"""

from __future__ import annotations

from mockllm.quirks.anthropic.blocks import BLOCKS
from mockllm.quirks.anthropic.calls import CALLS
from mockllm.quirks.anthropic.endings import ENDINGS
from mockllm.quirks.anthropic.stream import STREAM
from mockllm.quirks.base import Quirk

__all__ = ["QUIRKS"]

QUIRKS: tuple[Quirk, ...] = (*STREAM, *CALLS, *BLOCKS, *ENDINGS)
