"""The quirks of Gemini, group J.

`calls` has those of calls, `stream` those of the stream around them; `chunks` is the access to
chunks that they share.
"""

from __future__ import annotations

from mockllm.quirks.base import Quirk
from mockllm.quirks.gemini.calls import CALLS
from mockllm.quirks.gemini.stream import STREAM

__all__ = ["QUIRKS"]

QUIRKS: tuple[Quirk, ...] = (*CALLS, *STREAM)
