"""Group F: how events are framed, and where the bytes are cut.

The data of the events stay what they are, but for the few quirks that break or lose some; so
these are met in every protocol, whatever server speaks it.
"""

from __future__ import annotations

from mockllm.quirks.base import Quirk
from mockllm.quirks.framing.blocks import BLOCKS
from mockllm.quirks.framing.cuts import CUTS
from mockllm.quirks.framing.lines import LINES
from mockllm.quirks.framing.separators import SEPARATORS

__all__ = ["QUIRKS"]

QUIRKS: tuple[Quirk, ...] = (*LINES, SEPARATORS, *BLOCKS, *CUTS)
