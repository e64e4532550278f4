"""Bytes with a time, of which an answer's body consists. Only data may live here."""

from __future__ import annotations

from typing import Literal

from mockllm.core.record import record

Ending = Literal["complete", "closed", "reset", "chunk", "open"]
"""How the bytes of an answer end: as HTTP ends them; or before that, when the connection is
`closed` (FIN) or `reset` (RST), when the HTTP `chunk` that began breaks off and the connection is
closed, or not at all: it stays `open` until the client leaves."""


@record
class TimedBytes:
    """Bytes that are sent together, and when, in microseconds after the request."""

    at: int
    data: bytes

    def __reduce__(self) -> tuple[type[TimedBytes], tuple[int, bytes]]:
        # Recorded answers of thousands of chunks go to another process.
        return TimedBytes, (self.at, self.data)
