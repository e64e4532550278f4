"""Group F: how events are framed, and where the bytes are cut.

Most of these quirks keep the data of all events, so they occur in every protocol. `changes` has
the changes of bytes that they share.
"""

from __future__ import annotations

from mockllm.quirks.base import Quirk
from mockllm.quirks.framing.blocks import BLOCKS
from mockllm.quirks.framing.cuts import CUTS
from mockllm.quirks.framing.lines import LINES
from mockllm.quirks.framing.separators import SEPARATORS

__all__ = ["QUIRKS"]

QUIRKS: tuple[Quirk, ...] = (*LINES, SEPARATORS, *BLOCKS, *CUTS)
