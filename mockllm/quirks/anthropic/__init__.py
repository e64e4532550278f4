"""The quirks of Anthropic Messages, group H.

`anthropic_stream` has those of the stream around the blocks, `anthropic_calls` those of tool
calls, `anthropic_blocks` those of other content blocks, `anthropic_endings` those of how it ends;
`anthropic_events` is what they share.
"""

from __future__ import annotations

from mockllm.quirks.anthropic.blocks import BLOCKS
from mockllm.quirks.anthropic.calls import CALLS
from mockllm.quirks.anthropic.endings import ENDINGS
from mockllm.quirks.anthropic.stream import STREAM
from mockllm.quirks.base import Quirk

__all__ = ["QUIRKS"]

QUIRKS: tuple[Quirk, ...] = (*STREAM, *CALLS, *BLOCKS, *ENDINGS)
