"""The quirks of Gemini, group J.

`gemini_calls` has those of calls, `gemini_stream` those of the stream around them,
`gemini_empty` that of chunks with nothing in them; `gemini_chunks` is what they share.
"""

from __future__ import annotations

from mockllm.quirks.base import Quirk
from mockllm.quirks.gemini.calls import CALLS
from mockllm.quirks.gemini.empty import EMPTY_CHUNKS
from mockllm.quirks.gemini.stream import STREAM

__all__ = ["QUIRKS"]

QUIRKS: tuple[Quirk, ...] = (*CALLS, *STREAM, *EMPTY_CHUNKS)
